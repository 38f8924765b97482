"""The first difference between a request and the recorded one that is nearest to it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.validation.json_values import MISSING, shown
from agentevals_action.system.redaction import redact

_BEFORE = 20  # characters of a line before its first difference
#: The mark in a judge's prompt: it differs whenever the data between the marks does.
_MARK = re.compile(r"\b[0-9a-f]{32}\b")


def first_difference(request: Mapping[str, Any], recorded: Sequence[Mapping[str, Any]]) -> str:
    """`messages[0].content` is “a” instead of “b”, of the recorded request that has the most values
    in common; empty if nothing is recorded or nothing differs."""
    own = dict(_leaves(request))
    others = [dict(_leaves(one)) for one in recorded]
    if not others:
        return ""
    nearest = max(others, key=lambda other: _common(own, other))
    for path, value in own.items():
        known = nearest.get(path, MISSING)
        if known is MISSING:
            return f"`{path}` ({shown(value)}) is new"
        if not _is_same(value, known):
            return _describe(path, value, known)
    return next((f"`{path}` is missing" for path in nearest if path not in own), "")


def _common(own: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    return sum(path in other and _is_same(value, other[path]) for path, value in own.items())


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)  # `true` is not 1


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The texts, numbers and empty collections of JSON data, with their paths, in order."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _describe(path: str, value: Any, known: Any) -> str:
    if not (isinstance(value, str) and isinstance(known, str)):
        return f"`{path}` is {shown(value)} instead of {shown(known)}"
    value, known = redact(value), redact(known)
    if (own := _MARK.sub("…", value)) != (other := _MARK.sub("…", known)):
        value, known = own, other
    lines, others = value.split("\n"), known.split("\n")
    both = zip(lines, others, strict=False)
    number = next((at for at, pair in enumerate(both) if pair[0] != pair[1]), -1)
    if number < 0:  # one is the beginning of the other
        number = min(len(lines), len(others))
    line, recorded = ("".join(texts[number : number + 1]) for texts in (lines, others))
    letters = zip(line, recorded, strict=False)
    start = next((at for at, pair in enumerate(letters) if pair[0] != pair[1]), 0)
    line, recorded = (_from(text, start - _BEFORE) for text in (line, recorded))
    where = f" (line {number + 1})" if len(lines) > 1 or len(others) > 1 else ""
    return f"`{path}`{where} is {shown(line)} instead of {shown(recorded)}"


def _from(line: str, start: int) -> str:
    return f"…{line[start:]}" if start > 0 else line
