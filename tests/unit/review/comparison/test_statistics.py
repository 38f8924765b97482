import itertools
import math
import random
import statistics as reference

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.comparison import NOTHING, Counts, Difference
from agentevals_action.review.comparison.statistics import (
    Prior,
    failures_needed,
    fit_prior,
    paired_difference,
    tail,
)

histories = st.integers(0, 50).flatmap(
    lambda trials: st.builds(Counts, st.integers(0, trials), st.just(trials))
)


def drawn(rng: random.Random, rate: float, tests: int, trials: int) -> list[Counts]:
    return [Counts(sum(rng.random() < rate for _ in range(trials)), trials) for _ in range(tests)]


@given(histories, st.lists(histories, max_size=8), st.integers(1, 20))
def test_tail__is_a_falling_probability(history: Counts, suite: list[Counts], trials: int) -> None:
    prior = fit_prior(suite)
    tails = [tail(history, prior, trials, count) for count in range(trials + 2)]
    assert tails[0] == pytest.approx(1)
    assert tails[-1] == 0
    assert all(0 <= later <= earlier + 1e-12 for earlier, later in itertools.pairwise(tails))


@given(st.lists(histories, max_size=20))
def test_fit_prior__weights_sum_to_one_and_rule_nothing_out(suite: list[Counts]) -> None:
    weights = fit_prior(suite).weights
    assert math.fsum(weights) == pytest.approx(1)
    assert min(weights) > 0


def test_fit_prior__finds_a_suite_of_two_kinds_of_tests() -> None:
    rng = random.Random(1)
    prior = fit_prior([*drawn(rng, 1.0, 70, 20), *drawn(rng, 0.5, 30, 20)])
    steady, shaky = Counts(20, 20), Counts(10, 20)
    assert tail(steady, prior, 6, 3) < 1e-4
    assert tail(shaky, prior, 6, 3) > 0.5


def test_tail__a_long_history_says_the_same_as_the_binomial() -> None:
    expected = sum(math.comb(6, count) * 0.5**6 for count in range(4, 7))
    assert tail(Counts(10_000, 20_000), Prior(), 6, 4) == pytest.approx(expected, abs=1e-6)


def test_failures_needed__a_steady_test_needs_few_and_a_flaky_one_more() -> None:
    suite = fit_prior(drawn(random.Random(2), 0.95, 100, 20))
    assert failures_needed(Counts(19, 20), suite, 6, 0.05 / 6) == 3
    flaky = fit_prior(drawn(random.Random(2), 0.8, 100, 20))
    assert failures_needed(Counts(16, 20), flaky, 6, 0.05 / 6) in (4, 5)
    # One failure is never evidence, and of some histories no number is.
    assert failures_needed(Counts(1_000_000, 1_000_000), Prior(), 6, 0.05) == 2
    assert failures_needed(NOTHING, Prior(), 6, 0.001) is None
    assert failures_needed(Counts(1, 20), Prior(), 6, 0.01) is None


@pytest.mark.parametrize("values", [[0.0, 0.5, -0.25, 0.1], [0.1] * 3 + [0.2], [1.0, -1.0]])
def test_paired_difference__alone_each_is_the_plain_standard_error(values: list[float]) -> None:
    found = paired_difference([(value, index) for index, value in enumerate(values)])
    error = reference.stdev(values) / math.sqrt(len(values))
    assert found is not None
    assert found.mean == pytest.approx(reference.mean(values))
    assert found.high - found.mean == pytest.approx(1.959964 * error)
    assert found.mean - found.low == pytest.approx(1.959964 * error)
    assert found.detectable == pytest.approx((1.959964 + 0.841621) * error)


def test_paired_difference__questions_of_one_cluster_count_as_one() -> None:
    values = [(0.4, "a"), (0.0, "b"), (-0.2, "c")]
    alone, together = paired_difference(values), paired_difference(values * 10)
    assert alone is not None
    assert together is not None
    assert (together.pairs, together.clusters) == (30, 3)
    assert (together.mean, together.low) == pytest.approx((alone.mean, alone.low))


def test_paired_difference__too_little_tells_nothing() -> None:
    assert paired_difference([]) is None
    assert paired_difference([(0.5, "a")]) is None
    assert paired_difference([(0.5, "a"), (0.7, "a")]) is None


def test_difference__an_interval_with_zero_in_it_is_no_change() -> None:
    assert not Difference(0.1, 0.0, 0.2, 0.1, 9, 9).is_change
    assert not Difference(0.1, -0.1, 0.3, 0.3, 9, 9).is_change
    assert Difference(0.1, 0.01, 0.2, 0.1, 9, 9).is_change
    assert Difference(-0.1, -0.2, -0.01, 0.1, 9, 9).is_change


def test_paired_difference__covers_the_truth_as_often_as_it_says() -> None:
    rng, covered = random.Random(3), 0
    for _ in range(1000):
        found = paired_difference([(rng.gauss(0.1, 0.3), index) for index in range(60)])
        covered += found is not None and found.low <= 0.1 <= found.high
    assert 925 <= covered <= 970
