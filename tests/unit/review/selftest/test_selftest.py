import random
from collections.abc import Sequence

import pytest

from agentevals_action.model.comparison import Counts
from agentevals_action.model.result import ErrorInfo, GateRecord, SampleResult, TestResult
from agentevals_action.review import selftest
from agentevals_action.review.selftest import SelfTest
from agentevals_action.review.selftest.simulation import Conditions

PASS, FAIL = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
ERROR = SampleResult(error=ErrorInfo(kind="target", message="the line is dead"))
GATED = SampleResult(score=1.0, verdict="fail", gates_failed=("safe",))


def result(name: str, samples: Sequence[SampleResult], suite: str = "EVAL.yaml") -> TestResult:
    return TestResult(
        timestamp="t",
        eval_id=name,
        dataset="s",
        score=None,
        verdict=None,
        eval_path=suite,
        gates=(GateRecord(name="safe", path=suite, line=1),),
        samples=tuple(samples),
    )


def examine(*results: TestResult, samples: int = 10, seed: int = 1, **steady: int) -> SelfTest:
    return selftest.examine(results, samples, steady, Conditions(), random.Random(seed))


def test_examine__steady_suites_raise_no_alarm() -> None:
    found = examine(result("a", [PASS] * 10), result("b", [FAIL] * 10))
    assert (found.total.alarm, found.total.samples, found.flaky, found.unscored) == (0, 1, (), ())
    assert [way.blocked.successes for way in found.gates] == [0, 0]
    assert "nearly steady" in selftest.advice(found, 0.05)


def test_examine__the_flakiest_first_and_each_suite_by_itself() -> None:
    found = examine(
        result("steady", [PASS] * 10, "a/EVAL.yaml"),
        result("shaky", [PASS] * 9 + [FAIL], "a/EVAL.yaml"),
        result("worst", [PASS, FAIL] * 5, "b/EVAL.yaml"),
    )
    assert [test.test for test in found.tests] == ["worst", "shaky", "steady"]
    assert [(suite.path, suite.tests, suite.flaky) for suite in found.suites] == [
        ("a/EVAL.yaml", 2, 1),
        ("b/EVAL.yaml", 1, 1),
        ("", 3, 2),
    ]
    assert [suite.alarm for suite in found.suites] == pytest.approx(
        [0.1, 25 / 90, 1 - 0.9 * 65 / 90]
    )
    assert found.total.passed == Counts(24, 30)
    assert "`worst`" in selftest.advice(found, 0.05)


@pytest.mark.slow
def test_examine__more_samples_still_what_slips_seldom() -> None:
    slips = [result(f"t{number}", [PASS] * 19 + [FAIL]) for number in range(5)]
    found = examine(*slips, samples=20)
    assert found.total.alarm > 0.05
    assert found.total.samples is not None
    assert found.total.samples > 1
    coin = examine(
        result("coin", [PASS] * 8 + [FAIL] * 2)
    )  # its mean stands on the threshold: no number of samples stills it
    assert coin.total.samples is None


@pytest.mark.slow
def test_examine__this_gate_blocks_less_than_one_run() -> None:
    found = examine(*(result(f"t{number}", [PASS] * 9 + [FAIL]) for number in range(16)))
    assert found.total.alarm > 0.8
    assert all((way.blocked.rate or 0) <= 0.07 for way in found.gates)
    assert all(way.extra_head > 0 for way in found.gates)
    assert [bool(way.extra_base) for way in found.gates] == [False, True]


def test_examine__errors_are_no_samples_and_a_test_without_is_reported() -> None:
    found = examine(
        result("torn", [PASS] * 9 + [ERROR]),
        result("dead", [ERROR] * 10),
        result("nearly", [PASS] + [ERROR] * 9),
    )
    assert [test.test for test in found.unscored] == ["dead", "nearly"]
    assert (found.total.unscored, found.total.flaky, found.total.passed) == (2, 0, Counts(10, 10))
    assert "2 tests have fewer than two scored samples" in selftest.advice(found, 0.05)


def test_examine__nothing_but_errors_has_no_figures() -> None:
    found = examine(result("dead", [ERROR] * 10))
    assert found.gates == ()
    assert found.total.samples_for_drop is None


def test_examine__what_was_not_run_counts_as_steady() -> None:
    found = examine(**{"EVAL.yaml": 3})
    assert (found.total.tests, found.tests, found.gates, found.total.alarm) == (3, (), (), 0)


@pytest.mark.slow
def test_examine__the_same_seed_finds_the_same() -> None:
    tests = [result(f"t{number}", [PASS, PASS, FAIL]) for number in range(2)]
    assert examine(*tests, samples=3) == examine(*tests, samples=3)


@pytest.mark.slow
def test_advice__a_gate_that_fails_as_often_as_not_comes_first() -> None:
    found = examine(result("gated", [PASS, GATED] * 5))
    assert "a required gate of `gated`" in selftest.advice(found, 0.05)
    assert any(way.gates.successes for way in found.gates)
