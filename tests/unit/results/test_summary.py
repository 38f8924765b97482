"""Totals of a suite, and rates with their intervals."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorSummary,
    SampleResult,
    SuiteSummary,
    TestResult,
    TraceSummary,
    Verdict,
)
from agentevals_action.model.trace import Spending
from agentevals_action.results.build import extended, with_samples
from agentevals_action.results.summary import interval, pass_all, summarise
from tests.support import results, reviews


def summarise_tests(*tests: TestResult) -> SuiteSummary:
    return summarise("evals/EVAL.yaml", "suite", iter(tests))


def test_summary__counts_rates_and_means() -> None:
    summary = summarise_tests(
        results.result("a", "pass", cost_usd=0.5, duration_ms=100.0),
        results.result("b", "borderline", duration_ms=50.0),
        results.result("c", "fail", cost_usd=0.25),
        results.result("d", None),
    )
    counts = (summary.passed, summary.borderline, summary.failed, summary.errored)
    assert (summary.total, counts) == (4, (1, 1, 1, 1))
    assert summary.pass_rate == 1 / 3
    assert summary.average_score == (1.0 + 0.7 + 0.2) / 3
    assert summary.spent.cost_usd == 0.75
    assert summary.duration_ms == 150.0
    assert (summary.eval_path, summary.dataset) == ("evals/EVAL.yaml", "suite")


@pytest.mark.parametrize("tests", [[], [results.result("a", None)]])
def test_summary__nothing_scored_has_no_rate_and_no_cost(tests: list[TestResult]) -> None:
    summary = summarise_tests(*tests)
    figures = (summary.pass_rate, summary.average_score, summary.spent.cost_usd)
    assert figures == (None, None, None)


def sampled(*traces: TraceSummary | None) -> TestResult:
    samples = tuple(SampleResult(trace_summary=trace) for trace in traces)
    return replace(results.result("a"), samples=samples)


def test_summary__the_usage_of_all_samples_as_far_as_it_is_known() -> None:
    summary = summarise_tests(
        sampled(
            TraceSummary(cost_usd=0.1, input_tokens=100, output_tokens=7),
            TraceSummary(cost_usd=0.2, input_tokens=50),
        ),
        sampled(TraceSummary(), None),
        sampled(TraceSummary(cost_usd=0.0, output_tokens=3)),
    )
    usage = summary.usage
    assert (usage.cost_usd, usage.input_tokens, usage.output_tokens) == (0.1 + 0.2, 150, 10)
    known = (summary.samples, summary.samples_with_cost, summary.samples_with_tokens)
    assert known == (5, 3, 1)
    unknown = summarise_tests(sampled(TraceSummary(tool_call_count=2), None)).usage
    assert (unknown.cost_usd, unknown.input_tokens, unknown.output_tokens) == (None, None, None)


def test_summary__a_row_without_samples_has_its_own_figures() -> None:
    row = replace(results.result("a"), samples=(), trace_summary=TraceSummary(cost_usd=0.5))
    assert summarise_tests(row).usage.cost_usd == 0.5


def test_summary__what_the_run_cost_and_what_the_cache_saved() -> None:
    paid: dict[str, Any] = {"cost_usd": 0.0, "replies": 4, "cached_replies": 3}
    summary = summarise_tests(
        results.result("a", **paid, unpriced_replies=1),
        results.result("b", cost_usd=0.25, replies=2),
    )
    expected = Spending(cost_usd=0.25, replies=6, cached_replies=3, unpriced_replies=1)
    assert summary.spent == expected


def test_summary__a_failed_gate_without_a_score_counts_as_failed() -> None:
    error = ErrorInfo(kind="judge", message="m")
    summary = summarise_tests(replace(results.result("a", "fail"), score=None, error=error))
    assert (summary.failed, summary.errored) == (1, 0)
    assert (summary.pass_rate, summary.average_score) == (0.0, None)


def test_summary__fresh_samples_count_for_verdicts_and_not_for_the_mean() -> None:
    fell = reviews.confirmed(results.result("a", "fail"), 5, 5)
    assert fell.verdict == "pass"
    assert fell.score == pytest.approx((0.2 + 5) / 6)
    summary = summarise_tests(fell, results.result("b"))
    assert (summary.passed, summary.pass_rate, summary.average_score) == (2, 1.0, 0.6)


def test_summary__evaluators_with_their_errors() -> None:
    both = (results.evaluated("quality", 1.0), results.evaluated("polite", 0.5))
    error = (results.evaluated("quality", None),)
    rows = (
        results.result(id, evaluator_results=found) for id, found in (("a", both), ("b", error))
    )
    assert summarise_tests(*rows).by_evaluator == (
        EvaluatorSummary(name="quality", type="contains", total=2, error=1, average_score=1.0),
        EvaluatorSummary(name="polite", type="contains", total=1, error=0, average_score=0.5),
    )


def test_summary__misses_by_how_often_then_by_first_seen() -> None:
    misses = ("seen first", "often", *(f"miss {number}" for number in range(20)))
    rows = (results.result("a", misses=misses), results.result("b", misses=("often",)))
    summary = summarise_tests(*rows)
    assert summary.top_misses[:3] == ("often", "seen first", "miss 0")
    assert len(summary.top_misses) == 10


#: Samples of each test, the verdicts of these (the first letters, `e` is an error), pass^k.
PASS_ALL: dict[str, tuple[int, list[str], float | None]] = {
    "all or not": (3, ["ppp", "ppf", "pbp", "ppp"], 0.5),
    "one sample has none": (1, ["p", "f"], None),
    "no test": (3, [], None),
    "a test with an unscored sample is not scored": (2, ["pp", "pe"], 1.0),
    "nothing scored": (2, ["pe"], None),
    "more samples: 3 of the 6 pairs of ppp and f": (2, ["pppf"], 0.5),
    "more samples with too few passes": (2, ["pffff"], 0.0),
    "a test with fewer samples makes it unknown": (3, ["ppp", "pp"], None),
}
VERDICTS: dict[str, Verdict | None] = {"p": "pass", "b": "borderline", "f": "fail", "e": None}


def of_verdicts(id: str, letters: str) -> TestResult:
    taken = [results.result(id, VERDICTS[letter]).samples[0] for letter in letters]
    return with_samples(results.result(id), taken)


@pytest.mark.parametrize("name", PASS_ALL)
def test_pass_all__by_samples(name: str) -> None:
    samples, tests, share = PASS_ALL[name]
    rows = [of_verdicts(str(number), letters) for number, letters in enumerate(tests)]
    assert pass_all(rows, samples) == share
    assert summarise("evals/EVAL.yaml", "suite", rows, samples).pass_all == share


def test_pass_all__without_the_samples_of_a_confirmation() -> None:
    row = of_verdicts("a", "ppp")
    assert pass_all([extended(row, of_verdicts("a", "fff").samples)], 3) == 1.0


@given(
    st.integers(1, 200).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
)
def test_interval__holds_the_rate_and_stays_within_0_and_1(counted: tuple[int, int]) -> None:
    successes, trials = counted
    low, high = interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    other_low, other_high = interval(trials - successes, trials)
    assert (1 - other_high, 1 - other_low) == pytest.approx((low, high))


def test_interval__known_values() -> None:
    assert interval(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert interval(0, 0) == (0, 1)
