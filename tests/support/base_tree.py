"""A base's tree in a folder, and results that stand for it: for tests of the stores of base
results."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.result import Fingerprint, TestResult
from agentevals_action.model.run import Selection
from agentevals_action.model.suite import Suite
from tests.support import results, suites

SUITE = """\
name: greeter
tests:
  - id: greets
    criteria: greets
    input: Ada
    assert: [{name: by-name, type: contains, value: Ada, required: true}]
  - id: short
    criteria: is short
    input: Bob
    assert: [{type: contains, value: Bob}]
"""
FILES = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": suites.TARGETS}
PATH = "evals/EVAL.yaml"
NOW = datetime(2026, 1, 10, tzinfo=UTC)


def fingerprints(suite: Suite) -> dict[str, Fingerprint]:
    made = Fingerprints()
    return {test.id: made.of(suite, test) for test in suite.tests}


def greeter(root: Path, path: str = PATH) -> Suite:
    """The usual suite, written to a folder."""
    suites.write(root, {**FILES, path: SUITE})
    return suites.load_valid(root, path)


def results_of(
    suite: Suite, changes: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[TestResult, ...]:
    """A passing result of every test; `changes` are fields of `results.result` by test id."""
    prints = fingerprints(suite)
    made = []
    for test in suite.tests:
        fields: dict[str, Any] = {
            "print": prints[test.id],
            "path": suite.path,
            **(changes or {}).get(test.id, {}),
        }
        made.append(results.result(test.id, fields.pop("verdict", "pass"), **fields))
    return tuple(made)


def select(*paths: str) -> tuple[Selection, ...]:
    return tuple(Selection(path, (f"changed: {path}",)) for path in paths or (PATH,))
