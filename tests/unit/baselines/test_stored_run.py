"""When stored results are a base's run, and when not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines import stored_run
from agentevals_action.baselines.base import Unavailable
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def complete_rows(suite: Suite, rows: Sequence[TestResult]) -> tuple[TestResult, ...]:
    fingerprints = base_tree.fingerprints(suite)
    return stored_run.complete_rows(suite, rows, fingerprints, fingerprints)


def reason(suite: Suite, rows: Sequence[TestResult]) -> str:
    """Why the rows are not those of base."""
    with pytest.raises(Unavailable) as caught:
        complete_rows(suite, rows)
    return str(caught.value)


def sample(score: float | None = 1.0, verdict: Any = "pass", **fields: Any) -> SampleResult:
    return SampleResult(score=score, verdict=verdict, **fields)


def test_rows__are_the_suites_own_in_its_order(suite: Suite) -> None:
    rows = base_tree.results_of(
        suite, {"greets": {"verdict": "fail", "failed": ("by-name",), "line": 99}}
    )
    found = complete_rows(suite, (*rows[::-1], results.result("gone", path=suite.path)))
    assert [(row.eval_id, row.verdict, row.gates_failed) for row in found] == [
        ("greets", "fail", ("by-name",)),
        ("short", "pass", ()),
    ]
    (greets, _) = found
    assert [gate.name for gate in greets.gates] == ["by-name"]
    assert (greets.line, greets.question, greets.timestamp) == (3, "Ada", "2026-01-01T00:00:00Z")


OTHER = results.fingerprint()
CASES: list[tuple[dict[str, dict[str, Any]], str]] = [
    ({"short": {"verdict": None}}, "the test `short` ended in an error there"),
    (
        {"greets": {"print": OTHER}, "short": {"print": OTHER}},
        "2 tests (the first is `greets`) were run with another question and grading and agent "
        "than the base has",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), CASES)
def test_rows__that_are_not_those_of_base(
    suite: Suite, changes: dict[str, dict[str, Any]], expected: str
) -> None:
    assert reason(suite, base_tree.results_of(suite, changes)) == expected


def test_rows__that_lack_a_test_or_have_it_twice(suite: Suite) -> None:
    """A missing test would count as new."""
    rows = base_tree.results_of(suite)
    assert reason(suite, ()) == "there are no results of it"
    assert reason(suite, rows[:1]) == "the test `short` of 2 is not in it"
    assert reason(suite, (*rows, rows[0])) == "a test has more than one result there"
    without = [replace(row, fingerprint=None) for row in rows]
    assert "were run with another" in reason(suite, without)


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_rows__another_digest(suite: Suite, part: str) -> None:
    other = replace(base_tree.fingerprints(suite)["greets"], **{part: "0" * 64})
    rows = base_tree.results_of(suite, {"greets": {"print": other}})
    assert reason(suite, rows) == (
        f"the test `greets` was run with another {part} than the base has"
    )


def test_rows__a_verdict_that_no_grading_gave(suite: Suite) -> None:
    """Only samples are believed, and of them only what fits together."""
    rows = base_tree.results_of(suite)
    forged = replace(
        rows[0], samples=(sample(0.1, "pass"), sample(7.0, "pass"), sample(float("nan"), "fail"))
    )
    assert reason(suite, (forged, rows[1])) == "the test `greets` ended in an error there"
    fresh = (sample(), sample(None, None, error=ErrorInfo(kind="target", message="down")), sample())
    confirmed = replace(rows[0], samples=fresh, confirming=1)
    assert complete_rows(suite, (confirmed, rows[1]))[0].samples == (sample(),)
    lying = replace(rows[0], verdict="pass", samples=(sample(0.1, "fail"),))
    assert complete_rows(suite, (lying, rows[1]))[0].verdict == "fail"
