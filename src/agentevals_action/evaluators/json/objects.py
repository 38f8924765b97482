"""JSON objects in texts: in the reply of a judge, in the output of a program, in an answer."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import require
from agentevals_action.validation.json_values import check_depth, replace_surrogates

# A brace that starts an object: a quoted or bare key or the end follows. `{x}` in prose does not.
# Only one with `json` can be JSON.
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
    broken one (`{"score": 0.1, "details": {"score": 1}, …`) does not count. AttemptError if the
    broken ones take too long."""
    found: list[Mapping[str, Any]] = []
    problem, read = "", 0
    begin = _START.search(text)
    while begin:
        try:
            value, end = _read_object(text, begin)
        except RecursionError:
            raise UnreadableReply("the JSON object is nested too deeply") from None
        except _Broken as broken:
            problem, end = broken.problem, begin.start() + 1
            read += broken.read
            if read > _MAX_READ:
                reason = f"{len(text):,} characters have too many broken JSON objects to read all"
                raise AttemptError("evaluator", reason, "Ask for JSON alone.") from None
        else:
            if value.keys() & set(keys):
                found.append(_clean(value))
                problem = ""
        begin = _START.search(text, end)
    if problem:
        raise UnreadableReply(f"the JSON object is broken ({problem})")
    if not found:
        named = " or ".join(f"`{key}`" for key in keys)
        raise UnreadableReply(f"there is no JSON object with {named}")
    return found


class _Broken(Exception):
    """What is wrong with an object, and how many characters it took to see that."""

    def __init__(self, problem: str, read: int) -> None:
        super().__init__(problem)
        self.problem, self.read = problem, read


def _read_object(text: str, begin: re.Match[str]) -> tuple[Mapping[str, Any], int]:
    """The object that begins there, and where it ends. _Broken if it is no JSON, or a part of
    something larger that is none; RecursionError."""
    start = begin.start()
    if not begin["json"]:
        raise _Broken("Expecting property name enclosed in double quotes", 0)
    end = len(text)  # an error that is not of the syntax does not say where it is
    try:
        value, end = _DECODER.raw_decode(text, start)
        check_depth(text[start:end])
    except json.JSONDecodeError as error:
        raise _Broken(error.msg, error.pos - start + error.pos // _COUNTED) from None
    except ValueError as error:
        raise _Broken(str(error), end - start) from None
    before = max(0, start - _BEFORE_LENGTH)
    if _PART_BEFORE.search(text, before, start) or _PART_AFTER.match(text, end):
        raise _Broken("it is part of something larger that is not a JSON object", end - start)
    return value, end


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


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_is_finite = require(math.isfinite, "a number is too large")
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys,
    parse_constant=_refuse_constant,
    parse_float=lambda digits: _is_finite(float(digits)),
)


def _clean(value: Any) -> Any:
    """The data without surrogates, which cannot be written to a UTF-8 file."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
