"""Asks a judge and reads the JSON object in its reply; an unclear reply is an error."""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Ask, require
from agentevals_action.formatting import ending
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, Message
from agentevals_action.model.validation.field_errors import describe
from agentevals_action.model.validation.json_values import check_depth, replace_surrogates

Reading = TypeVar("Reading")
Reply = TypeVar("Reply", bound="JudgeReplyModel")

#: Characters of an unreadable reply that the judge receives again.
_REPEATED = 20_000
#: Characters of an unreadable reply that the error quotes.
_QUOTED = 200

# The text does not end in valid JSON: a judge that only repeats its input is never read as a reply.
_REPAIR = (
    "Your last message could not be read: {problem}.\n\n"
    "Give your judgement again, as one JSON object and nothing else, in the form that was asked "
    "for; when no form was asked for, in this one:\n{form}\n"
)

# A brace that starts an object: a quoted or bare key or the end follows. `{x}` in prose does not.
_START = re.compile(r"""\{(?=\s*(?:["'}]|\w+["']?\s*:|\Z))""")

# Text around an object that is part of a larger one (`"details": {…}`, `[{…}`, `{…}, {…}`), which
# is broken itself.
_PART_BEFORE = re.compile(r"""(?:["']\s*:|\[|\}\s*,)\s*\Z""")
_PART_AFTER = re.compile(r"\s*[,:\]}]")
_BEFORE_LENGTH = 200  # characters before an object in which `_PART_BEFORE` is searched


class UnreadableReply(ValueError):
    """A reply that does not have the required form; the message states the reason."""


async def ask_judge(
    ask: Ask,
    evaluator: Evaluator,
    prompt: str,
    form: str,
    keys: Collection[str],
    read: Callable[[Mapping[str, Any]], Reading],
) -> Reading:
    """Sends a prompt as the only user message and reads the last JSON object with one of the keys
    in the reply.

    If `read` raises UnreadableReply, the judge is asked once more, with `form` as the description
    of the reply, which must not be valid JSON. AttemptError of kind `judge` if the second reply
    cannot be read either."""
    question = Message("user", prompt)
    reply = await ask(evaluator, (question,))
    try:
        return read(find_object(reply, keys))
    except UnreadableReply as error:
        first = (Message("assistant", reply[:_REPEATED]),) if reply.strip() else ()
        repair = Message("user", _REPAIR.format(problem=error, form=form))
        reply = await ask(evaluator, (question, *first, repair))
    try:
        return read(find_object(reply, keys))
    except UnreadableReply as error:
        end = ending(" ".join(reply.split()), _QUOTED)
        shown = f"it ended in “{end}”" if end else "it was empty"
        raise AttemptError(
            "judge", f"the judge's reply cannot be read, also when asked again: {error}; {shown}"
        ) from None


def find_object(text: str, keys: Collection[str]) -> Mapping[str, Any]:
    """The last JSON object in a text that has one of the keys; prose and code fences around it are
    ignored.

    UnreadableReply if there is none, or if a broken object follows it. An object inside a broken
    one (`{"score": 0.1, "details": {"score": 1}, …`) does not count."""
    found: Mapping[str, Any] | None = None
    problem = ""
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
            check_depth(text[start:end])
            before = max(0, start - _BEFORE_LENGTH)
            if _PART_BEFORE.search(text, before, start) or _PART_AFTER.match(text, end):
                raise ValueError("it is part of something larger that is not a JSON object")
        except RecursionError:
            raise UnreadableReply("the JSON object is nested too deeply") from None
        except ValueError as error:
            end = start + 1
            if _START.match(text, start):
                problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        else:
            if value.keys() & set(keys):
                found, problem = _clean(value), ""
        start = text.find("{", end)
    if problem:
        raise UnreadableReply(f"the JSON object is broken ({problem})")
    if found is None:
        named = " or ".join(f"`{key}`" for key in keys)
        raise UnreadableReply(f"there is no JSON object with {named}")
    return found


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


class JudgeReplyModel(BaseModel):
    """Base of the objects in a judge's reply; values are never converted."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


def validate_reply(model: type[Reply], data: Any) -> Reply:
    """The object as a model; UnreadableReply with all errors."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UnreadableReply(describe(error, data)) from None


class Assertion(JudgeReplyModel):
    """One statement about the answer; `evidence` is the reason if it did not pass."""

    text: str
    passed: bool
    evidence: str | None = None


class AssertedReply(JudgeReplyModel):
    """A judge's object whose score is the share of the assertions that passed."""

    assertions: list[Assertion] = Field(min_length=1)


class ScoredReply(JudgeReplyModel):
    """A judge's object with a score of 0-1; a null field is missing."""

    score: float = Field(ge=0, le=1)
    hits: list[str] | None = None
    misses: list[str] | None = None
    reasoning: str | None = None
    details: dict[str, Any] | None = None
    assertions: list[Assertion] | None = None


def read_score(data: Mapping[str, Any], *, share: bool = False) -> Score:
    """The score in a judge's object; each assertion is a hit or a miss.

    With `share`, an object without `score` has the share of its assertions that passed.
    UnreadableReply if a field is missing or invalid."""
    if share and "score" not in data:
        passed = [one.passed for one in validate_reply(AssertedReply, data).assertions]
        data = {**data, "score": sum(passed) / len(passed)}
    reply = validate_reply(ScoredReply, data)
    assertions = reply.assertions or []
    failed = (
        f"{one.text} ({one.evidence})" if one.evidence else one.text
        for one in assertions
        if not one.passed
    )
    return Score(
        value=reply.score,
        hits=(*(reply.hits or ()), *(one.text for one in assertions if one.passed)),
        misses=(*(reply.misses or ()), *failed),
        reasoning=reply.reasoning or "",
        details=reply.details or {},
    )
