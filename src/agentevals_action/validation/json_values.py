"""JSON values: the bounded parser, equality, paths into them, and their form in a sentence."""

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NoReturn

from agentevals_action.formatting import QUOTE_LIMIT, cut, quoted

#: Result of `look_up` where a path leads to nothing; `null` is a value.
MISSING: Final = object()

#: Levels of lists and objects in a JSON text, at most.
MAX_DEPTH = 200
#: A string: an unclosed one ends at the end of the text, so that the search is linear.
_STRING = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rf"{_STRING.pattern}|[\[\]{{}}]", re.DOTALL)

_STEP = r"(?:[^.\[\]]+)"
_INDEX = r"(?:\[[0-9]{1,9}\])"
_PATH = re.compile(rf"(?:{_STEP}|{_INDEX})(?:\.{_STEP}|{_INDEX})*")
_STEPS = re.compile(r"[^.\[\]]+")
_POSITION = re.compile(r"[0-9]{1,9}")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; bytes may start with a byte order mark.

    ValueError for text that is not valid JSON, for `NaN` and `Infinity`, for bytes that are not
    Unicode, and for more than `MAX_DEPTH` levels."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    check_depth(text)
    return json.loads(text, parse_constant=refuse_constant)


def decode_json(value: Any) -> Any:
    """The value of a text, or of bytes, that is JSON; anything else as it is."""
    try:
        return parse_json(value) if isinstance(value, str | bytes) else value
    except ValueError:
        return value


def check_depth(text: str) -> None:
    """ValueError for a JSON text of more than `MAX_DEPTH` levels."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def refuse_constant(name: str) -> NoReturn:
    """ValueError for `NaN` and `Infinity`, which the decoder of Python reads."""
    raise ValueError(f"{name} is not valid JSON")


def equal(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: objects whatever the order of their keys, 1 and 1.0
    equal, `true` not a number."""
    # A list of pairs rather than recursion, which a deeply nested answer would break.
    waiting = [(left, right)]
    while waiting:
        left, right = waiting.pop()
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if left.keys() != right.keys():
                return False
            waiting.extend((left[key], right[key]) for key in left)
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            if len(left) != len(right):
                return False
            waiting.extend(zip(left, right, strict=True))
        elif isinstance(left, bool) or isinstance(right, bool):
            if left is not right:
                return False
        elif left != right:
            return False
    return True


def canonical(value: Any) -> Hashable:
    """A form of a value of at most `MAX_DEPTH` levels for a set: the forms of two values are the
    same if the values are `equal`."""
    if isinstance(value, Mapping):
        return frozenset((key, canonical(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    return str(value).encode() if isinstance(value, bool) else value  # JSON has no bytes


def read_path(text: str) -> tuple[str, ...]:
    """The steps of a dotted path; positions in lists in either spelling (`items.0.name`,
    `items[0].name`). ValueError for an invalid path."""
    if not _PATH.fullmatch(text):
        raise ValueError(
            f"{quoted(text)} is not a valid path; write names and positions, as items[0].name"
        )
    return tuple(_STEPS.findall(text))


def look_up(data: Any, steps: Sequence[str]) -> Any:
    """The value at a path, MISSING without a value; positions in lists count from 0."""
    for step in steps:
        if isinstance(data, Mapping):
            data = data.get(step, MISSING)
        elif isinstance(data, list | tuple) and _POSITION.fullmatch(step) and int(step) < len(data):
            data = data[int(step)]
        else:
            return MISSING
    return data


def map_texts(value: Any, convert: Callable[[str], Any]) -> Any:
    """The value with each text in it converted."""
    if isinstance(value, Mapping):
        return {name: map_texts(inner, convert) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map_texts(inner, convert) for inner in value)
    return convert(value) if isinstance(value, str) else value


def as_text(value: Any) -> str | None:
    """A string as it is, a number, `true`, `false` or `null` as JSON writes it; None for an object
    or a list."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, Mapping | list | tuple) else json.dumps(value)


def describe_json(value: Any) -> str:
    """A value in a sentence: on one line, cut to `QUOTE_LIMIT` characters."""
    if isinstance(value, str):
        return quoted(replace_surrogates(value))
    return cut(replace_surrogates(json.dumps(value, ensure_ascii=False, default=str)), QUOTE_LIMIT)


def replace_surrogates(text: str) -> str:
    """The text with `?` for each half of a surrogate pair: JSON can express it, UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_object(value: Any) -> Mapping[str, Any]:
    """An object as it is, an empty object in place of anything else."""
    return value if isinstance(value, Mapping) else {}


#: No count or amount is as large; arithmetic with larger numbers may not be possible as a float.
MAX_COUNT = 2**63


def as_amount(value: Any) -> float | None:
    """A finite number from 0, None in place of anything else: unknown is not zero."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < MAX_COUNT else None


def amount_in(text: str) -> float | None:
    """The finite number from 0 that a text, such as a header, consists of; None without one."""
    try:
        return as_amount(float(text))
    except ValueError:
        return None


def as_count(value: Any) -> int | None:
    """A whole number from 0, None in place of anything else: unknown is not zero."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < MAX_COUNT else None
