"""The statistics of a variant, against numbers that are known."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.comparison import Counts
from agentevals_action.model.variant import smallest_p
from agentevals_action.review.comparison.statistics import paired_difference
from agentevals_action.review.comparison.variants import (
    Arms,
    compare_arms,
    stratified_p,
)

LEVEL = 0.05


def arms(declared: int, variant: int, samples: int = 3) -> Arms:
    return Arms(Counts(declared, samples), Counts(variant, samples))


tests = st.lists(
    st.builds(
        lambda sizes, shares: Arms(
            *(Counts(round(share * size), size) for size, share in zip(sizes, shares, strict=True))
        ),
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
        st.tuples(st.floats(0, 1), st.floats(0, 1)),
    ),
    max_size=6,
)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], 1),
        ([arms(4, 0, 5)], 5 / 210),  # Fisher's exact test of one table
        ([arms(5, 0, 5)], 1 / 252),
        ([arms(3, 3), arms(0, 0)], 1),  # the same verdict in all samples says nothing
        ([arms(1, 0, 1)] * 3, 1 / 8),  # with one sample, the sign test
        ([arms(1, 0, 1)] * 5 + [arms(0, 1, 1)], 7 / 64),
        ([arms(0, 1, 1)] * 5, 1),
        ([Arms(Counts(2, 2), Counts(0, 4))], 1 / 15),  # arms of different sizes
    ],
)
def test_stratified_p__known_values(pairs: list[Arms], expected: float) -> None:
    assert stratified_p(pairs) == pytest.approx(expected)


@given(tests)
def test_stratified_p__is_the_share_of_all_assignments(pairs: list[Arms]) -> None:
    """A permutation test by enumeration: of each test, which samples are the declared arm's."""
    observed = sum(pair.declared.successes for pair in pairs)
    ways: dict[int, int] = {0: 1}
    for pair in pairs:
        samples = [1] * (pair.declared.successes + pair.variant.successes)
        samples += [0] * (pair.declared.failures + pair.variant.failures)
        sums: dict[int, int] = {}
        for chosen in itertools.combinations(samples, pair.declared.trials):
            for total, number in ways.items():
                sums[total + sum(chosen)] = sums.get(total + sum(chosen), 0) + number
        ways = sums
    share = sum(number for total, number in ways.items() if total >= observed)
    assert stratified_p(pairs) == pytest.approx(share / sum(ways.values()))


def test_stratified_p__of_very_many_tests_is_close_to_the_exact_value() -> None:
    few, many = [arms(2, 1), arms(1, 2)] * 499 + [arms(3, 1)] * 2, [arms(2, 1), arms(1, 2)] * 500
    assert stratified_p([*many, *[arms(3, 1)] * 2]) == pytest.approx(stratified_p(few), abs=0.001)


@pytest.mark.parametrize(
    ("size", "can_show"),
    [((3, 1), False), ((4, 1), False), ((5, 1), True), ((1, 3), True), ((1, 2), False)],
)
def test_smallest_p__which_sizes_can_show_a_difference(
    size: tuple[int, int], can_show: bool
) -> None:
    count, samples = size
    best = [arms(samples, 0, samples)] * count
    assert smallest_p(count, samples, samples) == pytest.approx(stratified_p(best))
    assert (smallest_p(count, samples, samples) <= LEVEL) is can_show
    found = compare_arms(best, LEVEL)
    assert found is not None
    assert (found.can_show, found.helps, found.hurts) == (can_show, can_show, False)


def test_compare__rates_and_interval_are_of_tests() -> None:
    pairs = [arms(3, 0), arms(3, 1), arms(2, 2)]

    found = compare_arms(pairs, LEVEL)

    assert found is not None
    assert (found.declared, found.variant) == pytest.approx((8 / 9, 1 / 3))
    assert found.difference == paired_difference([(1.0, 0), (3 / 3 - 1 / 3, 1), (0.0, 2)])
    assert (found.helps, found.hurts, found.can_show) == (True, False, True)


def test_compare__a_variant_that_is_better() -> None:
    found = compare_arms([arms(0, 3), arms(0, 3)], LEVEL)

    assert found is not None
    assert (found.helps, found.hurts) == (False, True)


def test_compare__without_a_test_is_unknown() -> None:
    assert compare_arms([], LEVEL) is None


def test_compare__one_test_has_no_interval() -> None:
    found = compare_arms([arms(3, 0)], LEVEL)

    assert found is not None
    assert found.difference is None
    assert math.isclose(found.declared - found.variant, 1)
