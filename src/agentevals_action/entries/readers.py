"""The types of fields: what each takes, what it tells of anything else, and its JSON Schema
(draft-07)."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Meta, Struct

from agentevals_action.entries.entry import Before, Checked, Schema
from agentevals_action.suites.files.validation_errors import (
    Refusal,
    Refused,
    gathered,
    said,
    unlike,
)

if TYPE_CHECKING:
    from agentevals_action.system.paths import Folder


class Reader(Protocol):
    """What is made of a value in a file."""

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """The value as the field holds it; Refused with all that is wrong with it."""
        ...

    def schema(self, definitions: Schema) -> Schema:
        """The JSON Schema of the values that are taken; entries inside go to `definitions`, by
        name."""
        ...


class Anything(Struct, frozen=True):
    """Whatever stands there."""

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The value as it is."""
        return value

    def schema(self, _definitions: Schema) -> Schema:
        """Everything."""
        return {}


class Text(Struct, frozen=True):
    """A text."""

    bounds: Meta

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The text."""
        if not isinstance(value, str):
            raise unlike(value, "a text")
        least, most, pattern = self.bounds.min_length, self.bounds.max_length, self.bounds.pattern
        # Without bounds it may be a word of a command or a path, which the system takes as the
        # bytes that they are.
        if (least or most or pattern) and not _is_whole(value):
            raise unlike(value, "a text in UTF-8")
        if least is not None and len(value) < least:
            raise unlike(
                value,
                "a text that is not empty"
                if least == 1
                else f"a text of {least} characters or more",
            )
        if most is not None and len(value) > most:
            raise unlike(value, f"a text of at most {most} characters")
        if pattern is not None and not re.search(pattern, value):
            raise unlike(value, f"a text that matches {pattern}")
        return value

    def schema(self, _definitions: Schema) -> Schema:
        """A string."""
        return _bounded(
            {"type": "string"},
            self.bounds,
            {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
        )


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except (
        UnicodeEncodeError
    ):  # half of a surrogate pair, as of a variable with bytes that are no UTF-8
        return False
    return True


class Truth(Struct, frozen=True):
    """True or false."""

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The truth value."""
        if not isinstance(value, bool):
            raise unlike(value, "`true` or `false`")
        return value

    def schema(self, _definitions: Schema) -> Schema:
        """A boolean."""
        return {"type": "boolean"}


class Nothing(Struct, frozen=True):
    """Nothing: a field that may be left empty."""

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """None."""
        if value is not None:
            raise unlike(value)
        return None

    def schema(self, _definitions: Schema) -> Schema:
        """Null."""
        return {"type": "null"}


class Number(Struct, frozen=True):
    """A finite number, which may have to be whole."""

    bounds: Meta
    is_whole: bool = False

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The number: a float, or an int where it must be whole."""
        if isinstance(value, bool) or not isinstance(value, int if self.is_whole else int | float):
            raise unlike(value, "a whole number" if self.is_whole else "a number")
        if not self.is_whole and not _is_finite(value):
            raise unlike(value, "a finite number")
        for name, (holds, words) in _LIMITS.items():
            limit = getattr(self.bounds, name)
            if limit is not None and not holds(value, limit):
                raise unlike(value, words.format(f"{limit:.15g}"))
        return value if self.is_whole else float(value)

    def schema(self, _definitions: Schema) -> Schema:
        """A number or an integer."""
        names = {
            "ge": "minimum",
            "gt": "exclusiveMinimum",
            "le": "maximum",
            "lt": "exclusiveMaximum",
        }
        return _bounded({"type": "integer" if self.is_whole else "number"}, self.bounds, names)


_LIMITS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "a number that is {} or more"),
    "gt": (operator.gt, "a number over {}"),
    "le": (operator.le, "a number that is {} or less"),
    "lt": (operator.lt, "a number under {}"),
}


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


class OneOf(Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The word."""
        if not isinstance(value, str) or value not in self.words:
            *others, last = (f"`{word}`" for word in self.words)
            raise unlike(value, f"{', '.join(others)} or {last}" if others else last)
        return value

    def schema(self, _definitions: Schema) -> Schema:
        """An enumeration."""
        return (
            {"const": self.words[0], "type": "string"}
            if len(self.words) == 1
            else {"enum": list(self.words), "type": "string"}
        )


