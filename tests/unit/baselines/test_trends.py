"""The development of suites over stored runs."""

from dataclasses import replace
from typing import Any

from agentevals_action.baselines.trends import FlakyTest, compute_trends
from agentevals_action.model.baseline import StoredRun
from agentevals_action.model.result import TestResult, TraceSummary
from tests.support import results
from tests.support.trends import time_of


def run(number: int, *rows: TestResult) -> StoredRun:
    return StoredRun(rows, f"{number:040x}", time_of(number).isoformat(timespec="milliseconds"))


def row(
    id: str = "t", verdict: Any = "pass", cost: float | None = None, **fields: Any
) -> TestResult:
    made = results.result(id, verdict, **fields)
    summary = TraceSummary(cost_usd=cost)
    return replace(
        made, samples=tuple(replace(sample, trace_summary=summary) for sample in made.samples)
    )


def test_points__count_tests_and_costs_of_each_run() -> None:
    (trend,) = compute_trends(
        [
            run(1, row("a", cost=0.1), row("b", "fail", cost=0.3), row("c", None, cost=-1.0)),
            run(2, row("a"), row("b")),
        ]
    )
    first, second = trend.points
    assert (first.tests, first.passed, first.errored, first.scored) == (3, 1, 1, 2)
    assert (first.cost, second.cost, second.passed) == (0.2, None, 2)
    assert second.commit == f"{2:040x}"


def test_points__mark_what_changed_since_the_run_before() -> None:
    made = results.fingerprint()
    prints = [made, replace(made, agent="0" * 64), replace(made, grading="0" * 64)]
    (trend,) = compute_trends(run(number, row(print=print)) for number, print in enumerate(prints))
    assert [(point.question, point.grading, point.agent) for point in trend.points] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 1),
    ]


def test_variant__has_a_trend_of_its_own() -> None:
    other = replace(row("a", "fail"), variant="haiku")
    suite, variant = compute_trends([run(1, row("a"), other), run(2, row("a"))])
    assert [point.passed for point in suite.points] == [1, 1]
    assert (variant.path, variant.variant) == (suite.path, "haiku")
    assert [point.passed for point in variant.points] == [0]


def test_flaky__is_over_the_samples_of_the_latest_version() -> None:
    old = replace(results.fingerprint(), agent="0" * 64)
    verdicts = ["pass", "fail", "pass", "pass"]
    runs = [run(0, row(verdict="fail", print=old), row("steady"))]
    runs += [
        run(number + 1, row(verdict=verdict), row("steady"))
        for number, verdict in enumerate(verdicts)
    ]
    (trend,) = compute_trends(runs)
    assert trend.flaky == (FlakyTest("t", passed=3, samples=4, flips=2),)
    assert round(trend.flaky[0].rate, 3) == 0.667
