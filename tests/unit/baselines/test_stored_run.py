"""When stored results are a base's run, and when not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines import stored_run
from agentevals_action.model.result import ErrorInfo, SampleResult, SuiteRun, TestResult
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def complete_run(suite: Suite, rows: Sequence[TestResult]) -> SuiteRun | str:
    fingerprints = base_tree.fingerprints(suite)
    return stored_run.complete_run(suite, rows, fingerprints, fingerprints)


def read(suite: Suite, **changes: dict[str, Any]) -> SuiteRun | str:
    return complete_run(suite, base_tree.results_of(suite, changes))


def sample(score: float | None = 1.0, verdict: Any = "pass", **fields: Any) -> SampleResult:
    return SampleResult(score=score, verdict=verdict, **fields)


def test_whole_run__is_the_suites_own_in_its_order(suite: Suite) -> None:
    rows = base_tree.results_of(
        suite, {"greets": {"verdict": "fail", "failed": ("by-name",), "line": 99}}
    )
    run = complete_run(suite, rows[::-1])
    assert isinstance(run, SuiteRun)
    assert [(one.eval_id, one.verdict, one.gates_failed) for one in run.results] == [
        ("greets", "fail", ("by-name",)),
        ("short", "pass", ()),
    ]
    assert (run.path, run.name, run.summary.total, run.summary.failed) == (
        suite.path,
        "greeter",
        2,
        1,
    )
    (greets, _) = run.results
    assert [gate.name for gate in greets.gates] == ["by-name"]
    assert (greets.line, greets.question, greets.timestamp) == (3, "Ada", "2026-01-01T00:00:00Z")


def test_whole_run__tests_that_the_suite_no_longer_has_are_left_out(suite: Suite) -> None:
    rows = (*base_tree.results_of(suite), results.result("gone", path=suite.path))
    run = complete_run(suite, rows)
    assert isinstance(run, SuiteRun)
    assert len(run.results) == 2


def test_whole_run__nothing_of_the_suite(suite: Suite) -> None:
    assert complete_run(suite, ()) == "there are no results of it"


def test_whole_run__a_missing_test_would_count_as_new(suite: Suite) -> None:
    rows = base_tree.results_of(suite)[:1]
    assert complete_run(suite, rows) == "the test `short` of 2 is not in it"


def test_whole_run__a_test_twice(suite: Suite) -> None:
    rows = base_tree.results_of(suite)
    assert complete_run(suite, (*rows, rows[0])) == "a test has more than one result there"


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_whole_run__another_digest(suite: Suite, part: str) -> None:
    other = replace(base_tree.fingerprints(suite)["greets"], **{part: "0" * 64})
    assert (
        read(suite, greets={"print": other})
        == f"the test `greets` was run with another {part} than the base has"
    )


def test_whole_run__several_digests_of_several_tests(suite: Suite) -> None:
    other = results.fingerprint()
    words = read(suite, greets={"print": other}, short={"print": other})
    assert (
        words
        == "2 tests (the first is `greets`) were run with another question and grading and agent than the base has"
    )


def test_whole_run__without_a_fingerprint(suite: Suite) -> None:
    rows = [replace(row, fingerprint=None) for row in base_tree.results_of(suite)]
    assert "were run with another" in str(complete_run(suite, rows))


def test_whole_run__an_error_is_no_result(suite: Suite) -> None:
    assert read(suite, short={"verdict": None}) == "the test `short` ended in an error there"


def test_whole_run__a_verdict_that_no_grading_gave(suite: Suite) -> None:
    """Only samples are believed, and of them only what fits together."""
    rows = base_tree.results_of(suite)
    forged = replace(
        rows[0], samples=(sample(0.1, "pass"), sample(7.0, "pass"), sample(float("nan"), "fail"))
    )
    words = complete_run(suite, (forged, rows[1]))
    assert words == "the test `greets` ended in an error there"
    fresh = (sample(), sample(None, None, error=ErrorInfo(kind="target", message="down")), sample())
    confirmed = replace(rows[0], samples=fresh, confirming=1)
    run = complete_run(suite, (confirmed, rows[1]))
    assert isinstance(run, SuiteRun)
    assert run.results[0].samples == (sample(),)
    lying = replace(rows[0], verdict="pass", samples=(sample(0.1, "fail"),))
    run = complete_run(suite, (lying, rows[1]))
    assert isinstance(run, SuiteRun)
    assert run.results[0].verdict == "fail"