class Several(Struct, frozen=True):
    """A list, frozen once it is read."""

    item: Reader
    bounds: Meta

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """A tuple of the items."""
        if not isinstance(value, list | tuple):
            raise unlike(value, "a list")
        least, most = self.bounds.min_length, self.bounds.max_length
        if least is not None and len(value) < least:
            raise unlike(value, "at least one item" if least == 1 else f"{least} items or more")
        if most is not None and len(value) > most:
            raise unlike(value, f"at most {most} items")
        items, refusals = [], list[Refusal]()
        for index, item in enumerate(value):
            try:
                items.append(self.item.read(item, folder))
            except Refused as refused:
                refusals += refused.under(index)
        gathered(refusals)
        return tuple(items)

    def schema(self, definitions: Schema) -> Schema:
        """An array."""
        made = {"type": "array", "items": self.item.schema(definitions)}
        return _bounded(made, self.bounds, {"min_length": "minItems", "max_length": "maxItems"})


class Named(Struct, frozen=True):
    """An object whose names are the file's own."""

    name: Reader
    value: Reader

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """A dict."""
        if not isinstance(value, Mapping):
            raise unlike(value, "an object")
        found, refusals = {}, list[Refusal]()
        for name, item in value.items():
            try:
                found[self.name.read(name, folder)] = self.value.read(item, folder)
            except Refused as refused:
                refusals += refused.under(name)
        gathered(refusals)
        return found

    def schema(self, definitions: Schema) -> Schema:
        """An object."""
        names = {
            key: value for key, value in self.name.schema(definitions).items() if key != "type"
        }
        allowed = self.value.schema(definitions) or True
        return {
            "type": "object",
            "additionalProperties": allowed,
            **({"propertyNames": names} if names else {}),
        }


class Choice(Struct, frozen=True):
    """One of several types: the first that takes the value."""

    readers: tuple[Reader, ...]

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """As the type that takes it."""
        refusals: list[Refusal] = []
        for reader in self.readers:
            try:
                return reader.read(value, folder)
            except Refused as refused:
                refusals += refused.refusals
        if inside := [refusal for refusal in refusals if refusal.steps or refusal.said]:
            # Where one type got further into the value, the others' complaints are of a shape that
            # was not meant.
            raise Refused(*inside)
        raise unlike(
            value, *dict.fromkeys(words for refusal in refusals for words in refusal.expected)
        )

    def schema(self, definitions: Schema) -> Schema:
        """Any of them."""
        made = [reader.schema(definitions) for reader in self.readers]
        return {
            "anyOf": [
                choice
                for one in made
                for choice in (one["anyOf"] if one.keys() == {"anyOf"} else [one])
            ]
        }


class Instance(Struct, frozen=True):
    """What was read already, as an object of its class."""

    of: type

    def read(self, value: Any, _folder: "Folder | None") -> Any:
        """The object."""
        if not isinstance(value, self.of):
            raise unlike(value, "an object")
        return value

    def schema(self, _definitions: Schema) -> Schema:
        """What it was read from says it."""
        return {}


class Noted(Struct, frozen=True):
    """A type with functions before and after it, and what else its JSON Schema says (`extra`) or
    says instead (`shown`)."""

    reader: Reader
    before: tuple[Before, ...] = ()
    after: tuple[Checked, ...] = ()
    shown: Schema | None = None
    extra: Schema | None = None

    def read(self, value: Any, folder: "Folder | None") -> Any:
        """What the functions made of it."""
        try:
            read = self.reader.read(_run([note.function for note in self.before], value), folder)
        except Refused as refused:  # told of is what is written, not what was made of it
            raise Refused(
                *(replace(one, value=value) if not one.steps else one for one in refused.refusals)
            ) from None
        return _run([note.function for note in self.after], read)

    def schema(self, definitions: Schema) -> Schema:
        """The type's, or the one that is shown in its place."""
        return {
            **(self.reader.schema(definitions) if self.shown is None else self.shown),
            **(self.extra or {}),
        }


def _run(functions: list[Callable[[Any], Any]], value: Any) -> Any:
    try:
        for function in functions:
            value = function(value)
    except ValueError as error:
        raise said(value, error) from None
    return value


def _bounded(made: Schema, bounds: Meta, names: Mapping[str, str]) -> Schema:
    limits = {
        key: limit for name, key in names.items() if (limit := getattr(bounds, name)) is not None
    }
    return {**made, **limits}
