"""Pure: the JSON object in what a judge says, and the score in it; what is not clear is refused,
never guessed."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from agentevals_action.model.result import Score

# A brace that begins something meant as an object: a quoted or bare key follows, or nothing. `{x}`
# in prose is none.
_START = re.compile(r"""\{(?=\s*(?:["'}]|\w+["']?\s*:|\Z))""")

# Strings and braces; a string without an end reaches to the end of the text.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[{}]', re.DOTALL)

# What stands around an object that is part of a larger one (`"details": {…}`, `[{…}`, `{…}, {…}`),
# which is then itself broken.
_PART_BEFORE = re.compile(r"""(?:["']\s*:|\[|\}\s*,)\s*\Z""")
_PART_AFTER = re.compile(r"\s*[,:\]}]")
_BEFORE_LENGTH = 200  # characters before an object in which such a mark is looked for


class UnreadableReply(ValueError):
    """A reply that cannot be read as what was asked for; the message says why."""


def find_object(text: str, keys: Collection[str]) -> Mapping[str, Any]:
    """The last JSON object in a text that has one of the keys; prose and code fences around it are
    let be.

    UnreadableReply when there is none, or when it is followed by something that was meant as JSON
    and is none: what a broken object holds inside (`{"score": 0.1, "details": {"score": 1}, …`)
    must not pass for the reply."""
    found: Mapping[str, Any] | None = None
    failure = ""
    position = 0
    while start := _START.search(text, position):
        value, end, problem = _object_at(text, start.start())
        if problem:
            failure = problem
        elif value.keys() & set(keys):
            found, failure = value, ""
        position = end
    if failure:
        raise UnreadableReply(failure)
    if found is None:
        raise UnreadableReply(f"there is no JSON object with {_either(keys)}")
    return found


def read_json(text: str) -> Any:
    """The one JSON value that a text is; UnreadableReply when it is none, or more."""
    try:
        return _clean(_DECODER.decode(text))
    except json.JSONDecodeError as error:
        raise UnreadableReply(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise UnreadableReply("it is nested too deeply") from None
    except ValueError as error:
        raise UnreadableReply(str(error)) from None


def _either(keys: Collection[str]) -> str:
    return " or ".join(f"`{key}`" for key in keys)


def _object_at(text: str, start: int) -> tuple[Mapping[str, Any], int, str]:
    """The object that begins at `start`, where it ends, and what is wrong with it (empty when
    nothing is)."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        cleaned = _clean(value)
    except (ValueError, RecursionError) as error:
        reason = (
            error.msg
            if isinstance(error, json.JSONDecodeError)
            else str(error) or "it is nested too deeply"
        )
        return {}, _end_of_braces(text, start), f"the JSON object is broken ({reason})"
    if _PART_BEFORE.search(text, max(0, start - _BEFORE_LENGTH), start) or _PART_AFTER.match(
        text, end
    ):
        return {}, end, "the JSON object is part of something larger that is no JSON object"
    return cleaned, end, ""


def _end_of_braces(text: str, start: int) -> int:
    depth = 0
    for token in _TOKENS.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "}":
            return token.end()
    return len(text)


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is given twice")
    return data


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_refuse, parse_float=_finite)


def _clean(value: Any) -> Any:
    """The same data with halves of surrogate pairs, which no file can hold, replaced by question
    marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def read_number(value: Any, name: str, low: float, high: float) -> float:
    """A number of a reply, `low` to `high`; UnreadableReply when it is none (`true` is none) or
    outside, it is never clamped."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableReply(f"`{name}` must be a number from {low:g} to {high:g}")
    if not low <= value <= high:
        raise UnreadableReply(f"`{name}` is {str(value)[:20]}, it must be from {low:g} to {high:g}")
    return float(value)


def read_text(value: Any, name: str) -> str:
    """A text of a reply, empty when it is missing; UnreadableReply when it is something else."""
    if value is not None and not isinstance(value, str):
        raise UnreadableReply(f"`{name}` must be a string")
    return value or ""


def read_score(data: Mapping[str, Any], *, share: bool = False) -> Score:
    """The score in a judge's object: `score` (0-1), `hits`, `misses`, `reasoning`, `details`,
    `assertions` (each a hit or a miss).

    With `share` an object without `score` has the share of its `assertions` that passed.
    UnreadableReply when anything in it is not of its type."""
    assertions = _read_assertions(data.get("assertions"))
    if "score" in data or not share:
        value = read_number(data.get("score"), "score", 0, 1)
    elif assertions:
        value = sum(passed for _, passed, _ in assertions) / len(assertions)
    else:
        raise UnreadableReply("there is neither `score` nor an entry in `assertions`")
    details = data.get("details")
    if details is not None and not isinstance(details, Mapping):
        raise UnreadableReply("`details` must be an object")
    return Score(
        value=value,
        hits=_read_texts(data.get("hits"), "hits")
        + tuple(text for text, passed, _ in assertions if passed),
        misses=_read_texts(data.get("misses"), "misses")
        + tuple(_told(text, evidence) for text, passed, evidence in assertions if not passed),
        reasoning=read_text(data.get("reasoning"), "reasoning"),
        details=details or {},
    )


def _told(text: str, evidence: str) -> str:
    return f"{text} ({evidence})" if evidence else text


def _read_texts(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UnreadableReply(f"`{name}` must be a list of strings")
    return tuple(value)


def _read_assertions(value: Any) -> tuple[tuple[str, bool, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise UnreadableReply("`assertions` must be a list of objects")
    for item in value:
        if not isinstance(item.get("text"), str) or not isinstance(item.get("passed"), bool):
            raise UnreadableReply(
                "each of `assertions` needs a `text` (string) and a `passed` (true or false)"
            )
    return tuple(
        (item["text"], item["passed"], read_text(item.get("evidence"), "evidence"))
        for item in value
    )
