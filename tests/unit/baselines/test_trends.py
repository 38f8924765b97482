"""The development of suites over stored runs."""

from dataclasses import replace
from typing import Any

from agentevals_action.baselines.trends import FlakyTest, Idle, compute_trends
from agentevals_action.model.baseline import StoredRun
from agentevals_action.model.result import (
    ErrorInfo,
    JudgeRecord,
    SampleResult,
    TestResult,
    TraceSummary,
)
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


def advisory(row: TestResult) -> TestResult:
    """The row of a test that only an advisory judge scores, which is a gate."""
    reason = ErrorInfo(kind="advisory", message="only advisory judges")
    judged = results.evaluated("kind", 0.0, advisory="it is not calibrated")
    sample = SampleResult(error=reason, evaluator_results=(judged,))
    return replace(row, verdict=None, error=reason, samples=(sample,))


def judged(name: str, key: str) -> TestResult:
    """The row of a test that the judge with this key scores."""
    found = replace(results.evaluated("kind", 1.0), judge=JudgeRecord(key=key))
    scored = row(name)
    sample = replace(scored.samples[0], evaluator_results=(found,))
    return replace(scored, samples=(sample,))


def test_points__tests_of_advisory_judges_are_no_errors() -> None:
    (trend,) = compute_trends([run(1, row("a"), advisory(row("b", None)))])
    (point,) = trend.points
    assert (point.tests, point.passed, point.errored, point.pass_rate) == (1, 1, 0, 1.0)


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


def test_gates__that_never_failed_or_never_passed_in_enough_runs() -> None:
    gates = ("safe", "strict", "shaky")

    def rows(number: int) -> list[TestResult]:
        failed = ("strict", "shaky") if number % 2 else ("strict",)
        return [row("t", "fail", gates=gates, failed=failed), row("u", gates=gates[:1])]

    (trend,) = compute_trends(run(number, *rows(number)) for number in range(40))
    safe = Idle("never failed", ("t", "u"), 40, "safe")
    strict = Idle("never passed", ("t",), 40, "strict")
    assert trend.idle == (safe, strict)
    (short,) = compute_trends(run(number, *rows(number)) for number in range(39))
    assert short.idle == (replace(strict, runs=39),)
    (new,) = compute_trends(run(number, *rows(number)) for number in range(4))
    assert new.idle == ()


def test_gates__are_those_of_the_latest_run_over_its_last_50_and_what_is_not_scored_is_unknown() -> (
    None
):
    old = [run(number, row(gates=("safe", "gone"), failed=("safe",))) for number in range(3)]
    known = [run(number, row(gates=("safe",))) for number in range(3, 48)]
    errors = [run(number, row(verdict=None, gates=("safe",))) for number in range(48, 53)]
    (trend,) = compute_trends([*old, *known, *errors])
    assert trend.idle == (Idle("never failed", ("t",), 45, "safe"),)
    (unknown,) = compute_trends(errors * 10)
    assert unknown.idle == (Idle("never scored", ("t",), 50),)


def test_gates__of_an_advisory_judge_did_not_hold() -> None:
    scored = row(gates=("kind", "safe"))
    judged = advisory(scored).samples[0].evaluator_results
    sample = replace(scored.samples[0], evaluator_results=judged)
    rows = [replace(scored, samples=(sample,))]
    (trend,) = compute_trends(run(number, *rows) for number in range(40))
    assert trend.idle == (Idle("never failed", ("t",), 40, "safe"),)


def test_judges__that_are_not_calibrated() -> None:
    first, second = judged("t", "a"), judged("u", "b")
    runs = [run(number, first, second) for number in range(3)]
    (unknown,) = compute_trends(runs, ("b",))
    assert unknown.idle == (Idle("not calibrated", ("t",), 3, "kind"),)
    (known,) = compute_trends(runs, ("a", "b"))
    (unasked,) = compute_trends(runs)
    assert known.idle == unasked.idle == ()


def test_tests__that_no_run_scored() -> None:
    dead, late = row("dead", None), row("late", None)
    runs = [run(number, dead, row("torn", None if number else "pass")) for number in range(4)]
    runs.append(run(4, dead, late, row("torn", None)))
    (trend,) = compute_trends(runs)
    assert trend.idle == (Idle("never scored", ("dead",), 5),)
