"""JSON objects in texts: in the reply of a judge, in the output of a program, in an answer."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import require
from agentevals_action.validation.json_values import (
    check_depth,
    refuse_constant,
    replace_surrogates,
)

# A brace that starts an object: a quoted or bare key or the end follows. `{x}` in prose does not.
# Only a match with the group `json` can be JSON.
_START = re.compile(r"""\{(?=\s*(?:(?P<json>["}])|'|\w+["']?\s*:|\Z))""")

# Text around an object that is part of a larger one (`"details": {…}`, `[{…}`, `{…}, {…}`), which
# is broken itself.
_PART_BEFORE = re.compile(r"""(?:["']\s*:|\[|\}\s*,)\s*\Z""")
_PART_AFTER = re.compile(r"\s*[,:\]}]")
_BEFORE_LENGTH = 200  # characters before an object in which `_PART_BEFORE` is searched
#: Characters that are read for broken objects of one text. The decoder also counts the lines before
#: an error, 50 times as fast.
_MAX_READ, _COUNTED = 200_000_000, 50


class UnreadableReply(ValueError):
    """A text that does not have the required form; the message states the reason."""


def find_object(text: str, keys: Collection[str]) -> Mapping[str, Any]:
    """The last JSON object in a text that has one of the keys; UnreadableReply as `find_objects`
    raises it."""
    return find_objects(text, keys)[-1]


def find_objects(text: str, keys: Collection[str]) -> Sequence[Mapping[str, Any]]:
    """The JSON objects in a text that have one of the keys, one or more; prose and code fences
    around them are ignored.

    UnreadableReply if there is none, or if a broken object follows the last. An object inside a
    broken object (`{"score": 0.1, "details": {"score": 1}, …`) does not count. AttemptError if the
    broken objects take too long."""
    objects: list[Mapping[str, Any]] = []
    problem, read = "", 0
    begin = _START.search(text)
    while begin:
        start = end = begin.start()
        try:
            if not begin["json"]:
                raise ValueError("Expecting property name enclosed in double quotes")
            end = len(text)  # an error that is not of the syntax does not say where it is
            value, end = _DECODER.raw_decode(text, start)
            check_depth(text[start:end])
            _check_alone(text, start, end)
        except RecursionError:
            raise UnreadableReply("the JSON object is nested too deeply") from None
        except ValueError as error:
            read += _characters_read(error, start, end)
            if read > _MAX_READ:
                problem = f"{len(text):,} characters have too many broken JSON objects to read all"
                raise AttemptError("evaluator", problem, "Ask for JSON alone.") from None
            end, problem = start + 1, getattr(error, "msg", str(error))
        else:
            if value.keys() & set(keys):
                objects.append(_clean(value))
                problem = ""
        begin = _START.search(text, end)
    if problem:
        raise UnreadableReply(f"the JSON object is broken ({problem})")
    if not objects:
        named = " or ".join(f"`{key}`" for key in keys)
        raise UnreadableReply(f"there is no JSON object with {named}")
    return objects


def _check_alone(text: str, start: int, end: int) -> None:
    """ValueError for an object that is part of a larger one."""
    before = max(0, start - _BEFORE_LENGTH)
    if _PART_BEFORE.search(text, before, start) or _PART_AFTER.match(text, end):
        raise ValueError("it is part of something larger that is not a JSON object")


def _characters_read(error: ValueError, start: int, end: int) -> int:
    if isinstance(error, json.JSONDecodeError):
        return error.pos - start + error.pos // _COUNTED
    return end - start


def read_json(text: str) -> Any:
    """The one JSON value that a text is; UnreadableReply if it is not exactly one."""
    try:
        check_depth(text)
        return _clean(_DECODER.decode(text))
    except ValueError as error:
        raise UnreadableReply(str(error)) from None


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is given twice")
    return data


_is_finite = require(math.isfinite, "a number is too large")
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys,
    parse_constant=refuse_constant,
    parse_float=lambda digits: _is_finite(float(digits)),
)


def _clean(value: Any) -> Any:
    """The data without surrogates, which cannot be written to a UTF-8 file."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
