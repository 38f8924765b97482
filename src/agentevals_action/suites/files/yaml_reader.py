"""YAML text into data with places, by the 1.2 core schema (the only owner of PyYAML).

Events are built into data here, not by PyYAML's constructor: that one reads YAML 1.1 (`yes`,
dates), loses places and recurses. Merge keys are no part of YAML 1.2: a plain `<<` is a fault
rather than a field that nobody reads."""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.files.diagnostics import Unreadable, shown
from agentevals_action.suites.files.positions import Items, Map, Place

try:
    from yaml.cyaml import CParser as _Parser  # type: ignore[attr-defined]  # the stubs do not name what PyYAML's CLoader is made of
except ImportError:  # PyYAML without libyaml, as on a musl or a fresh interpreter

    class _Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):  # type: ignore[no-redef]
        """PyYAML's own parser: the same events, more slowly."""

        def __init__(self, stream: str) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)


#: Deeper than any suite; keeps what walks the data off the recursion limit.
MAX_DEPTH = 100
#: Bytes of text that aliases may add to a file.
MAX_EXPANSION = 10_000_000
#: Bytes of a file, and values in it; more belongs into rows of JSONL, which are read one at a time.
MAX_BYTES, MAX_VALUES = 10_000_000, 200_000
_MANY = "put the tests into a JSONL file, which may be of any length"

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS: dict[str, tuple[type, ...]] = {
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:null": (type(None),),
}
#: By base, under what Python turns back into decimal text.
_MOST_DIGITS = {8: 4_000, 10: 4_000, 16: 3_000}
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_COLLECTION_TAGS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def decode(data: bytes, source: str) -> str:
    """The text of a file (UTF-8, a byte order mark is passed over); Unreadable with the place of
    the first bad byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode(
            "utf-8", "replace"
        )
        place = Location(source, line, len(before) + 1)
        raise Unreadable(Diagnostic(place, "this is not UTF-8", "save the file as UTF-8")) from None


def read_yaml_file(file: Path, source: str) -> Any:
    """The one document of a file, as `read_yaml` gives it; Unreadable also when it is too long,
    OSError when it cannot be read."""
    if file.stat().st_size > MAX_BYTES:
        raise Unreadable(
            Diagnostic(
                Location(source), f"this file is longer than {MAX_BYTES // 1_000_000} MB", _MANY
            )
        )
    return read_yaml(file.read_bytes(), source)


def read_yaml(data: bytes, source: str) -> Any:
    """The one document of a YAML file, as `Map`, `Items` and plain scalars; Unreadable with all
    that is wrong with it."""
    text = decode(data, source)
    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        place = Location(source, line, bad.start() - text.rfind("\n", 0, bad.start()))
        raise Unreadable(
            Diagnostic(
                place,
                f"the character {bad.group()!r} may not stand in YAML",
                "remove it, or escape it in double quotes",
            )
        )
    builder = _Builder(source)
    try:
        builder.read(_Parser(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(source, mark.line + 1, mark.column + 1) if mark else Location(source)
        raise Unreadable(*builder.errors, _syntax_error(error, place, text)) from None
    except yaml.YAMLError as error:
        raise Unreadable(
            *builder.errors,
            Diagnostic(Location(source), f"this is no valid YAML: {error}", "mend it"),
        ) from None
    if builder.errors:
        raise Unreadable(*builder.errors)
    return builder.root


def _syntax_error(error: yaml.MarkedYAMLError, place: Location, text: str) -> Diagnostic:
    problem = " ".join(
        part for part in (error.problem, f"({error.context})" if error.context else "") if part
    )
    lines = text.splitlines() or [""]
    if place.line > len(lines):  # the end of the text: a place that an editor can go to
        place = Location(place.path, len(lines), len(lines[-1]) + 1)
    line = lines[place.line - 1]
    tab = (
        line[place.column - 1 : place.column] == "\t"
        or "\t" in line[: len(line) - len(line.lstrip())]
    )
    advice = (
        "indent with spaces, not with tabs"
        if tab
        else "mend the indentation, or put the text in quotes"
    )
    return Diagnostic(place, f"this is no valid YAML: {problem}", advice)


@dataclass
class _Open:
    """A collection that is not closed yet; `size` in bytes with aliases expanded, `height` how deep
    it is nested inside."""

    data: Map | Items
    place: Place
    anchor: str | None = None
    key: str | None = None
    key_place: Place | None = None
    first_keys: dict[str, Place] = field(default_factory=dict)
    size: int = 0
    height: int = 0


class _Builder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.errors: list[Diagnostic] = []
        self.root: Any = None
        self._documents = 0
        self._stack: list[_Open] = []
        self._anchors: dict[
            str, tuple[Any, int, int] | None
        ] = {}  # None while the anchored node is still open
        self._expanded = 0
        self._values = 0

    def read(self, parser: Any) -> None:
        handlers = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        while (event := parser.get_event()) is not None:
            if handler := handlers.get(type(event)):
                mark = event.start_mark
                handler(event, (mark.line + 1, mark.column + 1))

    def _error(self, place: Place, problem: str, advice: str) -> None:
        self.errors.append(Diagnostic(Location(self.source, *place), problem, advice))

    def _stop(self, place: Place, problem: str, advice: str) -> None:
        raise Unreadable(*self.errors, Diagnostic(Location(self.source, *place), problem, advice))

    def _document(self, _event: Any, place: Place) -> None:
        self._documents += 1
        if self._documents > 1:
            self._stop(place, "a second document begins here", "keep one document in a file")

    def _open(self, event: Any, place: Place) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self._stop(place, f"this is nested more than {MAX_DEPTH} deep", "make it flatter")
        if event.tag not in _COLLECTION_TAGS:
            self._error(place, f"the tag {shown(event.tag)} is not supported", "remove it")
        data = (
            Map(self.source, place)
            if type(event) is yaml.MappingStartEvent
            else Items(self.source, place)
        )
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(data, place, event.anchor))

    def _close(self, _event: Any, _place: Place) -> None:
        closed = self._stack.pop()
        if closed.anchor:
            self._anchors[closed.anchor] = (closed.data, closed.size, closed.height + 1)
        self._add(closed.data, closed.place, closed.size, closed.height + 1)

    def _alias(self, event: Any, place: Place) -> None:
        if event.anchor not in self._anchors:
            self._error(
                place, f"there is no anchor `&{event.anchor}` above", "define it before it is used"
            )
            self._add(None, place, 0, 0)
            return
        anchored = self._anchors[event.anchor]
        if anchored is None:
            self._stop(
                place, f"`*{event.anchor}` stands inside of what it refers to", "write it out once"
            )
            return
        value, size, height = anchored
        self._expanded += size
        if self._expanded > MAX_EXPANSION:
            self._stop(
                place, "the aliases of this file expand past 10 MB", "write out what is needed"
            )
        if len(self._stack) + height > MAX_DEPTH:
            self._stop(place, f"this is nested more than {MAX_DEPTH} deep", "make it flatter")
        self._add(value, place, size, height)

    def _scalar(self, event: Any, place: Place) -> None:
        plain = event.implicit[0]
        owner = self._stack[-1] if self._stack else None
        is_key = owner is not None and owner.key is None and isinstance(owner.data, Map)
        value = event.value if is_key else self._resolve(event.value, plain, event.tag, place)
        size = len(event.value) + 8
        if event.anchor:
            self._anchors[event.anchor] = (value, size, 0)
        if owner is not None and is_key:
            self._key(owner, event.value, plain, place)
        else:
            self._add(value, place, size, 0)

    def _key(self, owner: _Open, text: str, plain: bool, place: Place) -> None:
        if plain and text in _NULLS:
            self._error(place, "this key is empty", "write the name of a field")
        if plain and text == "<<":
            self._error(
                place,
                "`<<` merges nothing in YAML 1.2",
                "write the fields out, or put it in quotes if it is a name",
            )
        if text in owner.first_keys:
            line = owner.first_keys[text][0]
            self._error(
                place,
                f"the key {shown(text)} stands here a second time (first on line {line})",
                "keep one of them",
            )
        owner.first_keys.setdefault(text, place)
        owner.key, owner.key_place = text, place
        owner.size += len(text) + 8

    def _add(self, value: Any, place: Place, size: int, height: int) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            self._stop(place, f"this file holds more than {MAX_VALUES:,} values", _MANY)
        if not self._stack:
            self.root = value
            return
        owner = self._stack[-1]
        owner.size += size
        owner.height = max(owner.height, height)
        if isinstance(owner.data, Items):
            owner.data.put(value, place)
        elif owner.key is None or owner.key_place is None:
            self._error(
                place, "a key is a list, an object or an alias here", "write the key as a text"
            )
            owner.key, owner.key_place = f"\0{len(owner.first_keys)}", place
        else:
            owner.data.put(owner.key, value, (owner.key_place, place))
            owner.key = owner.key_place = None

    def _resolve(self, text: str, plain: bool, tag: str | None, place: Place) -> Any:
        if tag is None and not plain:
            return text
        if tag in _TEXT_TAGS:
            return text
        value = self._plain(text, place)
        if tag is not None and not (tag in _TAGS and isinstance(value, _TAGS[tag])):
            self._error(place, f"the tag {shown(tag)} does not fit here", "remove it")
        return value

    def _plain(self, text: str, place: Place) -> Any:
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        return self._number(text, place) if text[0] in _NUMBER_STARTS else text

    def _number(self, text: str, place: Place) -> int | float | str:
        if _INTEGER.fullmatch(text):
            base = {"0o": 8, "0x": 16}.get(text[:2], 10)
            most = _MOST_DIGITS[base]
            if len(text) <= most:
                return int(text, base)
            self._error(
                place,
                f"this number has more than {most:,} digits",
                "put it in quotes if it is a text",
            )
            return 0
        if _NOT_FINITE.fullmatch(text) or (
            _FLOAT.fullmatch(text) and not math.isfinite(float(text))
        ):
            self._error(
                place,
                f"{shown(text)} is no finite number, and JSON has no other",
                "put it in quotes if it is a text",
            )
            return 0.0
        return float(text) if _FLOAT.fullmatch(text) else text
