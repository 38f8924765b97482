"""Data of a file with the positions of its parts: dicts and lists that carry lines and columns."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.validation.file_model import Steps

#: Line and column, both from 1.
Position = tuple[int, int]

#: Shared by all objects without positions of their own: half of the memory of a file otherwise.
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Map(dict[str, Any]):
    """An object of a file; `source` is the path of the file relative to the repository.

    Keys without a position of their own, as in a row of JSONL, have that of the object."""

    __slots__ = ("_positions", "_spellings", "source", "start")

    def __init__(self, source: str, start: Position) -> None:
        super().__init__()
        self.source = source
        self.start = start
        self._positions: Mapping[str, tuple[Position, Position]] = _NOTHING
        self._spellings: Mapping[str, str] = _NOTHING

    def put(self, key: str, value: Any, positions: tuple[Position, Position]) -> None:
        """Sets a value and the positions of its key and of itself."""
        self[key] = value
        self._set_positions(key, positions)

    def adopt(self, other: "Map", key: str, name: str, value: Any = None) -> None:
        """Copies `key` of another map, with its positions, under its canonical `name`; `value`
        replaces the value there."""
        self[name] = other[key] if value is None else value
        if positions := other._positions.get(key):
            self._set_positions(name, positions)
        spelling = other.spelling(key)
        if spelling != name:
            self._spellings = {**self._spellings, name: spelling}

    def replaced_by(self, other: "Map") -> "Map":
        """A copy, in the same order, with the values of another map where that has them."""
        copy = Map(self.source, self.start)
        for key in self:
            copy.adopt(self, key, key, other.get(key))
        return copy

    def without(self, *keys: str) -> "Map":
        """A copy that lacks some keys."""
        copy = Map(self.source, self.start)
        for key in self:
            if key not in keys:
                copy.adopt(self, key, key)
        return copy

    def _set_positions(self, key: str, positions: tuple[Position, Position]) -> None:
        if not isinstance(self._positions, dict):
            self._positions = {}
        self._positions[key] = positions

    @property
    def location(self) -> Location:
        """Where the object begins."""
        return Location(self.source, *self.start)

    def key_location(self, key: str) -> Location:
        """Where a key begins."""
        positions = self._positions.get(key)
        return Location(self.source, *(positions[0] if positions else self.start))

    def value_location(self, key: str) -> Location:
        """Where a value begins."""
        positions = self._positions.get(key)
        return Location(self.source, *(positions[1] if positions else self.start))

    def spelling(self, key: str) -> str:
        """A key as its author spelled it."""
        return self._spellings.get(key, key)


class Items(list[Any]):
    """A list of a file with the positions of its items; `source` as in `Map`."""

    __slots__ = ("_positions", "source", "start")

    def __init__(self, source: str, start: Position) -> None:
        super().__init__()
        self.source = source
        self.start = start
        self._positions: list[Position] = []

    def put(self, value: Any, position: Position) -> None:
        """Appends an item and its position."""
        self.append(value)
        self._positions.append(position)

    def mapped(self, change: Callable[[Any, Location], Any]) -> "Items":
        """A copy with other items at the same positions."""
        copy = Items(self.source, self.start)
        for value, location in self.located():
            copy.put(change(value, location), (location.line, location.column))
        return copy

    @property
    def location(self) -> Location:
        """Where the list begins."""
        return Location(self.source, *self.start)

    def item_location(self, index: int) -> Location:
        """Where an item begins."""
        is_known = index < len(self._positions)
        return Location(self.source, *(self._positions[index] if is_known else self.start))

    def located(self) -> Iterator[tuple[Any, Location]]:
        """The items with their locations."""
        return ((value, self.item_location(index)) for index, value in enumerate(self))


def locate(data: Map, steps: Steps) -> tuple[Steps, Location]:
    """The steps that exist in the data, as their author spelled them, and where they lead."""
    found: list[str | int] = []
    location = data.location
    value: Any = data
    for step in steps:
        if isinstance(value, Map) and isinstance(step, str) and step in value:
            found.append(value.spelling(step))
            location = value.value_location(step)
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            found.append(step)
            location = value.item_location(step) if isinstance(value, Items) else location
            value = value[step]
    return tuple(found), location


def plain(data: Any) -> Any:
    """The data as plain dicts and lists, for what outlives the reading."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return data
