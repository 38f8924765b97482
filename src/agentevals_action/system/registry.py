"""Registries of plug-ins: classes by name."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


class Registry(Mapping[str, Class]):
    """The classes of a `package`, each imported when it is looked up: the imports of all take
    longer than a suite that names few of them.

    `places` are the module in the package, and the class in the module, by name; `aliases` are
    other names, by which a class is found but not listed. `-` and `_` are equal in a name."""

    def __init__(
        self,
        package: str,
        places: Mapping[str, tuple[str, str]],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._package, self._places, self._aliases = package, places, aliases or {}

    @staticmethod
    def key(name: Any) -> str:
        """A name as it is looked up; empty for what is no name."""
        return name.replace("-", "_") if isinstance(name, str) else ""

    def spellings(self, name: str) -> tuple[str, ...]:
        """A name and its aliases."""
        return (name, *(alias for alias, meant in self._aliases.items() if meant == name))

    @property
    def all_spellings(self) -> tuple[str, ...]:
        """All names and aliases."""
        return (*self._places, *self._aliases)

    def __getitem__(self, name: str) -> Class:
        key = self.key(name)
        module, class_name = self._places[self._aliases.get(key, key)]
        plugin: Class = getattr(import_module(f"{self._package}.{module}"), class_name)
        return plugin

    def __contains__(self, name: object) -> bool:
        key = self.key(name)  # without an import
        return key in self._places or key in self._aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
