"""JSON of one row into data, strictly: no NaN, no duplicate keys; places of its parts only when
asked for."""

import json
import math
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in CPython, missing in the stubs
from typing import Any, NoReturn

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.files.diagnostics import Unreadable, shown
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.yaml_reader import MAX_DEPTH, MAX_VALUES

_SPACE = re.compile(r"[ \t\n\r]*")
#: Texts, to pass over what stands in them, and the signs that say how much there is and how deep.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{},]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_row(text: str, source: str, line: int, places: bool) -> Any:
    """The value of one row (its line from 1), quickly, or with `places` of all its parts;
    Unreadable with all that is wrong with it."""
    opened = text.count("{") + text.count("[")
    if opened > MAX_DEPTH or opened + text.count(",") > MAX_VALUES:
        _check_shape(text, source, line)
    if not places:
        try:
            return _quickly(text, source, line)
        except (_NotStrict, ValueError):
            pass  # the thorough reading below tells where and why
    return _Row(text, source, line).read()


class _NotStrict(Exception):
    pass


def _quickly(text: str, source: str, line: int) -> Any:
    def made(pairs: list[tuple[str, Any]]) -> Map:
        data = Map(source, (line, 1))
        data.update(pairs)
        if len(data) != len(pairs):
            raise _NotStrict
        return data

    def refused(_word: str) -> NoReturn:
        raise _NotStrict

    def number(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise _NotStrict
        return value

    if _SURROGATE.search(text):
        raise _NotStrict
    return json.loads(text, object_pairs_hook=made, parse_constant=refused, parse_float=number)


def _check_shape(text: str, source: str, line: int) -> None:
    depth = values = 0
    for token in _TOKENS.finditer(text):
        sign = token[0]
        depth += (sign in "{[") - (sign in "}]")
        values += sign in "{[,"
        if depth > MAX_DEPTH:
            place = Location(source, line, token.start() + 1)
            raise Unreadable(
                Diagnostic(place, f"this is nested more than {MAX_DEPTH} deep", "make it flatter")
            )
        if values > MAX_VALUES:
            place = Location(source, line, token.start() + 1)
            raise Unreadable(
                Diagnostic(
                    place,
                    f"this row holds more than {MAX_VALUES:,} values",
                    "put what is long into files, and name them",
                )
            )


class _Row:
    """A reader that notes places; slower, for the rows that have something to be told about."""

    def __init__(self, text: str, source: str, line: int) -> None:
        self.text = text
        self.source = source
        self.line = line
        self.errors: list[Diagnostic] = []

    def read(self) -> Any:
        try:
            value, end = self._value(self._space(0))
        except json.JSONDecodeError as error:
            self._stop(
                error.pos,
                f"this is no valid JSON: {error.msg}",
                "mend the row; each row is one JSON object",
            )
        if self._space(end) != len(self.text):
            self._stop(
                self._space(end), "something follows the JSON value", "write one JSON object a row"
            )
        if self.errors:
            raise Unreadable(*self.errors)
        return value

    def _at(self, offset: int) -> tuple[int, int]:
        return (self.line, offset + 1)

    def _error(self, offset: int, problem: str, advice: str) -> None:
        self.errors.append(Diagnostic(Location(self.source, *self._at(offset)), problem, advice))

    def _stop(self, offset: int, problem: str, advice: str) -> NoReturn:
        self._error(offset, problem, advice)
        raise Unreadable(*self.errors)

    def _space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def _value(self, at: int) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at)
        if first == "[":
            return self._array(at)
        if first == '"':
            return self._string(at)
        return self._word(at)

    def _string(self, at: int) -> tuple[str, int]:
        value, end = scanstring(self.text, at + 1, True)
        if any("\ud800" <= character <= "\udfff" for character in value):
            self._error(at, "this text has half of a surrogate pair", "write the whole character")
        return value, end

    def _word(self, at: int) -> tuple[Any, int]:
        def refused(word: str) -> NoReturn:
            self._stop(at, f"`{word}` is not JSON", "write a finite number, null or a text")

        decoder = json.JSONDecoder(parse_constant=refused)
        try:
            value, end = decoder.raw_decode(self.text, at)
        except json.JSONDecodeError:
            raise
        except ValueError:
            self._stop(at, "this number has too many digits", "put it in quotes if it is a text")
        if isinstance(value, float) and not math.isfinite(value):
            self._error(
                at,
                f"{shown(self.text[at:end])} is too large for a number",
                "put it in quotes if it is a text",
            )
        return value, end

    def _object(self, at: int) -> tuple[Map, int]:
        data = Map(self.source, self._at(at))
        at = self._space(at + 1)
        while self.text[at : at + 1] != "}":
            if data:
                at = self._space(self._expect(at, ","))
            key_at = at
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("a key in double quotes is expected here", self.text, at)
            key, at = self._string(at)
            at = self._space(self._expect(self._space(at), ":"))
            value_at = at
            value, at = self._value(at)
            if key in data:
                self._error(
                    key_at, f"the key {shown(key)} stands here a second time", "keep one of them"
                )
            data.put(key, value, (self._at(key_at), self._at(value_at)))
            at = self._space(at)
        return data, at + 1

    def _array(self, at: int) -> tuple[Items, int]:
        data = Items(self.source, self._at(at))
        at = self._space(at + 1)
        while self.text[at : at + 1] != "]":
            if data:
                at = self._space(self._expect(at, ","))
            value, end = self._value(at)
            data.put(value, self._at(at))
            at = self._space(end)
        return data, at + 1

    def _expect(self, at: int, sign: str) -> int:
        if self.text[at : at + 1] != sign:
            raise json.JSONDecodeError(f"`{sign}` is expected here", self.text, at)
        return at + 1
