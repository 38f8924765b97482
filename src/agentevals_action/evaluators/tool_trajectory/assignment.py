"""Optimal pairs of rows and columns of a table of values, each used at most once."""

import math
from collections.abc import Sequence

Values = Sequence[Sequence[int]]
#: For each row its column, or None.
Pairs = list[int | None]


def best_assignment(values: Values) -> Pairs:
    """Columns for rows in any order, with the largest sum of values; a value of 0 is not a pair.

    This is the Hungarian method, O(rows² · columns): rows are added one by one along the cheapest
    path, with prices that keep all reduced costs at 0 or more. Column 0 is the start of each path;
    `len(values)` columns that cost nothing stand for "no pair"."""
    rows = len(values)
    costs = [[0, *(-value for value in row), *[0] * rows] for row in values]
    owners: list[int | None] = [None] * (len(costs[0]) if costs else 0)
    row_prices, column_prices = [0] * rows, [0] * len(owners)
    for row in range(rows):
        owners[0] = row
        column, previous = _cheapest_path(costs, owners, row_prices, column_prices)
        while column:
            owners[column] = owners[previous[column]]
            column = previous[column]
    pairs: Pairs = [None] * rows
    for column, owner in enumerate(owners):
        if column and owner is not None and costs[owner][column]:
            pairs[owner] = column - 1
    return pairs


def _cheapest_path(
    costs: Values, owners: Sequence[int | None], row_prices: list[int], column_prices: list[int]
) -> tuple[int, Sequence[int]]:
    """The free column at the end of the cheapest path from column 0, and each column's
    predecessor; updates the prices."""
    distances, previous = [math.inf] * len(owners), [0] * len(owners)
    visited, left = [0], list(range(1, len(owners)))
    while (row := owners[visited[-1]]) is not None:
        for column in left:
            distance = costs[row][column] - row_prices[row] - column_prices[column]
            if distance < distances[column]:
                distances[column], previous[column] = distance, visited[-1]
        nearest = min(left, key=distances.__getitem__)
        step = int(distances[nearest])
        for column in visited:
            column_prices[column] -= step
            if (owner := owners[column]) is not None:
                row_prices[owner] += step
        for column in left:
            distances[column] -= step
        left.remove(nearest)
        visited.append(nearest)
    return visited[-1], previous


def best_subsequence(values: Values) -> Pairs:
    """Columns for rows in order, each after the one before, with the largest sum of values; a value
    of 0 is not a pair.

    The longest common subsequence if all values are 0 or 1; O(rows · columns)."""
    rows, columns = len(values), len(values[0]) if values else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            value = values[row][column]
            paired = value + best[row + 1][column + 1] if value else 0
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs: Pairs = [None] * rows
    row = column = 0
    while row < rows and column < columns:
        value = values[row][column]
        if value and best[row][column] == value + best[row + 1][column + 1]:
            pairs[row] = column
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs
