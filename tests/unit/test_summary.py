"""Totals of a suite."""

from collections.abc import Iterator

from agentevals_action.model.result import ErrorInfo, EvaluatorSummary, TestResult
from agentevals_action.summary import summarise
from tests.support import results


def test_summary__counts_rates_and_means() -> None:
    tests = [
        results.result("a", "pass", cost_usd=0.5, duration_ms=100.0),
        results.result("b", "borderline", duration_ms=50.0),
        results.result("c", "fail", cost_usd=0.25),
        results.result("d", None),
    ]
    summary = summarise("evals/EVAL.yaml", "suite", iter(tests))
    assert (summary.total, summary.passed, summary.borderline, summary.failed, summary.errored) == (4, 1, 1, 1, 1)
    assert summary.pass_rate == 1 / 3
    assert summary.average_score == (1.0 + 0.7 + 0.2) / 3
    assert summary.cost_usd == 0.75
    assert summary.duration_ms == 150.0
    assert (summary.eval_path, summary.dataset) == ("evals/EVAL.yaml", "suite")


def test_summary__nothing_scored_has_no_rate_and_no_cost() -> None:
    for tests in ([], [results.result("a", None)]):
        summary = summarise("e", "s", tests)
        assert (summary.pass_rate, summary.average_score, summary.cost_usd) == (None, None, None)


def test_summary__a_failed_gate_without_a_score_counts_as_failed() -> None:
    test = results.result("a", "fail").model_copy(update={"score": None, "error": ErrorInfo(kind="judge", message="m")})
    summary = summarise("e", "s", [test])
    assert (summary.failed, summary.errored, summary.pass_rate, summary.average_score) == (1, 0, 0.0, None)


def test_summary__evaluators_with_their_errors() -> None:
    one = (results.evaluated("quality", 1.0), results.evaluated("polite", 0.5))
    two = (results.evaluated("quality", None),)
    summary = summarise("e", "s", [results.result("a", evaluator_results=one), results.result("b", evaluator_results=two)])
    assert summary.by_evaluator == (
        EvaluatorSummary(name="quality", type="contains", total=2, error=1, average_score=1.0),
        EvaluatorSummary(name="polite", type="contains", total=1, error=0, average_score=0.5),
    )


def test_summary__misses_by_how_often_then_by_first_seen() -> None:
    first = results.result("a", misses=("seen first", "often", *(f"miss {number}" for number in range(20))))
    summary = summarise("e", "s", [first, results.result("b", misses=("often",))])
    assert summary.top_misses[:3] == ("often", "seen first", "miss 0")
    assert len(summary.top_misses) == 10


def test_summary__of_very_many_different_misses_keeps_the_frequent_ones() -> None:
    def many() -> Iterator[TestResult]:
        for number in range(25_000):
            yield results.result(f"t{number}", "fail", misses=(f"only here {number}", "everywhere"))

    summary = summarise("e", "s", many())
    assert summary.top_misses[0] == "everywhere"
    assert len(summary.top_misses) == 10


def test_summary__means_are_not_blurred_by_how_many_there_are() -> None:
    summary = summarise("e", "s", (results.result(f"t{number}").model_copy(update={"score": 0.1}) for number in range(10_000)))
    assert summary.average_score == 0.1
