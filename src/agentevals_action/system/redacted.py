"""Secrets out of whole records, before anything is cut or escaped: afterwards a secret may read
otherwise and slip through."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from operator import is_
from typing import Any, TypeVar

from pydantic import BaseModel

from agentevals_action.system.redaction import MASK, Redactor

Record = TypeVar("Record")

_WITHOUT_TEXT = frozenset({type(None), bool, int, float})
#: Levels that are walked through: far more than a record of ours has, far fewer than Python can.
_DEEPEST = 100


def redacted(record: Record, redactor: Redactor) -> Record:
    """The same record (a review, a result) with every text in it redacted, keys of mappings
    included; itself when nothing changes. Where it nests deeper than `_DEEPEST` levels (arguments
    that an agent gave to a tool), all of what stands there is hidden."""
    changed: Record = _Walk(redactor.redact).through(record)
    return changed


class _Walk:
    """Goes through every part of every result: what has no text is passed over at once, what stands
    in it twice is looked at once (the sample that is shown is also the test's), and what does not
    change is not copied."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._depth = 0
        self._done: dict[
            int, Any
        ] = {}  # by id: the record holds all of them as long as the walk lasts

    def through(self, value: Any) -> Any:
        if type(value) in _WITHOUT_TEXT or value == ():
            return value
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self._redact(value)
        if self._depth >= _DEEPEST:
            return MASK
        if id(value) not in self._done:
            self._depth += 1
            self._done[id(value)] = self._within(value)
            self._depth -= 1
        return self._done[id(value)]

    def _within(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            items = [self.through(item) for item in value]
            return value if all(map(is_, items, value)) else type(value)(items)
        if isinstance(value, Mapping):
            pairs = {self.through(key): self.through(item) for key, item in value.items()}
            same = (
                len(pairs) == len(value)
                and all(map(is_, pairs, value))
                and all(map(is_, pairs.values(), value.values()))
            )
            return value if same else pairs
        if isinstance(value, BaseModel):
            changed = self._changed(
                (name, getattr(value, name)) for name in type(value).model_fields
            )
            return value.model_copy(update=changed) if changed else value
        if is_dataclass(value) and not isinstance(value, type):
            changed = self._changed(
                (part.name, getattr(value, part.name)) for part in fields(value)
            )
            return replace(value, **changed) if changed else value
        return value

    def _changed(self, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        return {
            name: walked for name, value in values if (walked := self.through(value)) is not value
        }
