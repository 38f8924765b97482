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
    width = len(costs[0]) if costs else 1
    owners: list[int | None] = [None] * width
    row_prices, column_prices = [0] * rows, [0] * width
    for added in range(rows):
        owners[0] = added
        distances, previous = [math.inf] * width, [0] * width
        column, left = 0, list(range(1, width))
        visited: list[tuple[int, int]] = []
        while (row := owners[column]) is not None:
            visited.append((row, column))
            for other in left:
                distance = costs[row][other] - row_prices[row] - column_prices[other]
                if distance < distances[other]:
                    distances[other], previous[other] = distance, column
            column = min(left, key=distances.__getitem__)
            step = int(distances[column])
            for visited_row, visited_column in visited:
                row_prices[visited_row] += step
                column_prices[visited_column] -= step
            for other in left:
                distances[other] -= step
            left.remove(column)
        while column:
            owners[column] = owners[previous[column]]
            column = previous[column]
    pairs: Pairs = [None] * rows
    for column, row in enumerate(owners[1:], 1):
        if row is not None and costs[row][column]:
            pairs[row] = column - 1
    return pairs


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
