"""Rates with their intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.results import rates


@given(
    st.integers(1, 200).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
)
def test_interval__holds_the_rate_and_stays_within_0_and_1(counted: tuple[int, int]) -> None:
    successes, trials = counted
    low, high = rates.interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    other_low, other_high = rates.interval(trials - successes, trials)
    assert (1 - other_high, 1 - other_low) == pytest.approx((low, high))


def test_interval__known_values() -> None:
    assert rates.interval(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert rates.interval(0, 0) == (0, 1)
