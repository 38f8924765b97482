import random
from collections.abc import Sequence

import pytest

from agentevals_action.model.comparison import Finding
from agentevals_action.model.result import GateRecord, SampleResult
from agentevals_action.review.selftest import simulation
from agentevals_action.review.selftest.simulation import Conditions, Urn

PASS, FAIL = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
GATED = SampleResult(score=1.0, verdict="fail", gates_failed=("safe",))


def pool(rate: float) -> Sequence[SampleResult]:
    return [PASS] * round(20 * rate) + [FAIL] * (20 - round(20 * rate))


def urns(count: int, rate: float, broken: float | None = None) -> list[Urn]:
    heads = [rate if broken is None or number else broken for number in range(count)]
    return [Urn(("s", f"t{number}"), pool(rate), pool(head)) for number, head in enumerate(heads)]


def draw(
    tests: Sequence[Urn], conditions: Conditions, count: int, seed: int = 1
) -> list[simulation.PullRequest]:
    return list(simulation.pull_requests(tests, conditions, count, random.Random(seed)))


def test_pull_requests__what_never_fails_is_never_a_suspect() -> None:
    for one in draw(urns(10, 1.0), Conditions(), 20):
        assert not one.plain | one.regressed
        assert one.suspects == []
        assert one.head_samples == one.base_samples == 0


def test_pull_requests__what_broke_is_found_and_is_all_that_is() -> None:
    for one in draw(urns(10, 1.0, broken=0.0), Conditions(), 20):
        assert one.plain == one.regressed == {("s", "t0")}
        assert one.head_samples == 3


def test_pull_requests__the_same_seed_draws_the_same() -> None:
    first, again, other = (draw(urns(20, 0.8), Conditions(), 10, seed) for seed in (1, 1, 2))
    assert [one.plain for one in first] == [one.plain for one in again]
    assert [one.evidence for one in first] == [one.evidence for one in again]
    assert [one.plain for one in first] != [one.plain for one in other]


@pytest.mark.slow
@pytest.mark.parametrize("conditions", [Conditions(20), Conditions(5), Conditions(1)])
def test_pull_requests__nothing_changed_blocks_seldom_where_one_run_blocks_nearly_always(
    conditions: Conditions,
) -> None:
    drawn = draw(urns(50, 0.9), conditions, 100)
    assert sum(bool(one.plain) for one in drawn) > 90
    assert sum(bool(one.regressed) for one in drawn) <= 10


def test_pull_requests__a_thin_base_is_sampled_again_only_where_it_can_be() -> None:
    for rerun in (True, False):
        drawn = draw(urns(1, 1.0, broken=0.0), Conditions(1, rerun=rerun), 3)
        assert {one.base_samples for one in drawn} == {5 if rerun else 0}
        assert {one.evidence["s", "t0"].base.trials for one in drawn} == {5 if rerun else 1}


def test_pull_requests__evidence_is_the_beginning_of_the_stream() -> None:
    for one in draw(urns(20, 0.6, broken=0.2), Conditions(), 20):
        for key, found in one.evidence.items():
            assert tuple(one.streams[key].head[: len(found.head_samples)]) == found.head_samples


def test_pull_requests__without_confirmation_each_fall_is_a_regression() -> None:
    drawn = draw(urns(20, 0.9), Conditions(20, confirm=0), 10)
    assert any(one.suspects for one in drawn)
    assert all(
        found.finding is Finding.REGRESSED for one in drawn for found in one.evidence.values()
    )


def test_pull_requests__a_required_gate_that_fails_on_both_sides_is_counted_apart() -> None:
    gate = (GateRecord(name="safe", path="EVAL.yaml", line=1),)
    for one in draw([Urn(("s", "gated"), [GATED], [GATED], gate), *urns(1, 1.0)], Conditions(), 3):
        assert one.gates == {("s", "gated")}
        assert not one.regressed | one.plain


def test_pull_requests__a_gate_that_slipped_once_does_not_fail() -> None:
    gate = (GateRecord(name="safe", path="EVAL.yaml", line=1),)
    drawn = draw([Urn(("s", "gated"), [PASS], [PASS] * 9 + [GATED], gate)], Conditions(), 100)
    assert any(one.suspects for one in drawn)
    assert sum(bool(one.gates) for one in drawn) <= 3


def test_chance_of_fall__more_samples_still_a_test_that_is_mostly_right() -> None:
    chances = [
        simulation.chance_of_fall(urns(1, 0.95)[0], samples, 400, random.Random(2))
        for samples in (1, 5, 20)
    ]
    assert chances[0] == pytest.approx(0.95 * 0.05, abs=0.02)
    assert chances[0] > chances[2]
    assert simulation.chance_of_fall(urns(1, 1.0)[0], 3, 50, random.Random(2)) == 0
