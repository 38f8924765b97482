"""Reads strict JSON: a row of JSONL, and a file with the positions of its parts. The reader of YAML
cannot: JSON may have tabs and escapes that YAML does not know."""

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from pydantic_core import from_json

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.positions import Document, KeyPositions, Position, Positions
from agentevals_action.suites.documents.yaml_reader import decode
from agentevals_action.validation.field_errors import shorten

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_ERROR = re.compile(r"(.*) at line (\d+) column (\d+)", re.DOTALL)


_ADVICE = "correct it; a JSON file has one value"
_ADVICE_OF_ROW = "correct the row; each row is one JSON object"


def read_json(data: bytes, source: str) -> Document:
    """The document of a JSON file; Unreadable for what is not strict JSON: `NaN`, half of a
    surrogate pair, a repeated key."""
    text = decode(data, source)
    _check(text, Location(source), _ADVICE)
    reader = _Reader(text, source)
    return Document(reader.read(), reader.positions)


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
        found = _ERROR.fullmatch(str(error))
        line, column = (int(found[2]), max(int(found[3]), 1)) if found else (1, 1)
        place = Location(start.path, start.line + line - 1, column)
        problem = f"this is not valid JSON: {found[1] if found else error}"
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


class _Reader:
    """Reads a text that is valid JSON."""

    def __init__(self, text: str, source: str) -> None:
        self.positions = Positions(source)
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(text)
        self._lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._next = next(self._tokens)

    def read(self) -> Any:
        """The value that begins here."""
        return self._value(self._take())

    def _take(self) -> re.Match[str]:
        token, self._next = self._next, next(self._tokens, self._next)
        return token

    def _place(self, token: re.Match[str]) -> Position:
        line = bisect_right(self._lines, token.start())
        return line, token.start() - self._lines[line - 1] + 1

    def _value(self, first: re.Match[str]) -> Any:
        if first[0] == "{":
            return self._object(first)
        if first[0] == "[":
            return self._list(first)
        try:
            return json.loads(first[0], parse_float=_finite_float)
        except ValueError as error:
            location = Location(self.positions.path, *self._place(first))
            raise Unreadable(Diagnostic(location, str(error), _ADVICE)) from None

    def _list(self, start: re.Match[str]) -> list[Any]:
        values: list[Any] = []
        places: list[Position] = []
        while (token := self._take())[0] != "]":
            if token[0] != ",":
                places.append(self._place(token))
                values.append(self._value(token))
        self.positions.add(values, self._place(start), places)
        return values

    def _object(self, start: re.Match[str]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        places: dict[str, KeyPositions] = {}
        while (token := self._take())[0] != "}":
            if token[0] == ",":
                continue
            key, place = json.loads(token[0]), self._place(token)
            self._take()  # the colon
            value = self._take()
            if key in data:
                problem = f"the key {shorten(key)} is repeated"
                location = Location(self.positions.path, *place)
                raise Unreadable(Diagnostic(location, problem, "keep one of them"))
            places[key] = (*place, *self._place(value))
            data[key] = self._value(value)
        self.positions.add(data, self._place(start), places)
        return data
