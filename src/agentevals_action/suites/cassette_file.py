"""Cassettes: files that hold the requests of one test with their replies. A pull request may
contain them, so that they are untrusted data."""

import errno
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, TypeAdapter

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.file_model import FileModel, ListOf
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Map, plain
from agentevals_action.suites.files.yaml_reader import MAX_BYTES, read_yaml
from agentevals_action.suites.files.yaml_writer import write_yaml
from agentevals_action.system.files.regular_files import read_resolved

#: The version of the format.
FORMAT = 1
_HEADER = "# Recorded by `agentevals-action run --record`: requests of a test with their replies.\n"
_TRACE = TypeAdapter(Trace)
_PLAIN_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,99}")
_AGAIN = "record it again with `agentevals-action run --record`"


def _read_reply(data: Any) -> Trace:
    """Attack: a block of a reply names a file of the machine, whose content a judge would get."""
    trace = _TRACE.validate_python(data)
    for message in trace.messages:
        blocks = () if isinstance(message.content, str) else message.content
        if any(block.path for block in blocks):
            raise ValueError("a block of a reply names a file; remove its `path`")
    return trace


class Exchange(FileModel):
    """A request as the cache describes it, and its reply. `cached` replies are not stored."""

    request: Mapping[str, Any]
    reply: Annotated[Trace, BeforeValidator(_read_reply)]


class Cassette(FileModel):
    """The file of one test."""

    format: Literal[1]
    suite: str
    test: str
    exchanges: ListOf[Exchange]


@dataclass(frozen=True)
class CassetteFolder:
    """A folder of cassettes: `path` is relative to the `root` of a repository."""

    root: Path
    path: str

    def folder_of(self, suite: str) -> PurePosixPath:
        """The folder of a suite's cassettes, relative to the root. It has another name than the
        suite: a pattern of suites would match what is below it."""
        path = PurePosixPath(suite)
        return PurePosixPath(self.path, path.with_name(path.name.replace(".", "-")))

    def file_of(self, suite: str, test: str) -> PurePosixPath:
        """The path of a test's cassette, relative to the root. Ids that are not names of files, or
        differ only in case, get a digest."""
        name = test
        if not _PLAIN_NAME.fullmatch(test):
            digest = hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            name = f"{re.sub('[^a-z0-9]+', '-', test.lower()).strip('-')[:60]}-{digest}"
        return self.folder_of(suite) / f"{name}.cassette.yaml"

    def content(self, suite: str, test: str, findings: Findings) -> bytes | None:
        """The content of a test's cassette; None if there is none, or with errors, which are added.

        No link is followed: a cassette cannot lead out of the repository."""
        path = str(self.file_of(suite, test))
        try:
            data = read_resolved(self.root.resolve() / path, MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"this file cannot be read ({error.strerror})"
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                problem = "this file, or a folder above it, is a symbolic link or not a folder"
            findings.error(Location(path), problem, "replace it by a regular file")
            return None
        if len(data) > MAX_BYTES:
            problem = f"this cassette is longer than {MAX_BYTES // 1_000_000} MB"
            findings.error(Location(path), problem, "divide the test")
            return None
        return data


def read_cassette(
    data: bytes, path: str, suite: str, test: str, findings: Findings
) -> Sequence[Exchange] | None:
    """The exchanges of a test in the content of its cassette; None with errors, which are added.
    `path` is for messages."""
    try:
        document = read_yaml(data, path)
    except Unreadable as error:
        findings.unreadable(error)
        return None
    if not isinstance(document, Map):
        findings.error(Location(path), "this file is not a cassette", _AGAIN)
        return None
    cassette = findings.read(Cassette, document, "cassette")
    if cassette is None:
        return None
    if (cassette.suite, cassette.test) != (suite, test):
        problem = f"this cassette is of the test {cassette.test!r} of {cassette.suite!r}"
        findings.error(document.value_location("test"), problem, _AGAIN)
        return None
    return cassette.exchanges


def cassette_text(
    suite: str, test: str, exchanges: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> str:
    """The text of a cassette of requests with their replies (`reply_data`). ValueError if it could
    not be read again."""
    data = {
        "format": FORMAT,
        "suite": suite,
        "test": test,
        "exchanges": [{"request": request, "reply": reply} for request, reply in exchanges],
    }
    text = _HEADER + write_yaml(data)
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > MAX_BYTES:
        raise ValueError(f"it would be longer than {MAX_BYTES // 1_000_000} MB")
    try:
        read = plain(read_yaml(encoded, "cassette"))
    except Unreadable as error:
        raise ValueError(error.errors[0].problem) from None
    if json.dumps(read) != json.dumps(data):
        raise ValueError("a value of it has no form in YAML")
    return text


def reply_data(trace: Trace) -> dict[str, Any]:
    """A reply as JSON data without what has its default. ValueError for other data."""
    data: dict[str, Any] = _TRACE.dump_python(trace, mode="json", exclude_defaults=True)
    data.pop("cached", None)
    return data
