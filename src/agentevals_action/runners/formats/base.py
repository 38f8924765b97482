"""What a format of results is: how its runner starts, and what its results mean."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AliasPath, Field

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.yaml_reader import read_yaml
from agentevals_action.system.files.regular_files import read_resolved
from agentevals_action.validation.json_values import MAX_COUNT

#: Bytes of a file of results.
MAX_BYTES = 32 * 1024 * 1024
#: Rows of one start: a million of them, in a file of that size, take 7 GB.
MAX_ROWS = 50_000
_NAME = 200  # characters of the name of a file in a sentence

#: Tokens, and seconds or dollars, in the results of others.
Count = Annotated[int, Field(ge=0, lt=MAX_COUNT)]
Amount = Annotated[float, Field(ge=0, lt=MAX_COUNT)]


class ResultsError(Exception):
    """Why the results of a start cannot be used, as a sentence; the suite ends in that error."""


@dataclass(frozen=True)
class Check:
    """One assertion or scorer of a row; `score` is the runner's own figure, `passed` None if it has
    no verdict of its own."""

    name: str
    passed: bool | None
    score: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """One sample of a test, as a runner reports it. Rows with equal ids are samples of one test. If
    the id depends on the other tests of a start, the row has a `key`, which does not.

    `passed` is the runner's own verdict. With an `error` (an outage, no failure of the agent) or a
    reason why it was `skipped`, the row has no score. `asked` and `graded` are JSON data: what the
    question is and what scores the answer, the same in every checkout; None stands for the suite's
    files. `source` is what the format's `select` needs. Figures and the `location` of the test are
    None where they are unknown, texts empty; `duration_ms` is in milliseconds.
    `notice` is a sentence for the reader of the run; equal ones are shown once."""

    id: str
    passed: bool
    error: str = ""
    skipped: str = ""
    question: str = ""
    answer: str = ""
    target: str = ""
    asked: Any = None
    graded: Any = None
    checks: tuple[Check, ...] = ()
    score: float | None = None
    reason: str = ""
    usage: Usage = Usage()  # noqa: RUF009  # frozen
    duration_ms: float | None = None
    location: Location | None = None
    source: Any = None
    notice: str = ""
    key: str = ""


@dataclass(frozen=True)
class Selection:
    """The tests of one start: the content of the file that `{SELECTION}` names, or the words that
    stand in its place."""

    text: str | None = None
    words: tuple[str, ...] = ()


class Format(ABC):
    """The results of one runner. There is one object of each format, without state.

    `version` names the structure that is read, for messages. `command` and `again` are the words of
    the default commands after those of the `program`; without them, the entry has a command of its
    own. `variables` are set for the runner; `{STATE}` in them is a folder of its own for each side,
    `{RESULTS}` one for each start. With `is_absolute`, `{SUITE}` is an absolute path, else one from
    the root. With `is_folder`, a suite is the folder of its file, and `{SUITE}` is its path.
    `configuration` are the names of files that concern its suites in their folder and below.
    After an exit code in `exit_codes`, results can be complete; those in `failed_codes` say that a
    test failed. With `has_scores`, the results have no verdicts, and an entry may need `pass`. With
    `has_functions`, an id may be the name of a function of Python, after those of its classes."""

    name: ClassVar[str]
    version: ClassVar[str]
    program: ClassVar[str] = ""
    command: ClassVar[tuple[str, ...]] = ()
    again: ClassVar[tuple[str, ...]] = ()
    variables: ClassVar[Mapping[str, str]] = {}
    is_absolute: ClassVar[bool] = False
    is_folder: ClassVar[bool] = False
    configuration: ClassVar[tuple[str, ...]] = ()
    exit_codes: ClassVar[frozenset[int]] = frozenset({0})
    failed_codes: ClassVar[frozenset[int]] = frozenset()
    has_scores: ClassVar[bool] = False
    has_functions: ClassVar[bool] = False

    @classmethod
    def find_folder(cls, path: PurePosixPath) -> PurePosixPath:
        """The folder of a suite by its path: with `is_folder` not the hidden one of a manifest."""
        folder = path.parent
        return folder.parent if cls.is_folder and folder.name.startswith(".") else folder

    @classmethod
    def target(cls, suite: Suite) -> str:
        """The path for `{SUITE}`."""
        path = suite.folder if cls.is_folder else suite.root / suite.path
        return str(path) if cls.is_absolute else os.path.relpath(path, suite.root)

    @abstractmethod
    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """All rows in the folder `{RESULTS}` of a start in the tree of the suite. ResultsError."""

    @abstractmethod
    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """What runs the tests of these rows again, one selection for each start, none if all tests
        must run; there is one row of each test."""


def read_file(folder: Path, name: str) -> bytes:
    """The content of a file of results; `folder` has no links, and a program may have chosen the
    name. ResultsError if there is no such file in the folder, or a larger one."""
    try:
        content = read_resolved(folder / name.lstrip("/"), MAX_BYTES + 1)
    except OSError as error:
        raise ResultsError(f"it wrote no {cut(name, _NAME)} ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise ResultsError(f"its {cut(name, _NAME)} is larger than {MAX_BYTES >> 20} MiB")
    return content


def inside(*path: str) -> Any:
    """A field of a record that stands in an object in the data; None where there is none."""
    return Field(default=None, validation_alias=AliasPath(*path))


def place_in(suite: Suite, path: str, line: int) -> Location | None:
    """A line of the suite's file, or of a file that it depends on; None in any other. `path` is
    relative to the root, or for the suite's file to a folder above or below."""
    own, other = f"/{suite.path}", f"/{path}"
    if own.endswith(other) or other.endswith(own):
        return Location(suite.path, line)
    is_known = any(file.path == path for file in suite.files)
    return Location(path, line) if is_known else None


def get_content(suite: Suite, path: str) -> bytes:
    """The content of a file that the suite names; nothing if it cannot be read."""
    try:
        return read_resolved(suite.root / path, MAX_BYTES)
    except OSError:
        return b""


def objects_in(content: bytes, path: str) -> Iterator[tuple[Mapping[str, Any], Location]]:
    """Every object of a YAML or JSON file and where it begins, the outer ones first; nothing of
    what we cannot read, because runners read more."""
    try:
        document = read_yaml(content, path)
    except Unreadable:
        return
    values = [document.data]
    for value in values:  # the list grows
        if isinstance(value, dict):
            yield value, document.positions.of(value)
            values += value.values()
        elif isinstance(value, list):
            values += value
