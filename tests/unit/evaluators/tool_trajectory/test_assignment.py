"""Rows and columns put together so that the sum is largest, against trying everything."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.evaluators.tool_trajectory import assignment

tables = st.integers(0, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=width, max_size=width), max_size=4
    )
)


def best(
    values: Sequence[Sequence[int]],
    *,
    ordered: bool,
    row: int = 0,
    used: frozenset[int] = frozenset(),
) -> int:
    """The largest sum, by trying every choice."""
    if row == len(values):
        return 0
    largest = best(values, ordered=ordered, row=row + 1, used=used)
    for column, value in enumerate(values[row]):
        if value and column not in used and not (ordered and used and column < max(used)):
            largest = max(
                largest, value + best(values, ordered=ordered, row=row + 1, used=used | {column})
            )
    return largest


def total(values: Sequence[Sequence[int]], pairs: assignment.Pairs) -> int:
    return sum(values[row][column] for row, column in enumerate(pairs) if column is not None)


@given(tables)
def test_assignment__is_as_good_as_trying_everything(values: list[list[int]]) -> None:
    pairs = assignment.best_assignment(values)
    taken = [column for column in pairs if column is not None]
    assert len(pairs) == len(values)
    assert len(taken) == len(set(taken))
    assert all(values[row][column] for row, column in enumerate(pairs) if column is not None)
    assert total(values, pairs) == best(values, ordered=False)


@given(tables)
def test_subsequence__is_as_good_as_trying_everything(values: list[list[int]]) -> None:
    pairs = assignment.best_subsequence(values)
    taken = [column for column in pairs if column is not None]
    assert len(pairs) == len(values)
    assert taken == sorted(set(taken))
    assert all(values[row][column] for row, column in enumerate(pairs) if column is not None)
    assert total(values, pairs) == best(values, ordered=True)


@given(st.text("abc", max_size=6), st.text("abc", max_size=8))
def test_subsequence__of_ones_is_the_longest_common_one(wanted: str, given: str) -> None:
    def longest(one: str, other: str) -> int:
        if not one or not other:
            return 0
        if one[0] == other[0]:
            return 1 + longest(one[1:], other[1:])
        return max(longest(one[1:], other), longest(one, other[1:]))

    values = [[int(one == other) for other in given] for one in wanted]
    assert total(values, assignment.best_subsequence(values)) == longest(wanted, given)


def test_assignment__of_many_columns_of_few_values_ends() -> None:
    values = [[1 + (row + column) % 7 for column in range(50_000)] for row in range(10)]
    assert total(values, assignment.best_assignment(values)) == 70
