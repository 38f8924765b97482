"""Results as JSON lines: written as tests finish, in suite order when all are done; read back, also
AgentV's."""

import hashlib
import json
import logging
import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.model.result import TestResult
from agentevals_action.results.rows import RESULT, read_row
from agentevals_action.system.tree_files import output_errors

log = logging.getLogger(__name__)

#: Bytes that are held of each row, by which it is known again.
_DIGEST = 16


class ResultsWriter:
    """Appends results as they come, each row on disk at once, and puts them in order when it is
    closed.

    With `keep` the rows that stand in the file already are gone on from: it gives a row's place in
    the run, or None to drop it; a last line that a killed run left broken is dropped. Without it
    the file starts empty. Of a row its place in the file and a digest are held in memory, in 32
    bytes. InvalidInput when `keep` meets a broken row; OutputError when the file cannot be written.
    """

    def __init__(self, path: Path, keep: Callable[[TestResult], int | None] | None = None) -> None:
        self._path = path
        # By the place of a test in the run: where its row begins in the file, and how long it is
        # (0: there is none).
        self._starts, self._lengths = array("q"), array("q")
        self._digests = bytearray()
        self._failed = False
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._end = self._kept(keep) if keep and path.is_file() else 0
            self._file = path.open("r+b" if self._end else "wb")
            self._file.truncate(self._end)
            self._file.seek(self._end)

    def _kept(self, keep: Callable[[TestResult], int | None]) -> int:
        end = 0
        for result, offset, line in _rows(self._path):
            if not line.endswith(b"\n"):
                break  # the run was killed in this row: it is made again
            index = keep(result)
            if index is not None:
                self._place(index, offset, line)
            end = offset + len(line)
        return end

    def add(self, index: int, result: TestResult) -> None:
        """Writes the row of the test with that place in the run (from 0); a later row for the same
        place replaces it."""
        row = encode_row(result) + b"\n"
        failed, self._failed = self._failed, True
        with output_errors(self._path):
            self._file.write(row)
            self._file.flush()
        self._failed = failed
        self._place(index, self._end, row)
        self._end += len(row)

    def _place(self, index: int, start: int, row: bytes) -> None:
        missing = index + 1 - len(self._lengths)
        if missing > 0:
            self._starts.extend(0 for _ in range(missing))
            self._lengths.extend(0 for _ in range(missing))
            self._digests.extend(bytes(missing * _DIGEST))
        self._starts[index], self._lengths[index] = start, len(row)
        self._digests[index * _DIGEST : (index + 1) * _DIGEST] = _digest(row)

    def _placed(self) -> Iterator[tuple[int, int]]:
        """Start and length of the rows that count, in the order of their places."""
        return (
            (start, length)
            for start, length in zip(self._starts, self._lengths, strict=True)
            if length
        )

    def seal(self) -> bytes:
        """The digests of the rows that count, in the order of their places: what `read_back` knows
        them again by."""
        parts = (
            self._digests[index * _DIGEST : (index + 1) * _DIGEST]
            for index, length in enumerate(self._lengths)
            if length
        )
        return b"".join(parts)

    def close(self) -> None:
        """Puts the rows in the order of their places, whole or not at all, if they do not stand so
        already; after a row that could not be written all stay as they are, to be gone on from."""
        with output_errors(self._path):
            self._file.close()
            offset = 0
            for start, length in self._placed():
                if start != offset:
                    break
                offset += length
            if offset != self._end and not self._failed:
                self._rewrite()

    def _rewrite(self) -> None:
        partial = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with self._path.open("rb") as source, partial.open("wb") as target:
                for start, length in self._placed():
                    source.seek(start)
                    target.write(source.read(length))
            partial.replace(self._path)
        finally:
            partial.unlink(missing_ok=True)

    def __enter__(self) -> "ResultsWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_results(path: Path, whole: bool = False) -> Iterator[TestResult]:
    """The results of a file, one at a time; rows of AgentV's `index.jsonl` are read as well.

    A last line that a killed run left without its end is skipped with a warning in the log, or
    InvalidInput when the results must be `whole`; any other broken line is InvalidInput with its
    place, as is a file that cannot be read."""
    return (row[0] for row in _rows(path, whole))


def read_back(path: Path, seal: bytes) -> Iterator[TestResult]:
    """The results that this run wrote, one at a time, by the `seal` of their writer; OutputError
    when one is missing, was added, or is not what was written: what an agent can write to must not
    decide about it."""
    return (RESULT.validate_json(line) for line in _sealed(path, seal))


def check_unchanged(path: Path, seal: bytes | None) -> None:
    """OutputError when a results file is not what this run wrote, by the `seal` of its writer; None
    where it wrote none."""
    if seal is not None:
        for _ in _sealed(path, seal):
            pass
    elif path.is_symlink() or path.exists():
        raise _changed(path, "it is none of this run's")


def _sealed(path: Path, seal: bytes) -> Iterator[bytes]:
    """The rows of a file, as long as they are those of the seal."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if seal[(number - 1) * _DIGEST : number * _DIGEST] != _digest(line):
                    raise _changed(path, f"row {number} is not what was written")
                yield line
    except OSError as error:
        raise _changed(path, f"it cannot be read any more ({error.strerror})") from error
    if number * _DIGEST != len(seal):
        raise _changed(path, f"it has {number} of {len(seal) // _DIGEST} rows")


def _changed(path: Path, how: str) -> OutputError:
    hint = "see which agent, hook or judge writes there and run again; `run --output` can name a file outside of their reach"
    return OutputError(f"the results file {path} was changed while the run went on: {how}", hint)


def _digest(row: bytes) -> bytes:
    return hashlib.sha256(row).digest()[:_DIGEST]


def _rows(path: Path, whole: bool = False) -> Iterator[tuple[TestResult, int, bytes]]:
    """Results with the offset of their lines, and the lines."""
    try:
        with path.open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if line.strip():
                    result = _read(path, number, line, whole)
                    if result is not None:
                        yield result, offset, line
                offset += len(line)
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be read: {error.strerror}", "name a results file (JSONL)"
        ) from error


def _read(path: Path, number: int, line: bytes, whole: bool) -> TestResult | None:
    try:
        return read_row(line, path.parent)
    except ValueError as error:  # JSON and UTF-8 errors are ValueErrors too
        reason = str(error)
        if not line.endswith(b"\n") and not whole:
            log.warning(
                "%s:%d: the last line is incomplete and was left out: the run that wrote it was killed",
                path,
                number,
            )
            return None
    raise InvalidInput(
        f"{path}:{number}: no result: {reason}", "give the file as it was written, or run again"
    )


def encode_row(result: TestResult) -> bytes:
    """The JSON of one result, without a line end."""
    try:
        return RESULT.dump_json(result)
    except (TypeError, ValueError):
        # Text of an agent that is no Unicode (a lone surrogate), or details of a judge that are no
        # JSON.
        data = _storable(RESULT.dump_python(result))
        return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _storable(str(value))
