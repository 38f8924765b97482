"""Where the tests of a promptfoo configuration stand: in it, or in the YAML and CSV files that it
names. Paths are relative to the configuration, also those in other files."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Suite
from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.positions import Document, Positions
from agentevals_action.suites.yaml_reader import MAX_BYTES, decode, read_settings_file
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.calls.description import digest

_PREFIX = "file://"


@dataclass(frozen=True)
class _Written:
    """A test as it is written; `variables` without those of `defaultTest`."""

    description: str | None
    variables: Mapping[str, Any]
    location: Location


class WrittenTests:
    """The tests of one configuration, which are read when the first is looked for. A configuration
    in JavaScript, or a file that cannot be read, has none."""

    def __init__(self, suite: Suite) -> None:
        self._path, self._folder = suite.path, Folder(suite.root, suite.folder)

    def locate(
        self, description: str | None, own: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> Location | None:
        """Where the test with this description stands, or without one the test with these
        variables, of which its `own` are not those of `defaultTest`; None if that is unknown."""
        if exact := self._exact.get(_key(description, own)):
            return exact
        named = [test for test in self._all if test.description == description]
        fitting = [test for test in named if _fits(test.variables, variables)]
        best = max(fitting, key=lambda test: len(test.variables), default=None)
        if best is None and description is not None:
            best = next(iter(named), None)
        return best.location if best else None

    @cached_property
    def _all(self) -> Sequence[_Written]:
        return tuple(self._tests())

    @cached_property
    def _exact(self) -> Mapping[str, Location]:
        found: dict[str, Location] = {}
        for test in self._all:
            found.setdefault(_key(test.description, test.variables), test.location)
        return found

    def _tests(self) -> Iterator[_Written]:
        document = self._document(self._path)
        if document is None or not isinstance(document.data, dict):
            return
        scenarios = document.data.get("scenarios")
        for part in (document.data, *(scenarios if isinstance(scenarios, list) else ())):
            tests = part.get("tests") if isinstance(part, dict) else None
            yield from _items(tests, document.positions)
            for name in tests if isinstance(tests, list) else [tests]:
                if isinstance(name, str):
                    yield from self._of_files(name.removeprefix(_PREFIX))

    def _of_files(self, name: str) -> Iterator[_Written]:
        """The tests of a file, or of those that a pattern matches."""
        names = [name]
        if "*" in name and "**" not in name and not name.startswith(("/", "..")):
            folder = self._folder.path
            names = [path.relative_to(folder).as_posix() for path in sorted(folder.glob(name))]
        for each in names:
            try:
                path = self._folder.file(each)
                if path.suffix == ".csv":
                    yield from self._rows(each)
                    continue
            except (Unreadable, ValueError, csv.Error):
                continue
            document = self._document(self._folder.relative(path))
            if document:
                yield from _items(document.data, document.positions)

    def _document(self, path: str) -> Document | None:
        if not path.endswith((".yaml", ".yml", ".json")):
            return None
        try:
            return read_settings_file(self._folder.root / path, self._folder.root, path)
        except Unreadable:
            return None

    def _rows(self, name: str) -> Iterator[_Written]:
        path = self._folder.file(name)
        source = self._folder.relative(path)
        text = decode(self._folder.read(path, source, MAX_BYTES), source)
        rows = csv.reader(io.StringIO(text, newline=""))
        names = [name.strip() for name in next(rows, [])]
        line = rows.line_num + 1
        for row in rows:
            values = dict(zip(names, row, strict=False))
            own = {name: value for name, value in values.items() if not name.startswith("__")}
            yield _Written(values.get("__description") or None, own, Location(source, line))
            line = rows.line_num + 1


def _items(tests: Any, positions: Positions) -> Iterator[_Written]:
    """The tests that a list contains itself."""
    for index, item in enumerate(tests if isinstance(tests, list) else ()):
        if isinstance(item, dict):
            description, variables = item.get("description"), item.get("vars")
            yield _Written(
                description if isinstance(description, str) else None,
                variables if isinstance(variables, dict) else {},
                positions.value(tests, index),
            )


def _key(description: str | None, variables: Mapping[str, Any]) -> str:
    return digest([description, variables], is_ordered=False)


def _fits(written: Mapping[str, Any], variables: Mapping[str, Any]) -> bool:
    """Whether variables as written can be these. One of a list, and a file that a path or a pattern
    names, are values of it."""
    return all(
        name in variables and _equals(value, variables[name]) for name, value in written.items()
    )


def _equals(written: Any, value: Any) -> bool:
    if isinstance(written, str) and written.startswith(_PREFIX):
        return str(value).startswith(_PREFIX)
    is_one_of = isinstance(written, list) and value in written
    return is_one_of or written == value or str(written).strip() == str(value).strip()
