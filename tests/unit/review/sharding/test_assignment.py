"""The assignment of tests to shards: against the bound that no assignment can beat."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentevals_action.review.sharding.assignment import Item, ShardLimits, assign, distribute


def items(seconds: Sequence[float]) -> list[Item]:
    return [
        Item((("s", str(number)),), one, one, f"the test `{number}`")
        for number, one in enumerate(seconds)
    ]


def slowest(shards: Sequence[Sequence[Item]]) -> float:
    return max(sum(item.seconds for item in shard) for shard in shards)


LIMITS = ShardLimits(256, 300, 8)


@given(st.lists(st.floats(0, 1000), max_size=60), st.integers(1, 20))
@settings(deadline=None)
def test_distribute__each_item_once_and_within_the_proven_bound(
    seconds: list[float], number: int
) -> None:
    given_items = items([one + 0.05 for one in seconds])
    shards = distribute(given_items, number)
    assert len(shards) == number
    assert sorted(item.name for shard in shards for item in shard) == sorted(
        item.name for item in given_items
    )
    # Graham: every list schedule ends within total / n + (1 - 1 / n) * longest.
    total, longest = sum(one + 0.05 for one in seconds), max([0.0, *seconds]) + 0.05
    assert slowest(shards) <= total / number + longest + 1e-6


@pytest.mark.parametrize("number", [1, 2, 7, 64, 256])
def test_distribute__skewed_durations_are_within_a_tenth_of_the_bound(number: int) -> None:
    """5,000 tests; the benchmark `sharding.py` has 50,000."""
    source = random.Random(number)  # no secret
    given_items = items([source.lognormvariate(1, 1.2) for _ in range(5_000)])
    bound = max(
        max(item.seconds for item in given_items),
        sum(item.seconds for item in given_items) / number,
    )
    assert slowest(distribute(given_items, number)) <= 1.1 * bound


def test_distribute__the_same_items_give_the_same_shards() -> None:
    given_items = items([3, 1, 3, 1, 2, 2])
    assert distribute(given_items, 3) == distribute(list(given_items), 3)


def test_distribute__tests_that_take_no_time_are_spread() -> None:
    assert [len(shard) for shard in distribute(items([0.0] * 9), 3)] == [3, 3, 3]


def test_assign__one_shard_where_more_do_not_pay_off() -> None:
    found = assign(items([10.0] * 100), LIMITS)
    assert (len(found.shards), found.notes) == (1, ())


def test_assign__as_many_shards_as_the_target_needs() -> None:
    assert len(assign(items([10.0] * 2400), LIMITS).shards) == 10


def test_assign__no_more_than_the_longest_item_makes_useful() -> None:
    found = assign(items([1200.0, *[10.0] * 2400]), LIMITS)
    assert len(found.shards) == 3
    (note,) = found.notes
    assert note == (
        "the test `0` takes about 20 min 0 s on one machine: no number of shards reaches the "
        "target of 5 min 0 s"
    )


def test_assign__at_most_256_and_the_rest_is_stated() -> None:
    found = assign(items([100.0] * 10_000), LIMITS)
    assert len(found.shards) == 256
    assert "needs 417 shards, and `max-shards` and GitHub allow 256" in found.notes[0]


def test_assign__every_shard_needs_a_request_per_minute() -> None:
    found = assign(items([100.0] * 1000), ShardLimits(256, 300, 8, requests=3))
    assert len(found.shards) == 3
    assert "a target allows 3 requests per minute in all" in found.notes[0]


def test_assign__nothing_to_run_is_one_shard() -> None:
    assert assign([], LIMITS).shards == ((),)
