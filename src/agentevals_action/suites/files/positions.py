"""Plain data that knows where it stands: dicts and lists that carry the line and column of
everything in them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from agentevals_action.model.diagnostic import Location

#: Line and column, both from 1.
Place = tuple[int, int]

#: What most objects have noted; each its own empty dict would be half of the memory that a file
#: takes.
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Map(dict[str, Any]):
    """An object of a file; `source` is the file's path relative to the repository.

    Places of its keys and values are those that were noted with `put`; for the others its own place
    stands in, as in a row of JSONL that is read for its data alone."""

    __slots__ = ("_places", "_written", "place", "source")

    def __init__(self, source: str, place: Place) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self._places: Mapping[str, tuple[Place, Place]] = _NOTHING
        self._written: Mapping[str, str] = _NOTHING

    def put(self, key: str, value: Any, places: tuple[Place, Place]) -> None:
        """Sets a value and notes the places of its key and of itself."""
        self[key] = value
        self._note(key, places)

    def _note(self, key: str, places: tuple[Place, Place]) -> None:
        if not isinstance(self._places, dict):
            self._places = {}
        self._places[key] = places

    def adopt(self, other: "Map", key: str, name: str) -> None:
        """Takes over `key` of another map, with its places, under its canonical `name`."""
        self[name] = other[key]
        if places := other._places.get(key):
            self._note(name, places)
        if key != name:
            self._written = {**self._written, name: key}

    def replace(self, key: str, value: Any) -> None:
        """Puts another value in the place of one that is there."""
        self[key] = value

    @property
    def location(self) -> Location:
        """Where the object begins."""
        return Location(self.source, *self.place)

    def key_location(self, key: str) -> Location:
        """Where a key stands."""
        places = self._places.get(key)
        return Location(self.source, *(places[0] if places else self.place))

    def value_location(self, key: str) -> Location:
        """Where a value begins."""
        places = self._places.get(key)
        return Location(self.source, *(places[1] if places else self.place))

    def written(self, key: str) -> str:
        """A key as its author spelled it."""
        return self._written.get(key, key)


class Items(list[Any]):
    """A list of a file, with the place of each item; `source` as in `Map`."""

    __slots__ = ("_places", "place", "source")

    def __init__(self, source: str, place: Place) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self._places: list[Place] = []

    def put(self, value: Any, place: Place) -> None:
        """Appends an item and notes its place."""
        self.append(value)
        self._places.append(place)

    @property
    def location(self) -> Location:
        """Where the list begins."""
        return Location(self.source, *self.place)

    def item_location(self, index: int) -> Location:
        """Where an item begins."""
        return Location(
            self.source, *(self._places[index] if index < len(self._places) else self.place)
        )


def locate(data: Any, path: Sequence[str | int]) -> tuple[tuple[str | int, ...], Location | None]:
    """How far a path leads into the data, and where that is.

    Steps that name nothing in the data (the branches of a union) are passed over; the names come
    back as their author spelled them."""
    found: list[str | int] = []
    place = data.location if isinstance(data, Map | Items) else None
    for step in path:
        if isinstance(data, Map) and isinstance(step, str) and step in data:
            found.append(data.written(step))
            place = data.value_location(step)
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            found.append(step)
            place = data.item_location(step) if isinstance(data, Items) else place
            data = data[step]
    return tuple(found), place


def plain(data: Any) -> Any:
    """The data without places, for what outlives the reading: plain dicts and lists."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return data
