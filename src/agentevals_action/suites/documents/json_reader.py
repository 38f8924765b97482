"""Reads strict JSON: a row of JSONL, and a file with the positions of its parts."""

import json
import math
import re
from collections import Counter
from typing import Any

from pydantic_core import from_json

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.positions import Document, Positions
from agentevals_action.suites.documents.yaml_reader import decode, read_yaml
from agentevals_action.validation.field_errors import shorten

#: What JSON has and YAML has not: escapes of two halves of a character, and, not escaped, ends of
#: lines in texts and characters that cannot be printed.
_PAIR = re.compile(r"\\(?:u(d[89ab]\w\w\\u\w{4})|.)", re.IGNORECASE)
_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_ERROR = re.compile(r"(.*) at line (\d+) column (\d+)", re.DOTALL)


_ADVICE = "correct it; a JSON file has one value"
_ADVICE_OF_ROW = "correct the row; each row is one JSON object"


def read_json(data: bytes, source: str) -> Document:
    """The document of a JSON file. The reader of YAML reads it: JSON is nearly YAML. Unreadable
    for what is not strict JSON (`NaN`, half of a surrogate pair, a repeated key), and for a key of
    more than 1,000 characters or apart from its colon."""
    text = decode(data, source)
    _check(text, Location(source), _ADVICE)
    return read_yaml(_as_yaml(text).encode(), source)


def _as_yaml(text: str) -> str:
    """Valid JSON as YAML, with each part on its line. Behind a character that is written in another
    way, columns differ."""
    text = _PAIR.sub(lambda escape: json.loads(f'"{escape[0]}"') if escape[1] else escape[0], text)
    text = _SPECIAL.sub(lambda special: f"\\u{ord(special[0]):04x}", text)
    return text.replace("\t", " ")


def read_row(text: str, source: str, line: int) -> Document:
    """The value of one row (`line` from 1) of the file `source`; all data has the position of the
    row. Unreadable as for a file."""
    place = Location(source, line)
    _check(text, place, _ADVICE_OF_ROW)
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_float=_finite_float)
    except ValueError as error:
        raise Unreadable(Diagnostic(place, str(error), _ADVICE_OF_ROW)) from None
    return Document(data, Positions(source, (line, 1)))


def _check(text: str, start: Location, advice: str) -> None:
    """Unreadable if a text is not JSON."""
    try:
        from_json(text, allow_inf_nan=False)
    except ValueError as error:
        match = _ERROR.fullmatch(str(error))
        line, column = (int(match[2]), max(int(match[3]), 1)) if match else (1, 1)
        place = Location(start.path, start.line + line - 1, column)
        problem = f"this is not valid JSON: {match[1] if match else error}"
        raise Unreadable(Diagnostic(place, problem, advice)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {shorten(repeated)} is repeated")
    return data


def _finite_float(digits: str) -> float:
    if math.isfinite(value := float(digits)):
        return value
    raise ValueError(f"{shorten(digits)} is too large for a number")
