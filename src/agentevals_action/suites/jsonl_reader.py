"""Reads rows of JSONL strictly: no NaN, no duplicate keys. All data has the position of its row."""

import json
import math
import re
from typing import Any, NoReturn

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.validation.field_errors import shorten
from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.positions import Document, Positions
from agentevals_action.suites.yaml_reader import MAX_DEPTH, MAX_VALUES

#: Strings, to skip their content, and the characters that open, close and separate values.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_QUOTE = "put it in quotes if it is a text"


class _Invalid(Exception):
    """A problem and an advice."""


def read_row(text: str, source: str, line: int) -> Document:
    """The value of one row (`line` from 1) of the file `source`; Unreadable when it is invalid."""
    column = 1
    try:
        _check_size(text)
        return Document(_parse(text), Positions(source, (line, 1)))
    except _Invalid as error:
        problem, advice = error.args
    except json.JSONDecodeError as error:
        column = error.pos + 1
        problem = f"this is not valid JSON: {error.msg}"
        advice = "correct the row; each row is one JSON object"
    except ValueError:  # of Python's int()
        problem, advice = "a number has too many digits", _QUOTE
    raise Unreadable(Diagnostic(Location(source, line, column), problem, advice)) from None


def _parse(text: str) -> Any:
    value = json.loads(
        text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite_float
    )
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            problem = "a text contains half of a surrogate pair"
            raise _Invalid(problem, "write the whole character") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) == len(pairs):
        return data
    keys = [key for key, _ in pairs]
    repeated = next(key for number, key in enumerate(keys) if key in keys[:number])
    raise _Invalid(f"the key {shorten(repeated)} is repeated", "keep one of them")


def _refuse(word: str) -> NoReturn:
    raise _Invalid(f"`{word}` is not JSON", "write a finite number, null or a text")


def _finite_float(digits: str) -> float:
    if math.isfinite(value := float(digits)):
        return value
    raise _Invalid(f"{shorten(digits)} is too large for a number", _QUOTE)


def _check_size(text: str) -> None:
    """Limits the depth, so that no reader exceeds the recursion limit, and the number of values."""
    opened = text.count("{") + text.count("[")
    if opened <= MAX_DEPTH and opened + text.count(",") <= MAX_VALUES:
        return
    depth = values = 0
    for token in _TOKENS.finditer(text):
        sign = token[0]
        depth += (sign in "{[") - (sign in "}]")
        values += sign in "{[,"
        if depth > MAX_DEPTH:
            raise _Invalid(f"this row is nested more than {MAX_DEPTH} deep", "make it flatter")
        if values > MAX_VALUES:
            problem = f"this row contains more than {MAX_VALUES:,} values"
            raise _Invalid(problem, "put long data into files, and name them")
