"""Registries of plug-ins: classes by name."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

Class = TypeVar("Class", bound=type)


class Registry(Mapping[str, Class]):
    """The classes of a `package`, each imported when it is looked up: together they import
    libraries for longer than a suite takes that names few of them.

    `places` are the module in the package, and the class in the module, by name."""

    def __init__(self, package: str, places: Mapping[str, tuple[str, str]]) -> None:
        self._package, self._places = package, places

    def __getitem__(self, name: str) -> Class:
        module, class_name = self._places[name]
        found: Class = getattr(import_module(f"{self._package}.{module}"), class_name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places  # without an import

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
