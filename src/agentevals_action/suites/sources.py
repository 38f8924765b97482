"""Finds the tests of a suite: in the suite itself, in lists of other files, in rows of JSONL."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.suite import NamedFile
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import (
    decode,
    read_yaml_file,
    unreadable,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import open_regular

YAML_SUFFIXES = (".yaml", ".yml")
ROW_SUFFIXES = (".jsonl", ".ndjson")
#: Bytes of a row of JSONL.
MAX_ROW = 10_000_000
_OTHER_SUFFIX = "name a file that ends in .yaml, .yml or .jsonl"


@dataclass(frozen=True)
class Listed:
    """Tests of a YAML list with their locations; `folder` is that of their file."""

    entries: tuple[tuple[Any, Location], ...]
    folder: Folder


@dataclass(frozen=True)
class Rows:
    """Tests of a JSONL file, one in each row; `source` is its path relative to the repository."""

    path: Path
    source: str
    folder: Folder

    def texts(self) -> Iterator[tuple[str, int]]:
        """The rows that are not blank, with their line numbers from 1; Unreadable when the file
        cannot be read, or a row is not UTF-8 or too long."""
        try:
            with open_regular(self.path) as file:
                for line, data in enumerate(iter(lambda: file.readline(MAX_ROW + 1), b""), 1):
                    if len(data) > MAX_ROW:
                        problem = f"this row is longer than {MAX_ROW // 1_000_000} MB"
                        advice = "put long data into files, and name them"
                        raise Unreadable(Diagnostic(Location(self.source, line), problem, advice))
                    text = decode(data, self.source, line)
                    if text.strip():
                        yield text.rstrip("\r\n"), line
        except OSError as error:
            raise unreadable(self.source, error) from None


Source = Listed | Rows


class Sources:
    """Follows the references of a suite's `tests`, to any depth; `files` are the files that were
    named."""

    def __init__(self, findings: Findings) -> None:
        self.files: dict[NamedFile, None] = {}
        self._findings = findings
        self._open: list[Path] = []
        self._read: set[Path] = set()

    def of(
        self, value: Any, location: Location, folder: Folder, name: str = "tests"
    ) -> tuple[Source, ...]:
        """The sources that a `tests` field names: a list of tests and paths, or one path."""
        if isinstance(value, str):
            return self._reference(value, location, folder)
        if isinstance(value, Items) and value:
            return tuple(self._of_list(value, folder))
        problem = f"`{name}` is {describe_value(value)}"
        advice = "write a list of tests, or the path of a YAML or JSONL file"
        self._findings.error(location, problem, advice)
        return ()

    def file(self, path: Path, folder: Folder, location: Location) -> tuple[Source, ...]:
        """The sources in one file of tests."""
        source = folder.relative(path)
        if path in self._read and path not in self._open:
            # Files that name each other twice would be read exponentially often.
            problem = f"{source} is named a second time in this suite"
            self._findings.error(location, problem, "name it once")
            return ()
        self._read.add(path)
        self.files[NamedFile(source, "test file")] = None
        inner = replace(folder, path=path.parent)
        if path.suffix.lower() in ROW_SUFFIXES:
            return (Rows(path, source, inner),)
        if path.suffix.lower() not in YAML_SUFFIXES:
            problem = f"{source} is neither YAML nor JSONL"
            self._findings.error(location, problem, _OTHER_SUFFIX)
            return ()
        if path in self._open:
            problem = f"{source} refers to itself"
            self._findings.error(location, problem, "take the reference out")
            return ()
        self._open.append(path)
        sources = self._list_in(path, source, inner)
        self._open.pop()
        return sources

    def _list_in(self, path: Path, source: str, folder: Folder) -> tuple[Source, ...]:
        try:
            data = read_yaml_file(path, source)
        except Unreadable as error:
            self._findings.unreadable(error)
            return ()
        if isinstance(data, Items) and data:
            return tuple(self._of_list(data, folder))
        location = data.location if isinstance(data, Map | Items) else Location(source)
        problem = f"this file of tests is {describe_value(data)}"
        advice = "write a list of tests, each with a hyphen in front"
        self._findings.error(location, problem, advice)
        return ()

    def _matching(self, text: str, location: Location, folder: Folder) -> Iterator[Source]:
        """The tests in the files that a glob matches, in the order of their paths."""
        parts = PurePosixPath(text.removeprefix("file://")).parts
        number = next(index for index, part in enumerate(parts) if _is_glob(part))
        start = folder.resolve(str(PurePosixPath(*parts[:number])))
        # `*/../*/..` visits every folder again for each pair, and outside the repository too.
        if ".." in parts[number:] or parts.count("**") > 1:
            problem = f"{text!r} has `..` after a `*`, or `**` more than once"
            raise ValueError(problem)
        pattern = str(PurePosixPath(*parts[number:]))
        paths = sorted(path for path in start.glob(pattern) if path.is_file())
        if not paths:
            raise ValueError(f"no file matches {text!r}")
        for path in paths:
            inside = folder.file(f"/{os.path.relpath(path, folder.root)}")
            yield from self.file(inside, folder, location)

    def _of_list(self, values: Items, folder: Folder) -> Iterator[Source]:
        for is_path, entries in groupby(values.located(), lambda one: isinstance(one[0], str)):
            if not is_path:
                yield Listed(tuple(entries), folder)
                continue
            for text, location in entries:
                yield from self._reference(text, location, folder)

    def _reference(self, text: str, location: Location, folder: Folder) -> tuple[Source, ...]:
        try:
            path = folder.resolve(text)
            if path.is_dir():
                problem = "a directory in `tests` of AgentV is not supported"
                self._findings.error(location, problem, f"see {dialects.DOCUMENTATION}")
                return ()
            if _is_glob(text) and not path.exists():
                return tuple(self._matching(text, location, folder))
            return self.file(folder.file(text), folder, location)
        except (OSError, ValueError) as error:
            advice = "name a file of tests, from the folder of this one"
            self._findings.error(location, str(error), advice)
        return ()


def _is_glob(text: str) -> bool:
    return any(sign in text for sign in "*?[")
