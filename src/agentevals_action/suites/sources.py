"""Where the tests of a suite stand: in the suite itself, in lists of other files, in rows of
JSONL."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.suite import NamedFile
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, kind
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.yaml_reader import decode, read_yaml_file
from agentevals_action.system.paths import Folder

YAML_SUFFIXES = (".yaml", ".yml")
ROW_SUFFIXES = (".jsonl", ".ndjson")
#: Bytes of a row of JSONL: rows are held in memory one at a time, and whole.
MAX_ROW = 10_000_000
#: Bytes of a file of JSONL that is read once and whose tests are held in memory, as those of a YAML
#: file are: a few megabytes.
_HELD = 100_000


@dataclass(frozen=True)
class Listed:
    """Tests of a YAML list, each with its place; `folder` is that of the file which holds them."""

    entries: tuple[tuple[Any, Location], ...]
    folder: Folder


@dataclass(frozen=True)
class Streamed:
    """Tests of a JSONL file, one a row; `source` is its path relative to the repository."""

    path: Path
    source: str
    folder: Folder

    def is_long(self) -> bool:
        """Whether its tests are too many to be held in memory; what cannot be looked at is not."""
        try:
            return self.path.stat().st_size > _HELD
        except OSError:
            return False

    def rows(self) -> Iterator[tuple[str, int]]:
        """The rows that are not blank, with their line numbers from 1; Unreadable when one is not
        UTF-8 or too long, OSError."""
        with self.path.open("rb") as file:
            for line, data in enumerate(iter(lambda: file.readline(MAX_ROW + 1), b""), 1):
                if len(data) > MAX_ROW:
                    problem = f"this row is longer than {MAX_ROW // 1_000_000} MB"
                    raise Unreadable(
                        Diagnostic(
                            Location(self.source, line),
                            problem,
                            "put what is long into files, and name them",
                        )
                    )
                try:
                    text = data.decode("utf-8-sig" if line == 1 else "utf-8")
                except UnicodeDecodeError:
                    self._refuse(data, line)
                    raise
                if text.strip():
                    yield text.rstrip("\r\n"), line

    def _refuse(self, data: bytes, line: int) -> None:
        try:
            decode(data, self.source)
        except Unreadable as error:
            moved = (
                Diagnostic(
                    Location(self.source, line, diagnostic.location.column),
                    diagnostic.problem,
                    diagnostic.advice,
                )
                for diagnostic in error.errors
            )
            raise Unreadable(*moved) from None


Source = Listed | Streamed


class Sources:
    """Follows the references of a suite's `tests`, to any depth; `files` are the files that were
    named on the way."""

    def __init__(self, findings: Findings) -> None:
        self.files: dict[NamedFile, None] = {}
        self._findings = findings
        self._open: list[Path] = []
        self._read: set[Path] = set()

    def of(
        self, value: Any, place: Location, folder: Folder, name: str = "tests"
    ) -> tuple[Source, ...]:
        """The sources that a `tests` field names: a list of tests and paths, or one path."""
        if isinstance(value, str):
            return self._reference(value, place, folder)
        if not isinstance(value, list) or not value:
            self._findings.error(
                place,
                f"`{name}` is {kind(value)}",
                "write a list of tests, or the path of a YAML or JSONL file",
            )
            return ()
        return tuple(self._of_list(value, place, folder))

    def file(self, path: Path, folder: Folder, place: Location) -> tuple[Source, ...]:
        """The sources in one file of tests."""
        source = folder.relative(path)
        if path in self._read and path not in self._open:
            # Its ids would be taken twice; and files that name each other twice would be read over
            # and over.
            self._findings.error(
                place, f"{source} is named a second time in this suite", "name it once"
            )
            return ()
        self._read.add(path)
        self.files[NamedFile(source, "test file")] = None
        inner = replace(folder, path=path.parent)
        if path.suffix.lower() in ROW_SUFFIXES:
            return (Streamed(path, source, inner),)
        if path.suffix.lower() not in YAML_SUFFIXES:
            self._findings.error(
                place,
                f"{source} is neither YAML nor JSONL",
                "name a file that ends in .yaml, .yml or .jsonl",
            )
            return ()
        if path in self._open:
            self._findings.error(place, f"{source} refers to itself", "take the reference out")
            return ()
        self._open.append(path)
        try:
            return self._list_in(path, source, inner)
        finally:
            self._open.pop()

    def _list_in(self, path: Path, source: str, folder: Folder) -> tuple[Source, ...]:
        try:
            data = read_yaml_file(path, source)
        except Unreadable as error:
            self._findings.unreadable(error)
            return ()
        except OSError as error:
            self._findings.error(
                Location(source), f"this file cannot be read ({error.strerror})", "make it readable"
            )
            return ()
        if isinstance(data, Items) and data:
            return self.of(data, data.location, folder)
        place = data.location if isinstance(data, Map | Items) else Location(source)
        self._findings.error(
            place,
            f"this file of tests is {kind(data)}",
            "write a list of tests, each with a hyphen in front",
        )
        return ()

    def _of_list(self, values: list[Any], place: Location, folder: Folder) -> Iterator[Source]:
        entries: list[tuple[Any, Location]] = []
        for index, value in enumerate(values):
            at = values.item_location(index) if isinstance(values, Items) else place
            if self._findings.are_enough(at):
                return
            if not isinstance(value, str):
                entries.append((value, at))
                continue
            if entries:
                yield Listed(tuple(entries), folder)
                entries = []
            yield from self._reference(value, at, folder)
        if entries:
            yield Listed(tuple(entries), folder)

    def _reference(self, text: str, place: Location, folder: Folder) -> tuple[Source, ...]:
        try:
            path = folder.resolve(text)
            if path.is_dir():
                problem, advice = (
                    f"{text!r} is a directory, which `tests` does not take",
                    "name each file",
                )
            elif any(sign in text for sign in "*?["):
                problem, advice = (
                    f"{text!r} is a glob, which `tests` does not take",
                    "name each file",
                )
            else:
                return self.file(folder.file(text), folder, place)
        except (OSError, ValueError) as error:
            problem, advice = str(error), "name a file of tests, from the folder of this one"
        self._findings.error(place, problem, advice)
        return ()
