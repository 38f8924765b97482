"""Results files (JSON lines): written as tests finish, sorted at the end; rows of AgentV are read
too."""

import json
import logging
import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.model.result import TestResult
from agentevals_action.model.validation.field_errors import invalid_json
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.results import agentv
from agentevals_action.system.files.tree_files import output_errors, partial_name

log = logging.getLogger(__name__)

_INCOMPLETE = "%s:%d: skipped the incomplete last line: the run that wrote it was killed"
#: Validates and writes one row.
RESULT = TypeAdapter(TestResult)


class ResultsWriter:
    """Appends each result to the file at once, and sorts the rows by their index when it is closed.

    With `keep`, rows that the file already has are kept: it gives the index of a row in the run, or
    None to drop it; an incomplete last line of a killed run is dropped. Without it the file starts
    empty. In memory are 16 bytes per row. InvalidInput for an invalid row with `keep`; OutputError
    when the file cannot be written."""

    def __init__(self, path: Path, keep: Callable[[TestResult], int | None] | None = None) -> None:
        self._path = path
        # By the index of a test in the run: start and length of its row (0: there is none).
        self._starts, self._lengths = array("q"), array("q")
        self._failed = False
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._end = self._keep_rows(keep) if keep and path.is_file() else 0
            self._file = path.open("r+b" if self._end else "w+b")
            self._file.truncate(self._end)
            self._file.seek(self._end)

    def _keep_rows(self, keep: Callable[[TestResult], int | None]) -> int:
        end = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    log.warning(_INCOMPLETE, self._path, number)
                    break
                index = keep(_read(self._path, number, line)) if line.strip() else None
                if index is not None:
                    self._locate(index, end, len(line))
                end += len(line)
        return end

    def add(self, index: int, result: TestResult) -> None:
        """Writes the row of the test with this index in the run (from 0); a later row for the same
        index replaces it."""
        row = encode_row(result) + b"\n"
        failed, self._failed = self._failed, True
        with output_errors(self._path):
            self._file.write(row)
            self._file.flush()
        self._failed = failed
        self._locate(index, self._end, len(row))
        self._end += len(row)

    def _locate(self, index: int, start: int, length: int) -> None:
        missing = index + 1 - len(self._lengths)
        if missing > 0:
            self._starts.extend([0] * missing)
            self._lengths.extend([0] * missing)
        self._starts[index], self._lengths[index] = start, length

    def close(self) -> None:
        """Sorts the rows; after a row that could not be written the file stays as it is."""
        rows = [
            (start, length)
            for start, length in zip(self._starts, self._lengths, strict=True)
            if length
        ]
        offset = 0
        for start, length in rows:
            if start != offset:
                break
            offset += length
        with output_errors(self._path), self._file:
            if offset != self._end and not self._failed:
                self._rewrite(rows)

    def _rewrite(self, rows: list[tuple[int, int]]) -> None:
        partial = self._path.with_name(partial_name(self._path.name))
        try:
            with partial.open("xb") as target:
                for start, length in rows:
                    self._file.seek(start)
                    target.write(self._file.read(length))
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


def read_results(path: Path, is_complete: bool = False) -> Iterator[TestResult]:
    """The results of a file, one at a time; rows of AgentV's `index.jsonl` are read as well.

    An incomplete last line of a killed run is skipped with a warning in the log, or InvalidInput
    with `is_complete`; any other invalid line is InvalidInput with its location, as is a
    file that cannot be read."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield _read(path, number, line)
                except InvalidInput:
                    if is_complete or line.endswith(b"\n"):
                        raise
                    log.warning(_INCOMPLETE, path, number)
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be read: {error.strerror}", "name a results file (JSONL)"
        ) from error


def _read(path: Path, number: int, line: bytes) -> TestResult:
    try:
        return read_row(line, path.parent)
    except ValueError as error:
        raise InvalidInput(
            f"{path}:{number}: not a valid result: {error}",
            "use the file as it was written, or run again",
        ) from error


def read_row(line: bytes, folder: Path) -> TestResult:
    """The result in a line of ours or of AgentV; `folder` is that of the file, below which AgentV
    keeps answers. ValueError for an invalid line."""
    try:
        return RESULT.validate_json(line)
    except ValidationError as error:
        problem = error
    try:
        data = parse_json(line)
    except ValueError:
        data = None
    if agentv.is_agentv_row(data):
        return agentv.read_row(data, folder)
    raise ValueError(invalid_json(problem, line))


def parse_results(content: bytes) -> tuple[TestResult, ...]:
    """The results in the bytes of a file of ours. ValueError with the first invalid line."""
    results = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            if line.strip():
                results.append(RESULT.validate_json(line))
        except ValidationError as error:
            raise ValueError(f"line {number}: {invalid_json(error, line)}") from error
    return tuple(results)


def encode_row(result: TestResult) -> bytes:
    """The JSON of one result, without a line end."""
    try:
        return RESULT.dump_json(result)
    except (TypeError, ValueError):
        # Text of an agent with a lone surrogate, or details of a judge that JSON cannot hold.
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
