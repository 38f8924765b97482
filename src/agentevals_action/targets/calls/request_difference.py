"""The first difference between a request and the recorded one that is nearest to it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from agentevals_action.model.validation.json_values import shown
from agentevals_action.system.redaction import redact

_BEFORE = 20  # characters of a text before its first difference
#: The mark in a judge's prompt: it differs whenever the data between the marks does.
_MARK = re.compile(r"\b[0-9a-f]{32}\b")


def first_difference(request: Mapping[str, Any], recorded: Sequence[Mapping[str, Any]]) -> str:
    """`messages[0].content` is “a” instead of “b”, of the recorded request that has the most values
    in common; empty if nothing is recorded or nothing differs."""
    own = dict(_leaves(request))
    others = [dict(_leaves(other)) for other in recorded]
    if not others:
        return ""
    nearest = max(others, key=lambda other: len(own.items() & other.items()))
    for path, value in own.items():
        if path not in nearest:
            return f"`{path}` ({shown(json.loads(value))}) is new"
        if value != nearest[path]:
            return f"`{path}`{_compared(json.loads(value), json.loads(nearest[path]))}"
    return next((f"`{path}` is missing" for path in nearest if path not in own), "")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts, numbers and empty collections of JSON data as JSON (`true` is not 1), with their
    paths, in order."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, json.dumps(value)


def _compared(value: Any, known: Any) -> str:
    """The two values; of two texts, from shortly before the first difference on."""
    if not (isinstance(value, str) and isinstance(known, str)):
        return f" is {shown(value)} instead of {shown(known)}"
    texts = [redact(value), redact(known)]
    without_marks = [_MARK.sub("…", text) for text in texts]
    texts = texts if without_marks[0] == without_marks[1] else without_marks
    pairs = zip(*texts, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    line_start = texts[0].rfind("\n", 0, same) + 1
    line = texts[0].count("\n", 0, same) + 1
    where = f" (line {line})" if line > 1 else ""
    start = max(line_start, same - _BEFORE)
    own, other = (shown("…" * (start > line_start) + text[start:]) for text in texts)
    return f"{where} is {own} instead of {other}"
