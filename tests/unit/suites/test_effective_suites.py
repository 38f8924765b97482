"""The effective form of every conformance suite and every example, as `explain` prints it: messages,
evaluators with their origins and options, targets, gates, files, and the warnings of the suite."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.cli.explanation import explain_test, list_conversations
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Suite
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.load import load_suite
from agentevals_action.targets.providers import PROVIDERS
from tests.conftest import Golden

ROOT = Path(__file__).resolve().parents[3]
CONFORMANCE = ROOT.parent / "shared/conformance"
EXAMPLES = {
    "example-first-suite.yaml": "examples/first-suite/EVAL.yaml",
    "example-demo.yaml": "examples/demo/base/evals/EVAL.yaml",
    "example-demo-triage.yaml": "examples/demo/base/evals/triage/EVAL.yaml",
}
#: Fields that say something again, in words, or that have tests of their own.
_OMITTED = frozenset(
    (
        *("suite", "suiteName", "reason", "timeLimitReason", "what"),
        *("fingerprint", "ignoredFields", "priceSource", "retries"),
    )
)
_NO_FINGERPRINT = Fingerprint(question="", grading="", agent="")


def effective_suite(path: Path, root: Path) -> str:
    suite = load_suite(path, root, Catalog(PROVIDERS))
    assert isinstance(suite, Suite), suite
    turns = list_conversations(suite)
    tests = [
        explain_test(
            suite, test, 300, _NO_FINGERPRINT, turns.get(test.conversation_id or "", ())
        ).model_dump(mode="json")
        for test in suite.tests
    ]
    data = {
        "name": suite.name,
        "warnings": [str(warning) for warning in suite.warnings],
        "tests": tests,
    }
    return yaml.safe_dump(_plain(data), width=100, allow_unicode=True)


def _plain(value: Any) -> Any:
    """The data without empty and omitted fields; a location is one text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"path", "line", "column"}:
        return f"{value['path']}:{value['line']}:{value['column']}"
    return {
        key: _plain(item)
        for key, item in value.items()
        if key not in _OMITTED and item not in (None, [], {}, False)
    }


def conformance_suites() -> list[str]:
    files = (*CONFORMANCE.glob("*/EVAL.yaml"), *CONFORMANCE.glob("*/*.eval.yaml"))
    return sorted(path.relative_to(CONFORMANCE).as_posix() for path in files)


@pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason="the conformance suites are not beside this checkout"
)
@pytest.mark.parametrize("path", conformance_suites())
def test_effective_suite__of_the_conformance_suites(path: str, golden: Golden) -> None:
    name = path.removesuffix("/EVAL.yaml").removesuffix(".eval.yaml").replace("/", "-")
    golden.check(
        f"effective/conformance-{name}.yaml", effective_suite(CONFORMANCE / path, CONFORMANCE)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_effective_suite__of_the_examples(name: str, golden: Golden) -> None:
    golden.check(f"effective/{name}", effective_suite(ROOT / EXAMPLES[name], ROOT))


def test_examples__are_all_here() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/EVAL.yaml")}
    assert found == set(EXAMPLES.values())
