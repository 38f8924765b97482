import random
from dataclasses import replace

import pytest

from agentevals_action.model.comparison import NOTHING, Counts, Finding
from agentevals_action.model.result import SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    Requirement,
    Step,
    SuspectSamples,
    find_lost_requirement,
    next_step,
    steadiest,
)
from agentevals_action.review.comparison.statistics import Prior, fit_prior
from tests.support import results

PLAN = ConfirmationPlan(horizon=6, level=0.05 / 6)
STEADY = fit_prior([Counts(20, 20)] * 50 + [Counts(19, 20)] * 50)


def result(
    verdict: Verdict | None, gates: tuple[str, ...] = (), failed: tuple[str, ...] = ()
) -> TestResult:
    return results.result("a", verdict, gates=gates, failed=failed)


def sample(verdict: Verdict | None, failed: tuple[str, ...] = ()) -> SampleResult:
    return SampleResult(verdict=verdict, gates_failed=failed)


NO_GATES, GATE = frozenset[str](), frozenset({"g"})
#: The results of head and of base, and what head lost.
LOST: list[tuple[TestResult, TestResult, Requirement | None]] = [
    (result("fail"), result("pass"), Requirement("pass", NO_GATES)),
    (result("borderline"), result("pass"), Requirement("pass", NO_GATES)),
    (result("fail", ("g",), ("g",)), result("fail", ("g",)), Requirement("fail", GATE)),
    (result("fail", ("g",), ("g",)), result("pass", ("g",)), Requirement("pass", GATE)),
    (result("pass"), result("fail"), None),
    (result("fail", ("g",), ("g",)), result("fail", ("g",), ("g",)), None),
    (result("fail", ("new",), ("new",)), result("fail"), None),
    (result(None), result("pass"), None),
    (result("fail"), result(None), None),
]


@pytest.mark.parametrize(("head", "base", "lost"), LOST)
def test_find_lost_requirement__is_a_lower_class_or_a_gate_that_held(
    head: TestResult, base: TestResult, lost: Requirement | None
) -> None:
    assert find_lost_requirement(head, base) == lost


def test_requirement__what_could_not_be_scored_is_not_counted() -> None:
    held = Requirement("borderline", frozenset({"g"}))
    samples = [
        sample("pass"),
        sample("borderline"),
        sample("fail"),
        sample("pass", ("g",)),
        sample("pass", ("h",)),
        sample(None),
    ]
    assert [held.holds_in(each) for each in samples] == [True, True, False, False, True, None]
    assert held.count(samples) == Counts(3, 5)


THIN = ConfirmationPlan(horizon=6, level=0.0001)
#: The plan, the prior, and what is known of a suspect, with the next step.
STEPS: dict[str, tuple[ConfirmationPlan, Prior, SuspectSamples, Step | Finding]] = {
    "head is sampled first": (PLAN, STEADY, SuspectSamples(Counts(20, 20)), Step.SAMPLE_HEAD),
    "even without a base": (
        PLAN,
        STEADY,
        SuspectSamples(NOTHING, base_open=True),
        Step.SAMPLE_HEAD,
    ),
    "three that hold are enough": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(1, 1), Counts(3, 3), base_open=True),
        Finding.CLEARED,
    ),
    "few samples of base are repeated": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(1, 1), Counts(1, 3), base_open=True),
        Step.SAMPLE_BASE,
    ),
    "if that is possible": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(1, 1), Counts(1, 3)),
        Step.SAMPLE_HEAD,
    ),
    "a broken test": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(20, 20), Counts(0, 3)),
        Finding.REGRESSED,
    ),
    "a broken test without a prior": (
        PLAN,
        Prior(),
        SuspectSamples(Counts(5, 5), Counts(0, 6)),
        Finding.REGRESSED,
    ),
    "more samples may decide": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(20, 20), Counts(2, 3)),
        Step.SAMPLE_HEAD,
    ),
    "more samples cannot decide": (
        PLAN,
        STEADY,
        SuspectSamples(Counts(20, 20), Counts(4, 5)),
        Finding.CLEARED,
    ),
    "a flaky base": (PLAN, STEADY, SuspectSamples(Counts(12, 20), Counts(1, 3)), Finding.UNDECIDED),
    "too few of base": (
        THIN,
        Prior(),
        SuspectSamples(Counts(1, 1), Counts(0, 6)),
        Finding.UNDECIDED,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_next_step__by_the_samples_so_far(name: str) -> None:
    plan, prior, known, step = STEPS[name]
    assert next_step(plan, prior, known) is step


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 10])
def test_next_step__always_ends_within_the_horizon(horizon: int) -> None:
    rng = random.Random(horizon)
    for _ in range(500):
        trials = rng.randrange(0, 21)
        base = Counts(rng.randrange(0, trials + 1), trials)
        known = SuspectSamples(base, base_open=rng.random() < 0.5)
        rate = rng.random()
        while (step := next_step(ConfirmationPlan(horizon, 0.01), STEADY, known)) in (
            Step.SAMPLE_HEAD,
            Step.SAMPLE_BASE,
        ):
            if step is Step.SAMPLE_BASE:
                known = replace(known, base=Counts(5, 5))
            else:
                known = replace(known, head=known.head + Counts(rng.random() < rate, 1))
        assert known.head.trials <= horizon


def test_steadiest__a_base_that_wavers_between_two_classes_is_held_to_the_lower() -> None:
    def drawn(passed: int, borderline: int) -> list[SampleResult]:
        return [sample("pass")] * passed + [sample("borderline")] * borderline

    own, lower = Requirement("pass", frozenset()), Requirement("borderline", frozenset())
    assert steadiest(own, result("fail"), drawn(10, 10)) == lower
    assert steadiest(own, result("fail"), drawn(19, 1)) == own
    assert steadiest(own, result("borderline"), drawn(10, 10)) == own
    assert steadiest(lower, result("fail"), drawn(10, 10)) == lower
    assert steadiest(own, result("fail"), []) == own
