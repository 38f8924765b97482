"""The results of tests that are made of the rows of a runner."""

from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import ErrorInfo, TestResult
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Spending, Usage
from agentevals_action.runners.formats.base import Check, Row
from agentevals_action.runners.rows import build_result, error_row, rows_by_test
from tests.support import results

ENTRY = {"name": "runner", "results": "junit", "suites": ["*"]}


def suite(**fields: Any) -> Suite:
    runner = Runner.model_validate({**ENTRY, **fields})
    return Suite(name="suite", path="evals/x.yaml", root=Path("/r"), runner=runner)


def made(*rows: Row, samples: int = 1, of: Suite | None = None) -> TestResult:
    """The result of the test `t` by its rows."""
    found = build_result(of or suite(), "t", rows, samples, results.fingerprint())
    assert found
    return found


def row(passed: bool = True, **fields: Any) -> Row:
    return Row("t", passed, location=Location("evals/more.csv", 7), **fields)


@pytest.mark.parametrize(
    ("ids", "samples", "expected"),
    [
        (["a", "b", "a"], 1, {"a": 1, "a #2": 1, "b": 1}),
        (["a", "a", "b", "b"], 2, {"a": 2, "b": 2}),
        (["a", "a", "a", "a", "b"], 2, {"a": 2, "a #2": 2, "b": 1}),
        (["a", "a", "a"], 2, {"a": 3}),
        (["a", "a", "a", "a #2"], 1, {"a": 1, "a #3": 1, "a #4": 1, "a #2": 1}),
    ],
)
def test_rows_by_test__equal_ids_are_samples_and_a_multiple_is_several_tests(
    ids: list[str], samples: int, expected: dict[str, int]
) -> None:
    found = rows_by_test([Row(name, passed=True) for name in ids], samples)
    assert {name: len(rows) for name, rows in found.items()} == expected


def test_result__the_verdict_is_that_of_the_runner_whatever_its_score() -> None:
    passed, failed = made(row(score=0.3)), made(row(passed=False, score=0.9, reason="too long"))
    assert (passed.verdict, passed.score) == ("pass", 1.0)
    assert (failed.verdict, failed.score, failed.misses) == ("fail", 0.0, ("too long",))
    assert failed.evaluator_results[0].details == {"score": 0.9}


def test_result__failed_checks_are_its_misses() -> None:
    checks = (Check("a", True, 1.0), Check("b", False, 0.2, "no b"), Check("c", None, 7.0))
    found = made(row(passed=False, reason="1 of 3 failed", checks=checks))
    assert (found.hits, found.misses) == (("a",), ("b: no b",))
    inner = found.evaluator_results[0].evaluator_results
    assert [(each.name, each.score, each.passed) for each in inner] == [
        ("a", 1.0, True),
        ("b", 0.2, False),
        ("c", None, None),
    ]


@pytest.mark.parametrize(
    ("required", "is_gate"),
    [(True, True), (False, False), (["x", "t*"], True), (["*", "!t"], False)],
)
def test_result__a_required_test_is_a_gate(required: Any, is_gate: bool) -> None:
    found = made(row(passed=False), of=suite(required=required))
    assert found.gates_failed == (("runner",) if is_gate else ())
    assert [(gate.path, gate.line) for gate in found.gates] == [("evals/more.csv", 7)] * is_gate


def test_result__a_gate_fails_in_more_than_half_of_the_samples() -> None:
    gated = suite(required=True)
    rows = [row(), row(passed=False), row(passed=False)]
    assert made(*rows[:2], samples=2, of=gated).gates_failed == ()
    assert made(*rows, samples=3, of=gated).gates_failed == ("runner",)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"error": "no key"}, "no key"),
        ({"reason": "status 500 of the API"}, "status 500 of the API"),
        ({"reason": "wrong", "checks": (Check("http", False, None, "status 503"),)}, "http: s"),
        ({"reason": "wrong"}, None),
    ],
)
def test_result__an_outage_is_an_error_and_no_failure(
    fields: dict[str, Any], error: str | None
) -> None:
    found = made(row(passed=False, **fields), of=suite(errors=r"status 5\d\d"))
    assert found.verdict == (None if error else "fail")
    assert (found.error.message if found.error else "").startswith(error or "")


def test_result__a_search_for_outages_that_does_not_end_is_an_error() -> None:
    with pytest.raises(AttemptError, match="ran for over 2 s on a reason of `runner`"):
        made(row(passed=False, reason="a" * 100), of=suite(errors="^(a|a)+b"))


def test_result__a_sample_that_is_missing_is_an_error() -> None:
    found = made(row(), samples=3)
    assert found.verdict is None
    problem = "`runner` reported fewer samples of it than it was asked for"
    assert [sample.error and sample.error.message for sample in found.samples] == [
        None,
        problem,
        problem,
    ]


def test_result__a_test_that_was_skipped_has_none() -> None:
    skipped = row(passed=False, skipped="no GPU")
    assert build_result(suite(), "t", [skipped], 1, results.fingerprint()) is None
    assert made(row(), skipped, samples=2).verdict == "pass"


def test_result__what_is_unknown_is_left_out() -> None:
    bare, known = made(row()), made(row(usage=Usage(10, 5, cost_usd=0.02), duration_ms=3.0))
    assert (bare.trace_summary, bare.spent, bare.duration_ms) == (None, Spending(), None)
    assert known.trace_summary
    assert (known.trace_summary.total_tokens, known.trace_summary.cost_usd) == (15, 0.02)
    assert known.spent == Spending(0.02, ("runner",), replies=1)


@pytest.mark.parametrize(
    ("passed", "reason", "shown"),
    [
        (True, "All assertions passed", "All assertions passed"),
        (False, "1 of 2 failed", "1 of 2 failed"),
        (False, "says no", ""),
    ],
)
def test_result__a_reason_that_a_miss_states_is_not_repeated(
    passed: bool, reason: str, shown: str
) -> None:
    checks = (Check("contains", passed, 0.0, "says no"),)
    (found,) = made(row(passed, reason=reason, checks=checks)).evaluator_results
    assert found.reasoning == shown


def test_error_row__of_a_required_test_keeps_its_gate() -> None:
    error = ErrorInfo(kind="runner", message="no key")
    found = error_row(suite(required=["t"]), "t", error)
    assert (found.verdict, found.error, len(found.gates)) == (None, error, 1)
