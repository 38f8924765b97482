"""The plug-ins of a folder by name, each imported when it is first asked for: a suite pays for the
types that it names."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class Registry(Mapping[str, type[T]]):
    """`places` tells the module of a package and the class in it for each name; names come in that
    order."""

    def __init__(self, package: str, places: Mapping[str, tuple[str, str]]) -> None:
        self._package, self._places = package, places

    def __getitem__(self, name: str) -> type[T]:
        module, plugin = self._places[name]
        found: type[T] = getattr(import_module(f"{self._package}.{module}"), plugin)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
