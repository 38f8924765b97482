"""Reads YAML into plain data and a table of positions, by the core schema of YAML 1.2.

PyYAML parses. Its composer and constructors are not used: they read YAML 1.1 (`yes`, dates), lose
positions, and recurse without a limit. Merge keys (a plain `<<`) are read, as in AgentV, although
YAML 1.2 has none."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.positions import Document, KeyPositions, Position, Positions
from agentevals_action.system.files.regular_files import NotRegularFile, read_regular
from agentevals_action.validation.field_errors import describe_value, shorten

try:
    from yaml.cyaml import CParser as _Parser  # type: ignore[attr-defined]  # missing in the stubs
except ImportError:  # PyYAML without libyaml: the same events, more slowly
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]  # the same methods

#: Deeper than any suite; functions that walk the data stay within the recursion limit.
MAX_DEPTH = 100
#: Bytes of text that aliases may add to a file.
MAX_EXPANSION = 10_000_000
#: Bytes of a file, and values in it. More belongs into JSONL, which is read row by row.
MAX_BYTES, MAX_VALUES = 10_000_000, 200_000
_MANY = "put the tests into a JSONL file, which may be of any length"
_QUOTE = "put it in quotes if it is a text"

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_COLLECTION_TAGS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
#: Digits of a number, which Python converts to decimal text.
_MAX_DIGITS = 3_000


def decode(data: bytes, source: str, line: int = 1) -> str:
    """The UTF-8 text that begins on a line of a file, without byte order mark; Unreadable with the
    position of the first invalid byte."""
    try:
        return data.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        location = Location.of_byte(source, data, error.start, line)
    raise Unreadable(Diagnostic(location, "this is not UTF-8", "save the file as UTF-8"))


def read_yaml_file(file: Path, source: str) -> Document:
    """The document of a file, as `read_yaml` returns it; Unreadable also when the file is too long
    or cannot be read."""
    return read_yaml(read_document(file, source), source)


def read_document(file: Path, source: str) -> bytes:
    """The content of a file; Unreadable when it is too long or cannot be read."""
    try:
        data = read_regular(file, MAX_BYTES + 1)
    except OSError as error:
        raise unreadable(source, error) from None
    if len(data) > MAX_BYTES:
        problem = f"this file is longer than {MAX_BYTES // 1_000_000} MB"
        raise Unreadable(Diagnostic(Location(source), problem, _MANY))
    return data


def read_yaml_object(file: Path, source: str, label: str, advice: str) -> Document:
    """The object in a file, which is a `label` (`suite`, `test`); Unreadable also for other
    data."""
    document = read_yaml_file(file, source)
    if isinstance(document.data, dict):
        return document
    problem = f"this {label} is {describe_value(document.data)}"
    raise Unreadable(Diagnostic(document.location, problem, advice))


def unreadable(source: str, error: OSError) -> Unreadable:
    """The error of a file that cannot be read."""
    problem = f"this file cannot be read ({error.strerror})"
    is_other = isinstance(error, NotRegularFile | FileNotFoundError)
    advice = "replace it by a regular file" if is_other else "make it readable"
    return Unreadable(Diagnostic(Location(source), problem, advice))


def read_settings_file(file: Path, root: Path, path: str) -> Document:
    """The document of the file at `path`; Unreadable also when it lies outside the repository."""
    if not file.resolve().is_relative_to(root):
        problem, advice = "this file leaves the repository", "replace the symbolic link by the file"
        raise Unreadable(Diagnostic(Location(path), problem, advice))
    return read_yaml_file(file, path)


def read_yaml(data: bytes, source: str) -> Document:
    """The one document of a YAML file; Unreadable with all errors."""
    text = decode(data, source)
    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        location = Location(source, line, bad.start() - text.rfind("\n", 0, bad.start()))
        problem = f"the character {bad.group()!r} is not allowed in YAML"
        raise Unreadable(Diagnostic(location, problem, "remove it, or escape it in double quotes"))
    composer = _Composer(text, source)
    document = None
    try:
        document = composer.read()
    except yaml.MarkedYAMLError as error:
        composer.errors.append(_syntax_error(error, source, text))
    except yaml.YAMLError as error:
        problem = f"this is not valid YAML: {error}"
        composer.errors.append(Diagnostic(Location(source), problem, "correct it"))
    if composer.errors:
        raise Unreadable(*composer.errors)
    return Document(document, composer.positions)


def _syntax_error(error: yaml.MarkedYAMLError, source: str, text: str) -> Diagnostic:
    problem = f"{error.problem} ({error.context})" if error.context else str(error.problem)
    advice = "correct the indentation (spaces, no tabs), or put the text in quotes"
    mark = error.problem_mark or error.context_mark
    if "end of stream" in problem and "quoted" in problem:
        mark, problem = error.context_mark, "the quotes that begin here are not closed"
        advice = "close them"
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines() or [""]
    if line > len(lines):  # the end of the text: a position that an editor can open
        line, column = len(lines), len(lines[-1]) + 1
    return Diagnostic(Location(source, line, column), f"this is not valid YAML: {problem}", advice)


@dataclass(slots=True)
class _Value:
    """A value with its `size` in bytes and its `height`, both with aliases expanded."""

    data: Any
    size: int
    height: int = 0


class _Composer:
    """Composes the values of a document from the events of the parser."""

    def __init__(self, text: str, source: str) -> None:
        self.errors: list[Diagnostic] = []
        self.positions = Positions(source)
        self._parser = _Parser(text)
        self._anchors: dict[str, _Value | None] = {}  # None while the value is still open
        self._expanded = 0
        self._count = 0

    def read(self) -> Any:
        """The data of the one document, None of an empty text."""
        next_event = self._parser.get_event
        next_event()  # the start of the stream
        if type(next_event()) is yaml.StreamEndEvent:
            return None
        document = self._compose(next_event(), 1).data
        next_event()  # the end of the document
        if type(event := next_event()) is not yaml.StreamEndEvent:
            problem = "a second document begins here"
            self._stop(_position(event), problem, "keep one document in a file")
        return document

    def _error(self, position: Position, problem: str, advice: str) -> None:
        self.errors.append(Diagnostic(Location(self.positions.path, *position), problem, advice))

    def _stop(self, position: Position, problem: str, advice: str) -> NoReturn:
        self._error(position, problem, advice)
        raise Unreadable(*self.errors)

    def _compose(self, event: Any, depth: int) -> _Value:
        position = _position(event)
        if type(event) is yaml.AliasEvent:
            value = self._alias(event, position, depth)
        elif type(event) is yaml.ScalarEvent:
            value = _Value(self._scalar(event, position), len(event.value) + 8)
        else:
            value = self._collection(event, position, depth)
        if event.anchor and type(event) is not yaml.AliasEvent:
            self._anchors[event.anchor] = value
        self._count += 1
        if self._count > MAX_VALUES:
            self._stop(position, f"this file contains more than {MAX_VALUES:,} values", _MANY)
        return value

    def _alias(self, event: Any, position: Position, depth: int) -> _Value:
        name = event.anchor
        if name not in self._anchors:
            problem = f"there is no anchor `&{name}` above"
            self._error(position, problem, "define it before it is used")
            return _Value(None, 0)
        value = self._anchors[name]
        if value is None:
            self._stop(position, f"`*{name}` is inside the value that it refers to", "write it out")
        self._expanded += value.size
        if self._expanded > MAX_EXPANSION:
            problem = "the aliases of this file expand to more than 10 MB"
            self._stop(position, problem, "write out what is needed")
        self._check_depth(position, depth - 1 + value.height)
        return value

    def _check_depth(self, position: Position, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._stop(position, f"this is nested more than {MAX_DEPTH} deep", "make it flatter")

    def _collection(self, event: Any, position: Position, depth: int) -> _Value:
        self._check_depth(position, depth)
        if event.tag not in _COLLECTION_TAGS:
            self._error(position, f"the tag {shorten(event.tag)} is not supported", "remove it")
        if event.anchor:
            self._anchors[event.anchor] = None
        if type(event) is yaml.MappingStartEvent:
            return self._mapping(position, depth)
        items: list[Any] = []
        positions: list[Position] = []
        self.positions.add(items, position, positions)
        collection = _Value(items, 0, 1)
        while type(event := self._parser.get_event()) is not yaml.SequenceEndEvent:
            value = self._compose(event, depth + 1)
            items.append(value.data)
            positions.append(_position(event))
            collection.size += value.size
            collection.height = max(collection.height, value.height + 1)
        return collection

    def _mapping(self, position: Position, depth: int) -> _Value:
        data: dict[str, Any] = {}
        positions: dict[str, KeyPositions] = {}
        self.positions.add(data, position, positions)
        mapping = _Value(data, 0, 1)
        first: dict[str, Position] = {}
        merged: list[dict[str, Any]] = []
        while type(event := self._parser.get_event()) is not yaml.MappingEndEvent:
            start = _position(event)
            is_merge = False
            if type(event) is yaml.ScalarEvent:
                key = event.value
                is_merge = key == "<<" and event.implicit[0]
                self._check_key(key, event.implicit[0], start, first)
                if event.anchor:
                    self._anchors[event.anchor] = _Value(key, len(key) + 8)
            else:
                self._compose(event, depth + 1)
                problem = "a key is a list, an object or an alias here"
                self._error(start, problem, "write the key as a text")
                key = ""
            event = self._parser.get_event()
            value = self._compose(event, depth + 1)
            if is_merge:
                merged += self._merged(value.data, _position(event))
            else:
                data[key] = value.data
                positions[key] = (*start, *_position(event))
            mapping.size += value.size + len(key) + 8
            mapping.height = max(mapping.height, value.height + 1)
        for source in merged:
            of_source = self.positions.keys(source)
            for key in source.keys() - data.keys():
                data[key] = source[key]
                positions[key] = of_source[key]
        return mapping

    def _merged(self, value: Any, position: Position) -> list[dict[str, Any]]:
        """The objects that a merge key names, the first with precedence."""
        objects = value if isinstance(value, list) else [value]
        if all(isinstance(merged, dict) for merged in objects):
            return objects
        problem = f"`<<` merges {describe_value(value)}"
        self._error(position, problem, "write an alias of an object, or put `<<` in quotes")
        return []

    def _check_key(
        self, key: str, is_plain: bool, position: Position, first: dict[str, Position]
    ) -> None:
        if is_plain and key in _NULLS:
            self._error(position, "this key is empty", "write the name of a field")
        if key in first:
            problem = f"the key {shorten(key)} is repeated (first on line {first[key][0]})"
            self._error(position, problem, "keep one of them")
        first.setdefault(key, position)

    def _scalar(self, event: Any, position: Position) -> Any:
        text, tag = event.value, event.tag
        if tag in _TEXT_TAGS or (tag is None and not event.implicit[0]):
            return text
        if tag is not None:
            self._error(position, f"the tag {shorten(tag)} is not supported", "remove it")
        return self._plain(text, position)

    def _plain(self, text: str, position: Position) -> Any:
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        return self._number(text, position) if text[0] in _NUMBER_STARTS else text

    def _number(self, text: str, position: Position) -> int | float | str:
        if _INTEGER.fullmatch(text):
            if len(text) <= _MAX_DIGITS:
                return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
            problem = f"this number has more than {_MAX_DIGITS:,} digits"
            self._error(position, problem, _QUOTE)
            return 0
        is_float = _FLOAT.fullmatch(text)
        if is_float and math.isfinite(float(text)):
            return float(text)
        if is_float or _NOT_FINITE.fullmatch(text):
            problem = f"{shorten(text)} is not a finite number, and JSON has no other"
            self._error(position, problem, _QUOTE)
            return 0.0
        return text


def _position(event: Any) -> Position:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1)
