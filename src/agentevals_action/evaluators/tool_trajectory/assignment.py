"""Pure: which column goes with which row of a table of values, each at most once, so that the sum
is largest."""

from collections import Counter
from collections.abc import Sequence

Values = Sequence[Sequence[int]]
#: For each row its column, None where it has none.
Pairs = list[int | None]


def best_assignment(values: Values) -> Pairs:
    """Columns given to rows in any order so that the sum of their values is largest; 0 is no pair.
    Values are 0 or more.

    This is the Hungarian method, O(rows² * columns), over no more columns of a kind than there are
    rows."""
    columns = _columns(values)
    return _paired(
        values,
        columns,
        _cheapest([[-values[row][column] for column in columns] for row in range(len(values))]),
    )


def _columns(values: Values) -> list[int]:
    """The columns that can matter: of those that are alike, as many as there are rows, the first
    ones."""
    seen: Counter[tuple[int, ...]] = Counter()
    kept = []
    for column, kind in enumerate(zip(*values, strict=True)):
        seen[kind] += 1
        if any(kind) and seen[kind] <= len(values):
            kept.append(column)
    return kept


def _paired(values: Values, columns: Sequence[int], chosen: Sequence[int]) -> Pairs:
    real = (columns[choice] if choice < len(columns) else None for choice in chosen)
    return [
        column if column is not None and values[row][column] else None
        for row, column in enumerate(real)
    ]


def _cheapest(costs: Sequence[Sequence[int]]) -> list[int]:
    """For each row a column of its own, so that the sum of the costs is smallest; columns from
    `len(costs[0])` on cost nothing."""
    table = _Table(costs)
    for row in range(len(costs)):
        table.place(row)
    return table.columns()


class _Table:
    """The Hungarian method, row by row; column 0 is a place of work, the real ones count from 1,
    and each row has one that is free."""

    def __init__(self, costs: Sequence[Sequence[int]]) -> None:
        self._costs = [[*row, *([0] * len(costs))] for row in costs]
        self._width = len(self._costs[0]) if costs else 0
        self._owners: list[int | None] = [None] * (self._width + 1)
        self._row_prices = [0] * len(costs)
        self._column_prices = [0] * (self._width + 1)

    def columns(self) -> list[int]:
        """The column, from 0, of each row."""
        owned = {
            row: column - 1 for column, row in enumerate(self._owners) if column and row is not None
        }
        return [owned[row] for row in range(len(self._costs))]

    def place(self, row: int) -> None:
        """Gives one more row a column; rows before it may move to others."""
        self._owners[0] = row
        before = [0] * (self._width + 1)
        distances: dict[int, int] = {}
        visited = [0]
        while (owner := self._owners[visited[-1]]) is not None:
            self._measure(owner, visited, distances, before)
            nearest = min(distances, key=lambda column: distances[column])
            self._reprice(visited, distances, distances[nearest])
            del distances[nearest]
            visited.append(nearest)
        column = visited[-1]
        while column:
            self._owners[column] = self._owners[before[column]]
            column = before[column]

    def _measure(
        self, row: int, visited: Sequence[int], distances: dict[int, int], before: list[int]
    ) -> None:
        last, done = visited[-1], set(visited)
        for column in range(1, self._width + 1):
            if column not in done:
                distance = (
                    self._costs[row][column - 1]
                    - self._row_prices[row]
                    - self._column_prices[column]
                )
                if column not in distances or distance < distances[column]:
                    distances[column] = distance
                    before[column] = last

    def _reprice(self, visited: Sequence[int], distances: dict[int, int], step: int) -> None:
        for column in visited:
            owner = self._owners[column]
            if owner is not None:
                self._row_prices[owner] += step
                self._column_prices[column] -= step
        for column in distances:
            distances[column] -= step


def best_subsequence(values: Values) -> Pairs:
    """Columns given to rows in order, each after the one before, so that the sum of their values is
    largest; 0 is no pair.

    The longest common subsequence when all values are 0 or 1; O(rows * columns)."""
    rows, columns = (
        len(values),
        [column for column, kind in enumerate(zip(*values, strict=True)) if any(kind)],
    )
    best = [[0] * (len(columns) + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for place in reversed(range(len(columns))):
            value = values[row][columns[place]]
            paired = value + best[row + 1][place + 1] if value else 0
            best[row][place] = max(paired, best[row + 1][place], best[row][place + 1])
    pairs: Pairs = [None] * rows
    row = place = 0
    while row < rows and place < len(columns):
        value = values[row][columns[place]]
        if value and best[row][place] == value + best[row + 1][place + 1]:
            pairs[row] = columns[place]
            row, place = row + 1, place + 1
        elif best[row][place] == best[row + 1][place]:
            row += 1
        else:
            place += 1
    return pairs
