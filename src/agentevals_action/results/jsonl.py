"""Reads and writes results files (JSON lines). `model.result.TestResult` is the format of a row."""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.model.result import TestResult
from agentevals_action.system.files.tree_files import output_errors, write_file
from agentevals_action.validation.field_errors import invalid_json

log = logging.getLogger(__name__)

T = TypeVar("T")

_INCOMPLETE = "%s:%d: skipped the incomplete last line: the run that wrote it was killed"
#: Validates and writes one row.
ROW_ADAPTER = TypeAdapter(TestResult)


class ResultsWriter:
    """Writes and flushes each result as it finishes, so that a killed run keeps them.

    The file begins with the `kept` results alone. OutputError when it cannot be written."""

    def __init__(self, path: Path, kept: Iterable[TestResult] = ()) -> None:
        self._path = path
        rows = [encode_row(result) + b"\n" for result in kept]
        write_file(path, rows)
        with output_errors(path):
            self._file = path.open("ab")

    def add(self, result: TestResult) -> None:
        """Writes a row."""
        with output_errors(self._path):
            self._file.write(encode_row(result) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # of a row that could not be written
            self._file.close()


def read_results(path: Path, is_complete: bool = False) -> Iterator[TestResult]:
    """The results of a file, one at a time.

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
        return ROW_ADAPTER.validate_json(line)
    except ValidationError as error:
        raise InvalidInput(
            f"{path}:{number}: not a valid result: {invalid_json(error)}",
            "use the file as it was written, or run again",
        ) from error


def parse_results(content: bytes) -> tuple[TestResult, ...]:
    """The results in the bytes of a file of ours. ValueError with the first invalid line."""
    results = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            if line.strip():
                results.append(ROW_ADAPTER.validate_json(line))
        except ValidationError as error:
            raise ValueError(f"line {number}: {invalid_json(error)}") from error
    return tuple(results)


def encode_row(result: TestResult) -> bytes:
    """The JSON of one result, without a line end."""
    return encode(ROW_ADAPTER, result)


def encode(adapter: TypeAdapter[T], value: T) -> bytes:
    """The JSON of a value on one line."""
    try:
        return adapter.dump_json(value)
    except (TypeError, ValueError):
        # Text of an agent with a lone surrogate, or details of a judge that JSON cannot hold.
        data = _storable(adapter.dump_python(value))
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _storable(value: Any) -> Any:
    """The value as JSON can hold it: no lone surrogates, `null` for numbers that are not finite."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(part) for part in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _storable(str(value))
