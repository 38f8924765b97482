"""Where the parts of a file begin: a table beside its plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.diagnostic import Location

#: Line and column, both from 1.
Position = tuple[int, int]
#: Line and column of a key, and of its value. One tuple: there are many.
KeyPositions = tuple[int, int, int, int]
#: The positions of the parts of an object or of a list.
Parts = Mapping[str, KeyPositions] | Sequence[Position]


class Positions:
    """The positions of the objects and lists of one file, and of their parts.

    The table is by identity: the value of an alias of YAML or of `<<` has the position where it is
    written, and a changed copy has the positions of the original. Data that is not in the table
    begins at `start`, as in a row of JSONL. `path` is the file, relative to the repository."""

    def __init__(self, path: str, start: Position = (1, 1)) -> None:
        self.path = path
        self._start = start
        #: By the id of an object or a list, which is kept, so that no other gets its id.
        self._table: dict[int, tuple[Any, Position, Parts]] = {}

    @property
    def start(self) -> Location:
        """The beginning of the file, or of the row."""
        return Location(self.path, *self._start)

    def add(self, container: Any, start: Position, parts: Parts) -> None:
        """Adds an object or a list."""
        self._table[id(container)] = (container, start, parts)

    def copy(self, original: Any, changed: Any) -> None:
        """Gives a changed copy the positions of the original."""
        if entry := self._table.get(id(original)):
            self._table[id(changed)] = (changed, *entry[1:])

    def keys(self, container: Any) -> Mapping[str, KeyPositions]:
        """The positions of the keys of an object and of their values."""
        parts = self._parts(container)
        return parts if isinstance(parts, Mapping) else {}

    def _parts(self, container: Any) -> Parts:
        entry = self._table.get(id(container))
        return entry[2] if entry else {}

    def of(self, container: Any) -> Location:
        """Where an object or a list begins."""
        entry = self._table.get(id(container))
        return Location(self.path, *(entry[1] if entry else self._start))

    def key(self, container: Any, key: str) -> Location:
        """Where a key begins."""
        place = self.keys(container).get(key)
        return Location(self.path, place[0], place[1]) if place else self.of(container)

    def value(self, container: Any, step: str | int) -> Location:
        """Where a value begins, or an item."""
        return self._value(container, step) or self.of(container)

    def _value(self, container: Any, step: str | int) -> Location | None:
        parts = self._parts(container)
        if isinstance(parts, Mapping):
            place = parts.get(step) if isinstance(step, str) else None
            return Location(self.path, place[2], place[3]) if place else None
        if isinstance(step, int) and step < len(parts):
            return Location(self.path, *parts[step])
        return None

    def locate(self, data: Any, steps: Sequence[str | int]) -> Location:
        """Where steps lead that exist in the data."""
        location = self.of(data) if id(data) in self._table else self.start
        for step in steps:
            location = self._value(data, step) or location
            data = data[step]
        return location


@dataclass(frozen=True)
class Document:
    """The plain data of a file, or of a row, and its positions."""

    data: Any
    positions: Positions

    @property
    def location(self) -> Location:
        """Where the data begins."""
        return self.positions.of(self.data)
