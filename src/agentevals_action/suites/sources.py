"""Finds the tests of a suite: in the suite itself, in lists of other files, in rows of JSONL."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.json_reader import read_json, read_row
from agentevals_action.suites.documents.yaml_reader import (
    decode,
    read_document,
    read_yaml_file,
    unreadable,
)
from agentevals_action.suites.reading import FileReader, WrittenTest
from agentevals_action.suites.skill_evals import read_skill_tests
from agentevals_action.system.files.regular_files import open_regular
from agentevals_action.validation.field_errors import describe_value

YAML_SUFFIXES = (".yaml", ".yml")
ROW_SUFFIXES = (".jsonl", ".ndjson")
#: The tests of a skill.
JSON_SUFFIX = ".json"
#: Bytes of a row of JSONL.
MAX_ROW = 10_000_000
_OTHER_SUFFIX = "name a file that ends in .yaml, .yml or .jsonl, or the `evals.json` of a skill"


def _rows(path: Path, source: str) -> Iterator[tuple[str, int]]:
    """The rows of JSONL that are not blank, with their line numbers from 1; Unreadable when the
    file cannot be read, or a row is not UTF-8 or too long."""
    try:
        with open_regular(path) as file:
            for line, data in enumerate(iter(lambda: file.readline(MAX_ROW + 1), b""), 1):
                if len(data) > MAX_ROW:
                    problem = f"this row is longer than {MAX_ROW // 1_000_000} MB"
                    advice = "put long data into files, and name them"
                    raise Unreadable(Diagnostic(Location(source, line), problem, advice))
                text = decode(data, source, line)
                if text.strip():
                    yield text.rstrip("\r\n"), line
    except OSError as error:
        raise unreadable(source, error) from None


class Sources:
    """Follows the references of a suite's `tests`, to any depth; `files` are the files that were
    named. Errors go to the reader of the suite. `skill` is the name of its skill if it installs
    exactly one, else empty. `noun` is what the entries of files are called."""

    def __init__(self, reader: FileReader, skill: str = "", noun: str = "test") -> None:
        self.files: dict[NamedFile, None] = {}
        self._reader, self._skill, self._noun = reader, skill, noun

    def entries(
        self, value: Any, location: Location, reader: FileReader, key: str = "tests"
    ) -> Iterator[WrittenTest]:
        """The tests that a `tests` field names: a list of tests and paths, or one path."""
        if isinstance(value, str):
            yield from self._reference(value, location, reader)
        elif isinstance(value, list) and value:
            yield from self._of_list(value, reader)
        else:
            problem = f"`{key}` is {describe_value(value)}"
            advice = "write a list of tests, or the path of a YAML or JSONL file"
            reader.error(location, problem, advice)

    def file(self, path: Path, reader: FileReader, location: Location) -> Iterator[WrittenTest]:
        """The tests in one file, which is named at a location."""
        source = reader.relative(path)
        suffix = path.suffix.lower()
        named = NamedFile(source, "test file")
        if named in self.files:
            # Files that name each other twice would be read exponentially often.
            problem = f"{source} is named a second time in this suite"
            reader.error(location, problem, "name it once")
            return
        self.files[named] = None
        try:
            if suffix in ROW_SUFFIXES:
                yield from self._of_rows(path, source)
            elif suffix in YAML_SUFFIXES:
                yield from self._of_file(path, source)
            elif suffix == JSON_SUFFIX:
                document = read_json(read_document(path, source), source)
                file_reader = reader.of(document, path.parent)
                yield from read_skill_tests(document, file_reader, path, self._skill)
            else:
                reader.error(location, f"{source} is neither YAML, JSONL nor JSON", _OTHER_SUFFIX)
        except Unreadable as error:
            self._reader.diagnostics.unreadable(error)

    def _of_rows(self, path: Path, source: str) -> Iterator[WrittenTest]:
        line = 0
        for text, line in _rows(path, source):
            try:
                document = read_row(text, source, line)
            except Unreadable as error:
                self._reader.diagnostics.unreadable(error)
                continue
            yield WrittenTest(
                document.data, document.positions.start, self._reader.of(document, path.parent)
            )
        if not line:
            problem = f"this file contains no {self._noun}"
            self._reader.error(Location(source), problem, "write one JSON object a row")

    def _of_file(self, path: Path, source: str) -> Iterator[WrittenTest]:
        document = read_yaml_file(path, source)
        if isinstance(document.data, list) and document.data:
            yield from self._of_list(document.data, self._reader.of(document, path.parent))
            return
        problem = f"this file of {self._noun}s is {describe_value(document.data)}"
        advice = f"write a list of {self._noun}s, each with a hyphen in front"
        self._reader.error(document.location, problem, advice)

    def _of_list(self, values: list[Any], reader: FileReader) -> Iterator[WrittenTest]:
        for index, value in enumerate(values):
            location = reader.positions.value(values, index)
            if isinstance(value, str):
                yield from self._reference(value, location, reader)
            else:
                yield WrittenTest(value, location, reader)

    def _reference(
        self, text: str, location: Location, reader: FileReader
    ) -> Iterator[WrittenTest]:
        try:
            path = reader.resolve(text)
            if path.is_dir():
                reader.refuse_feature(location, "a directory in `tests`")
                return
            is_glob = _is_glob(text) and not path.exists()
            paths = _matching(text, reader) if is_glob else [reader.file(text)]
        except (OSError, ValueError) as error:
            advice = f"name a file of {self._noun}s, from the folder of this one"
            reader.error(location, str(error), advice)
            return
        for path in paths:
            yield from self.file(path, reader, location)


def _matching(text: str, reader: FileReader) -> list[Path]:
    """The files that a glob matches, in the order of their paths; ValueError if there are none."""
    parts = PurePosixPath(text.removeprefix("file://")).parts
    number = next(index for index, part in enumerate(parts) if _is_glob(part))
    start = reader.resolve(str(PurePosixPath(*parts[:number])))
    # `*/../*/..` visits every folder again for each pair, and outside the repository too.
    if ".." in parts[number:] or parts.count("**") > 1:
        problem = f"{text!r} has `..` after a `*`, or `**` more than once"
        raise ValueError(problem)
    pattern = str(PurePosixPath(*parts[number:]))
    paths = sorted(path for path in start.glob(pattern) if path.is_file())
    if not paths:
        raise ValueError(f"no file matches {text!r}")
    return [reader.file(f"/{os.path.relpath(path, reader.root)}") for path in paths]


def _is_glob(text: str) -> bool:
    return any(sign in text for sign in "*?[")
