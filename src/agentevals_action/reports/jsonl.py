"""Results as JSON lines: written as tests finish, in suite order when all are done; read back, also AgentV's."""

import json
import logging
import math
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from agentevals_action import agentv_rows
from agentevals_action.errors import InvalidInput
from agentevals_action.model.result import TestResult

log = logging.getLogger(__name__)


class ResultsWriter:
    """Appends results as they come, each row on disk at once, and puts them in order when it is closed.

    With `keep` the rows that stand in the file already are gone on from: it gives a row's place in the run, or None to drop it; a last
    line that a killed run left broken is dropped. Without it the file starts empty. Of a row its place in the file alone is held in
    memory, in sixteen bytes. InvalidInput when `keep` meets a broken row; OSError when the file cannot be written.
    """

    def __init__(self, path: Path, keep: Callable[[TestResult], int | None] | None = None) -> None:
        self._path = path
        # By the place of a test in the run: where its row begins in the file, and how long it is (0: there is none).
        self._starts, self._lengths = array("q"), array("q")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._end = self._kept(keep) if keep and path.is_file() else 0
        self._file = path.open("r+b" if self._end else "wb")
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def _kept(self, keep: Callable[[TestResult], int | None]) -> int:
        end = 0
        for result, offset, length, ended in _rows(self._path):
            if not ended:
                break  # the run was killed in this row: it is made again
            index = keep(result)
            if index is not None:
                self._place(index, offset, length)
            end = offset + length
        return end

    def add(self, index: int, result: TestResult) -> None:
        """Writes the row of the test with that place in the run (from 0); a later row for the same place replaces it."""
        row = _row(result) + b"\n"
        self._file.write(row)
        self._file.flush()
        self._place(index, self._end, len(row))
        self._end += len(row)

    def _place(self, index: int, start: int, length: int) -> None:
        missing = index + 1 - len(self._lengths)
        if missing > 0:
            self._starts.extend(0 for _ in range(missing))
            self._lengths.extend(0 for _ in range(missing))
        self._starts[index], self._lengths[index] = start, length

    def _placed(self) -> Iterator[tuple[int, int]]:
        """Start and length of the rows that count, in the order of their places."""
        return ((start, length) for start, length in zip(self._starts, self._lengths, strict=True) if length)

    def close(self) -> None:
        """Puts the rows in the order of their places, whole or not at all, if they do not stand so already."""
        self._file.close()
        offset = 0
        for start, length in self._placed():
            if start != offset:
                break
            offset += length
        if offset != self._end:
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def read_results(path: Path, whole: bool = False) -> Iterator[TestResult]:
    """The results of a file, one at a time; rows of AgentV's `index.jsonl` are read as well.

    A last line that a killed run left without its end is skipped with a warning in the log, or InvalidInput when the results must be
    `whole`; any other broken line is InvalidInput with its place, as is a file that cannot be read.
    """
    return (row[0] for row in _rows(path, whole))


def _rows(path: Path, whole: bool = False) -> Iterator[tuple[TestResult, int, int, bool]]:
    """Results with offset and length in bytes of their lines, and whether the line has its end."""
    try:
        with path.open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if line.strip():
                    result = _read(path, number, line, whole)
                    if result is not None:
                        yield result, offset, len(line), line.endswith(b"\n")
                offset += len(line)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}", "name a results file (JSONL)") from error


def _read(path: Path, number: int, line: bytes, whole: bool) -> TestResult | None:
    try:
        return TestResult.model_validate_json(line)
    except ValidationError as error:
        problem = error
    try:
        data = json.loads(line)
        if agentv_rows.is_agentv_row(data):
            return agentv_rows.read_row(data, path.parent)
        reason = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'row'}: {one['msg']}" for one in problem.errors()[:3])
    except ValueError as error:  # JSON and UTF-8 errors are ValueErrors too
        reason = str(error)
        if not line.endswith(b"\n") and not whole:
            log.warning("%s:%d: the last line is incomplete and was left out: the run that wrote it was killed", path, number)
            return None
    raise InvalidInput(f"{path}:{number}: no result: {reason}", "give the file as it was written, or run again")


def _row(result: TestResult) -> bytes:
    try:
        return result.model_dump_json(by_alias=True).encode()
    except PydanticSerializationError:
        # Text of an agent that is no Unicode (a lone surrogate), or details of a judge that are no JSON.
        return json.dumps(_storable(result.model_dump(by_alias=True)), ensure_ascii=False, allow_nan=False).encode()


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
