"""Totals of a suite."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorSummary,
    SampleResult,
    TestResult,
    TraceSummary,
)
from agentevals_action.results.summary import summarise
from tests.support import results, reviews


def test_summary__counts_rates_and_means() -> None:
    tests = [
        results.result("a", "pass", cost_usd=0.5, duration_ms=100.0),
        results.result("b", "borderline", duration_ms=50.0),
        results.result("c", "fail", cost_usd=0.25),
        results.result("d", None),
    ]
    summary = summarise("evals/EVAL.yaml", "suite", iter(tests))
    assert (summary.total, summary.passed, summary.borderline, summary.failed, summary.errored) == (
        4,
        1,
        1,
        1,
        1,
    )
    assert summary.pass_rate == 1 / 3
    assert summary.average_score == (1.0 + 0.7 + 0.2) / 3
    assert summary.spent.cost_usd == 0.75
    assert summary.duration_ms == 150.0
    assert (summary.eval_path, summary.dataset) == ("evals/EVAL.yaml", "suite")


def test_summary__nothing_scored_has_no_rate_and_no_cost() -> None:
    for tests in ([], [results.result("a", None)]):
        summary = summarise("e", "s", tests)
        assert (summary.pass_rate, summary.average_score, summary.spent.cost_usd) == (
            None,
            None,
            None,
        )


def sampled(*figures: TraceSummary | None) -> TestResult:
    return replace(
        results.result("a"), samples=tuple(SampleResult(trace_summary=one) for one in figures)
    )


def test_summary__what_agents_took_over_all_samples() -> None:
    tests = [
        sampled(
            TraceSummary(cost_usd=0.1, input_tokens=100, output_tokens=7),
            TraceSummary(cost_usd=0.2, input_tokens=50),
        ),
        sampled(TraceSummary(), None),
        sampled(TraceSummary(cost_usd=0.0, output_tokens=3)),
    ]
    summary = summarise("e", "s", tests)
    assert (summary.usage.cost_usd, summary.samples, summary.samples_with_cost) == (0.1 + 0.2, 5, 3)
    assert (
        summary.usage.input_tokens,
        summary.usage.output_tokens,
        summary.samples_with_tokens,
    ) == (
        150,
        10,
        1,
    )


def test_summary__what_no_trace_tells_is_unknown_and_not_zero() -> None:
    summary = summarise(
        "e", "s", [sampled(TraceSummary(tool_call_count=2), None), results.result("b", None)]
    )
    assert (summary.usage.cost_usd, summary.usage.input_tokens, summary.usage.output_tokens) == (
        None,
        None,
        None,
    )
    assert (summary.samples, summary.samples_with_cost, summary.samples_with_tokens) == (3, 0, 0)


def test_summary__a_row_without_samples_has_its_own_figures() -> None:
    row = replace(results.result("a"), samples=(), trace_summary=TraceSummary(cost_usd=0.5))
    assert summarise("e", "s", [row]).usage.cost_usd == 0.5


def test_summary__what_the_run_cost_and_what_the_cache_saved() -> None:
    paid: dict[str, Any] = {
        "cost_usd": 0.0,
        "replies": 4,
        "cached_replies": 3,
        "unpriced_replies": 1,
    }
    tests = [results.result("a", **paid), results.result("b", cost_usd=0.25, replies=2)]
    summary = summarise("e", "s", tests)
    assert (
        summary.spent.cost_usd,
        summary.spent.replies,
        summary.spent.cached_replies,
        summary.spent.unpriced_replies,
    ) == (0.25, 6, 3, 1)


def test_summary__a_failed_gate_without_a_score_counts_as_failed() -> None:
    test = replace(
        results.result("a", "fail"), score=None, error=ErrorInfo(kind="judge", message="m")
    )
    summary = summarise("e", "s", [test])
    assert (summary.failed, summary.errored, summary.pass_rate, summary.average_score) == (
        1,
        0,
        0.0,
        None,
    )


def test_summary__fresh_samples_count_for_verdicts_and_not_for_the_mean() -> None:
    fell = reviews.confirmed(results.result("a", "fail"), 5, 5)
    assert fell.verdict == "pass"
    assert fell.score == pytest.approx((0.2 + 5) / 6)
    summary = summarise("e", "s", [fell, results.result("b")])
    assert (summary.passed, summary.pass_rate, summary.average_score) == (2, 1.0, 0.6)


def test_summary__evaluators_with_their_errors() -> None:
    one = (results.evaluated("quality", 1.0), results.evaluated("polite", 0.5))
    two = (results.evaluated("quality", None),)
    summary = summarise(
        "e",
        "s",
        [results.result("a", evaluator_results=one), results.result("b", evaluator_results=two)],
    )
    assert summary.by_evaluator == (
        EvaluatorSummary(name="quality", type="contains", total=2, error=1, average_score=1.0),
        EvaluatorSummary(name="polite", type="contains", total=1, error=0, average_score=0.5),
    )


def test_summary__misses_by_how_often_then_by_first_seen() -> None:
    first = results.result(
        "a", misses=("seen first", "often", *(f"miss {number}" for number in range(20)))
    )
    summary = summarise("e", "s", [first, results.result("b", misses=("often",))])
    assert summary.top_misses[:3] == ("often", "seen first", "miss 0")
    assert len(summary.top_misses) == 10
