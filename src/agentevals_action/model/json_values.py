"""Pure: values of JSON, however they came in: equality, paths into them, and how they are shown in
a sentence."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentevals_action.evaluators.matching import QUOTE_LIMIT, quoted

#: What a path leads to where there is nothing; `null` is a value.
MISSING: Final = object()

_STEP = r"(?:[^.\[\]]+)"
_INDEX = r"(?:\[[0-9]{1,9}\])"
_PATH = re.compile(rf"(?:{_STEP}|{_INDEX})(?:\.{_STEP}|{_INDEX})*")
_STEPS = re.compile(r"[^.\[\]]+")
_POSITION = re.compile(r"[0-9]{1,9}")


def equal(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: objects whatever the order of their keys, 1 and 1.0
    equal, `true` no number."""
    # A list of pairs rather than recursion, which a deeply nested answer would break.
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            waiting.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif one != other:
            return False
    return True


def read_path(text: str) -> tuple[str, ...]:
    """The steps of a dotted path; positions in lists in either spelling (`items.0.name`,
    `items[0].name`). ValueError if it is none."""
    if not _PATH.fullmatch(text):
        raise ValueError(f"{quoted(text)} is no path; write names and positions, as items[0].name")
    return tuple(_STEPS.findall(text))


def look_up(data: Any, steps: Sequence[str]) -> Any:
    """What a path leads to, MISSING where it leads nowhere; positions in lists count from 0."""
    for step in steps:
        if isinstance(data, Mapping):
            data = data.get(step, MISSING)
        elif isinstance(data, list | tuple) and _POSITION.fullmatch(step) and int(step) < len(data):
            data = data[int(step)]
        else:
            return MISSING
    return data


def text_of(value: Any) -> str | None:
    """A string as it is, a number, `true`, `false` or `null` as JSON writes it; None of an object
    or a list."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, Mapping | list | tuple) else json.dumps(value)


def shown(value: Any) -> str:
    """A value in a sentence: on one line, cut to `QUOTE_LIMIT` characters."""
    if isinstance(value, str):
        return quoted(_whole(value))
    try:
        text = _whole(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return "a value that is nested too deeply to be shown"
    return text if len(text) <= QUOTE_LIMIT else f"{text[: QUOTE_LIMIT - 1]}…"


def _whole(text: str) -> str:
    # Halves of surrogate pairs, which JSON can spell, fit in no file.
    return text.encode("utf-8", "replace").decode("utf-8")


def members(value: Any) -> Mapping[str, Any]:
    """An object as it is, an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def count(value: Any) -> int | None:
    """A whole number from 0, None in place of anything else: unknown is not zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
