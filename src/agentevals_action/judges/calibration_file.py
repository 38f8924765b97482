"""Reads and writes `calibration.json`."""

import json
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.judge import CALIBRATION_FILE, Calibration
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.json_reader import read_json
from agentevals_action.suites.documents.yaml_reader import MAX_BYTES
from agentevals_action.suites.reading import FileReader
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.validation.field_errors import describe_value

_ADVICE = "write it again with `agentevals-action judge calibrate`"


@dataclass(frozen=True)
class CalibrationContent:
    """The content of the file; None, with its `errors`, if a part of it is invalid."""

    calibration: Calibration | None = None
    errors: tuple[Diagnostic, ...] = ()


def read_calibration(file: Path) -> bytes | None:
    """The bytes of the file of a checkout (its path absolute), None without the file. InvalidInput
    if it cannot be read."""
    if not is_present(file):
        return None
    try:
        return read_regular(file, MAX_BYTES + 1)
    except OSError as error:
        problem = f"{file} cannot be read: {error.strerror}"
        raise InvalidInput(problem, "replace it by a regular file") from None


def parse_calibration(data: bytes | None, path: str = CALIBRATION_FILE) -> CalibrationContent:
    """The calibration in the bytes of the file at `path`, relative to the repository."""
    if data is None:
        return CalibrationContent()
    try:
        document = read_json(data, path)
    except Unreadable as error:
        return CalibrationContent(errors=error.errors)
    if not isinstance(document.data, dict):
        problem = f"this calibration is {describe_value(document.data)}"
        return CalibrationContent(errors=(Diagnostic(Location(path), problem, _ADVICE),))
    reader = FileReader(Path(), Path(), document.positions)
    calibration = reader.validate(Calibration, document.data)
    errors = reader.diagnostics.errors
    return CalibrationContent(None if errors else calibration, errors)


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Writes the file (its path absolute), the same bytes for the same content. OutputError."""
    judges = dict(sorted(calibration.judges.items()))
    data = calibration.model_copy(update={"judges": judges}).model_dump(mode="json")
    write_file(path, [json.dumps(data, indent=2).encode(), b"\n"])
