import random

import pytest

from agentevals_action.model.comparison import NOTHING, Counts
from agentevals_action.model.result import GateRecord, SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    Kept,
    Known,
    Step,
    find_fall,
    next_step,
    steadiest,
)
from agentevals_action.review.comparison.statistics import Prior, fit_prior

PLAN = ConfirmationPlan(horizon=6, level=0.05 / 6)
STEADY = fit_prior([Counts(20, 20)] * 50 + [Counts(19, 20)] * 50)


def result(
    verdict: Verdict | None, gates: tuple[str, ...] = (), failed: tuple[str, ...] = ()
) -> TestResult:
    return TestResult(
        timestamp="2026-01-01T00:00:00Z",
        eval_id="a",
        dataset="s",
        score=None,
        verdict=verdict,
        eval_path="EVAL.yaml",
        gates=tuple(GateRecord(name=name, path="EVAL.yaml", line=1) for name in gates),
        gates_failed=failed,
    )


def sample(verdict: Verdict | None, failed: tuple[str, ...] = ()) -> SampleResult:
    return SampleResult(verdict=verdict, gates_failed=failed)


def test_find_fall__a_lower_class_or_a_gate_that_held() -> None:
    assert find_fall(result("fail"), result("pass")) == Kept("pass", frozenset())
    assert find_fall(result("borderline"), result("pass")) == Kept("pass", frozenset())
    assert find_fall(result("fail", ("g",), ("g",)), result("fail", ("g",))) == Kept(
        "fail", frozenset({"g"})
    )
    assert find_fall(result("fail", ("g",), ("g",)), result("pass", ("g",))) == Kept(
        "pass", frozenset({"g"})
    )


def test_find_fall__nothing_did() -> None:
    assert find_fall(result("pass"), result("fail")) is None
    assert find_fall(result("fail", ("g",), ("g",)), result("fail", ("g",), ("g",))) is None
    assert find_fall(result("fail", ("new",), ("new",)), result("fail")) is None
    assert find_fall(result(None), result("pass")) is None
    assert find_fall(result("fail"), result(None)) is None


def test_kept__what_could_not_be_scored_is_not_counted() -> None:
    held = Kept("borderline", frozenset({"g"}))
    samples = [
        sample("pass"),
        sample("borderline"),
        sample("fail"),
        sample("pass", ("g",)),
        sample("pass", ("h",)),
        sample(None),
    ]
    assert [held.by(one) for one in samples] == [True, True, False, False, True, None]
    assert held.history(samples) == Counts(3, 5)


def test_next_step__head_is_looked_at_first() -> None:
    assert next_step(PLAN, STEADY, Known(Counts(20, 20), Counts(0, 1))) is Step.SAMPLE_HEAD
    assert next_step(PLAN, STEADY, Known(NOTHING, Counts(0, 1), base_open=True)) is Step.SAMPLE_HEAD


def test_next_step__what_holds_three_times_is_noise_whatever_base_was() -> None:
    assert (
        next_step(PLAN, STEADY, Known(Counts(1, 1), Counts(0, 1), Counts(3, 3), base_open=True))
        is Step.CLEARED
    )


def test_next_step__a_thin_base_is_sampled_where_it_can_be() -> None:
    thin = Known(Counts(1, 1), Counts(0, 1), Counts(1, 3), base_open=True)
    assert next_step(PLAN, STEADY, thin) is Step.SAMPLE_BASE
    assert next_step(PLAN, STEADY, Known(thin.base, thin.raised, thin.head)) is not Step.SAMPLE_BASE


def test_next_step__a_broken_test_is_a_regression_and_at_once() -> None:
    assert (
        next_step(PLAN, STEADY, Known(Counts(20, 20), Counts(0, 1), Counts(0, 3))) is Step.REGRESSED
    )
    assert (
        next_step(PLAN, Prior(), Known(Counts(5, 5), Counts(0, 1), Counts(0, 6))) is Step.REGRESSED
    )


def test_next_step__more_is_asked_only_while_it_could_decide() -> None:
    assert (
        next_step(PLAN, STEADY, Known(Counts(20, 20), Counts(0, 1), Counts(2, 3)))
        is Step.SAMPLE_HEAD
    )
    assert (
        next_step(PLAN, STEADY, Known(Counts(20, 20), Counts(0, 1), Counts(4, 5))) is Step.CLEARED
    )
    assert next_step(PLAN, STEADY, Known(Counts(12, 20), Counts(0, 1), Counts(1, 3))) in (
        Step.UNDECIDED,
        Step.CLEARED,
    )


def test_next_step__too_thin_a_base_stays_undecided() -> None:
    plan = ConfirmationPlan(horizon=6, level=0.0001)
    assert (
        next_step(plan, Prior(), Known(Counts(1, 1), Counts(0, 1), Counts(0, 6))) is Step.UNDECIDED
    )


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 10])
def test_next_step__always_ends_within_the_horizon(horizon: int) -> None:
    rng = random.Random(horizon)
    for _ in range(500):
        trials = rng.randrange(0, 21)
        known = Known(
            Counts(rng.randrange(0, trials + 1), trials),
            Counts(0, 1),
            base_open=rng.random() < 0.5,
        )
        rate = rng.random()
        while (step := next_step(ConfirmationPlan(horizon, 0.01), STEADY, known)) in (
            Step.SAMPLE_HEAD,
            Step.SAMPLE_BASE,
        ):
            if step is Step.SAMPLE_BASE:
                known = Known(Counts(5, 5), known.raised, known.head, known.base_open)
            else:
                known = Known(
                    known.base,
                    known.raised,
                    known.head + Counts(rng.random() < rate, 1),
                    known.base_open,
                )
        assert known.head.trials <= horizon


def test_steadiest__a_base_that_wavers_between_two_classes_is_held_to_the_lower() -> None:
    def drawn(passed: int, borderline: int) -> list[SampleResult]:
        return [sample("pass")] * passed + [sample("borderline")] * borderline

    own, lower = Kept("pass", frozenset()), Kept("borderline", frozenset())
    assert steadiest(own, result("fail"), drawn(10, 10)) == lower
    assert steadiest(own, result("fail"), drawn(19, 1)) == own
    assert steadiest(own, result("borderline"), drawn(10, 10)) == own
    assert steadiest(lower, result("fail"), drawn(10, 10)) == lower
    assert steadiest(own, result("fail"), []) == own
