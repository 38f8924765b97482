"""Reads rows of JSONL strictly: no NaN, no duplicate keys. The data has the position of its row."""

import json
import math
import re
from typing import Any, NoReturn

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.files.diagnostics import Unreadable
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import shorten
from agentevals_action.suites.files.yaml_reader import MAX_DEPTH, MAX_VALUES

#: Strings, to skip their content, and the characters that open, close and separate values.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_QUOTE = "put it in quotes if it is a text"


class _Invalid(Exception):
    """A problem and an advice."""


def read_row(text: str, source: str, line: int) -> Any:
    """The value of one row (`line` from 1) of the file `source`; Unreadable when it is invalid."""
    column = 1
    try:
        _check_size(text)
        return _parse(text, source, line)
    except _Invalid as error:
        problem, advice = error.args
    except json.JSONDecodeError as error:
        column = error.pos + 1
        problem = f"this is not valid JSON: {error.msg}"
        advice = "correct the row; each row is one JSON object"
    except ValueError:  # of Python's int()
        problem, advice = "a number has too many digits", _QUOTE
    raise Unreadable(Diagnostic(Location(source, line, column), problem, advice)) from None


def _parse(text: str, source: str, line: int) -> Any:
    position = (line, 1)

    def located(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = Items(source, position)
        items.extend(map(located, value))
        return items

    def make_map(pairs: list[tuple[str, Any]]) -> Map:
        data = Map(source, position)
        for key, value in pairs:
            if key in data:
                raise _Invalid(f"the key {shorten(key)} is repeated", "keep one of them")
            data[key] = located(value)
        return data

    value = located(
        json.loads(
            text, object_pairs_hook=make_map, parse_constant=_refuse, parse_float=_finite_float
        )
    )
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            problem = "a text contains half of a surrogate pair"
            raise _Invalid(problem, "write the whole character") from None
    return value


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
