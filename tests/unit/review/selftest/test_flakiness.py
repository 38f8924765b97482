import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.comparison import Counts
from agentevals_action.model.result import ErrorInfo, GateRecord, SampleResult, TestResult
from agentevals_action.review.selftest import flakiness

PASS, BORDERLINE, FAIL = (
    SampleResult(score=1.0, verdict="pass"),
    SampleResult(score=0.7, verdict="borderline"),
    SampleResult(score=0.0, verdict="fail"),
)
GATED = SampleResult(score=1.0, verdict="fail", gates_failed=("safe",))
ERROR = SampleResult(error=ErrorInfo(kind="target", message="the line is dead"))
SAFE = (GateRecord(name="safe", path="EVAL.yaml", line=4),)


def result(samples: Sequence[SampleResult], **fields: Any) -> TestResult:
    plain = TestResult(
        timestamp="t",
        eval_id="a",
        dataset="s",
        score=None,
        verdict=None,
        eval_path="EVAL.yaml",
        samples=tuple(samples),
        gates=SAFE,
    )
    return replace(plain, **fields)


def test_measure__counts_what_was_seen_and_leaves_errors_aside() -> None:
    found = flakiness.measure(result([PASS, PASS, FAIL, GATED, ERROR], cost_usd=0.5))
    assert (found.passed, found.errors, found.problem) == (Counts(2, 4), 1, "the line is dead")
    assert (dict(found.verdicts), dict(found.gates)) == ({"pass": 2, "fail": 2}, {"safe": 1})
    assert found.cost_usd == pytest.approx(0.1)
    assert found.is_flaky


def test_measure__a_stored_reply_does_not_say_what_a_sample_costs() -> None:
    assert flakiness.measure(result([PASS, PASS], cost_usd=0.0, cached_replies=2)).cost_usd is None


@pytest.mark.parametrize(
    ("samples", "flaky"),
    [
        ([PASS] * 3, False),
        ([FAIL] * 3, False),
        ([GATED] * 3, False),
        ([GATED, FAIL], True),
        ([PASS, BORDERLINE], True),
        ([PASS, ERROR], False),
    ],
)
def test_is_flaky__by_verdict_or_gate(samples: Sequence[SampleResult], flaky: bool) -> None:
    assert flakiness.measure(result(samples)).is_flaky is flaky


@pytest.mark.parametrize("samples", [[], [ERROR, ERROR], [PASS, ERROR]])
def test_alarm__needs_two_samples_that_were_scored(samples: Sequence[SampleResult]) -> None:
    assert flakiness.measure(result(samples)).alarm is None


def test_alarm__is_the_share_of_pairs_that_fall() -> None:
    assert flakiness.measure(result([PASS, FAIL])).alarm == pytest.approx(1 / 2)
    assert flakiness.measure(result([PASS] * 9 + [FAIL])).alarm == pytest.approx(9 / 90)
    assert flakiness.measure(result([PASS, BORDERLINE, FAIL])).alarm == pytest.approx(3 / 6)
    assert flakiness.measure(result([GATED, FAIL])).alarm == pytest.approx(
        1 / 2
    )  # no lower class, but a gate that held
    assert flakiness.measure(result([FAIL, ERROR, FAIL])).alarm == 0


def test_alarm__is_right_on_average() -> None:
    rng = random.Random(3)
    alarms = [
        flakiness.measure(result([PASS if rng.random() < 0.9 else FAIL for _ in range(5)])).alarm
        or 0.0
        for _ in range(3000)
    ]
    assert sum(alarms) / len(alarms) == pytest.approx(0.9 * 0.1, abs=0.006)


def test_together__one_of_many() -> None:
    assert flakiness.combine_alarms([]) == 0
    assert flakiness.combine_alarms([0.5, 0.5]) == pytest.approx(0.75)
    assert flakiness.combine_alarms([0.0, 1.0]) == 1


def test_unseen__what_so_many_samples_leave_open() -> None:
    assert flakiness.undetected_rate(10) == pytest.approx(0.2589, abs=1e-4)
    assert (1 - flakiness.undetected_rate(20)) ** 20 == pytest.approx(0.05)
    assert flakiness.undetected_rate(0) == 1


def test_samples_for_drop__as_the_tables_say() -> None:
    # Casagrande, Pike and Smith's corrected sizes, one-sided 5 %, 80 % power.
    assert flakiness.samples_for_drop(1.0, 1.0) in range(3, 7)
    assert flakiness.samples_for_drop(0.5, 0.2) in range(80, 86)
    assert flakiness.samples_for_drop(0.9, 0.2) in range(50, 62)


def test_samples_for_drop__fisher_s_exact_test_with_so_many_has_the_power() -> None:
    rate, drop = 0.9, 0.4
    count = flakiness.samples_for_drop(rate, drop) or 0
    power = math.fsum(
        chance(count, before, rate) * chance(count, after, rate - drop)
        for before, after in itertools.product(range(count + 1), repeat=2)
        if fisher(count, before, after) <= 0.05
    )
    assert 0.75 <= power <= 0.9


def chance(trials: int, successes: int, rate: float) -> float:
    return math.comb(trials, successes) * rate**successes * (1 - rate) ** (trials - successes)


def fisher(count: int, before: int, after: int) -> float:
    every = before + after
    return sum(
        math.comb(every, one) * math.comb(2 * count - every, count - one)
        for one in range(after + 1)
        if every - one <= count
    ) / math.comb(2 * count, count)


def test_samples_for_drop__nothing_to_fall_from() -> None:
    assert flakiness.samples_for_drop(0.1, 0.2) is None
    assert flakiness.samples_for_drop(0.2, 0.2) is not None


def test_samples_for_mean_drop__is_what_the_power_analysis_gives() -> None:
    assert flakiness.samples_for_mean_drop([], 0.2) is None
    assert flakiness.samples_for_mean_drop([0.0] * 5, 0.2) == 1
    # One test at 0.5: 2 * 0.25 * (1.96 + 0.84)^2 / 0.04.
    assert flakiness.samples_for_mean_drop([0.25], 0.2) == 99
    assert flakiness.samples_for_mean_drop([0.25] * 10, 0.2) == 10
