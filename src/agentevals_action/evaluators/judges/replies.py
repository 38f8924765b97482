"""Asks a judge and reads the score in its reply; an unclear reply is an error."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.json.objects import UnreadableReply, find_object
from agentevals_action.formatting import ending
from agentevals_action.model.evaluator import Ask, Evaluator
from agentevals_action.model.messages import Block, Message
from agentevals_action.model.result import Score
from agentevals_action.model.trace import Trace
from agentevals_action.validation.field_errors import describe

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


async def ask_judge(
    ask: Ask,
    evaluator: Evaluator,
    prompt: str,
    form: str,
    keys: Collection[str],
    read: Callable[[Mapping[str, Any]], Score],
    pictures: Sequence[Block] = (),
    number: int = 0,
) -> Score:
    """Sends a prompt, with pictures, as the only user message and reads the last JSON object with
    one of the keys in the reply. `number` is that of the judgement, from 0. The score has the name
    of the model.

    If `read` raises UnreadableReply, the judge is asked once more, with `form` as the description
    of the reply, which must not be valid JSON. AttemptError of kind `judge` if the second reply
    cannot be read either."""
    content = (Block("text", prompt), *pictures) if pictures else prompt
    question = Message("user", content)
    reply = await ask(evaluator, (question,), number)
    try:
        return _read(reply, keys, read)
    except UnreadableReply as error:
        text = reply.output[:_REPEATED]
        first = (Message("assistant", text),) if text.strip() else ()
        repair = Message("user", _REPAIR.format(problem=error, form=form))
        reply = await ask(evaluator, (question, *first, repair), number)
    try:
        return _read(reply, keys, read)
    except UnreadableReply as error:
        end = ending(" ".join(reply.output.split()), _QUOTED)
        shown = f"it ended in “{end}”" if end else "it was empty"
        raise AttemptError(
            "judge", f"the judge's reply cannot be read, also when asked again: {error}; {shown}"
        ) from None


def _read(reply: Trace, keys: Collection[str], read: Callable[[Mapping[str, Any]], Score]) -> Score:
    score = read(find_object(reply.output, keys))
    return replace(score, models=(reply.model,) if reply.model else ())


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
        passed = [assertion.passed for assertion in validate_reply(AssertedReply, data).assertions]
        data = {**data, "score": sum(passed) / len(passed)}
    reply = validate_reply(ScoredReply, data)
    assertions = reply.assertions or []
    failed = (
        f"{assertion.text} ({assertion.evidence})" if assertion.evidence else assertion.text
        for assertion in assertions
        if not assertion.passed
    )
    return Score(
        value=reply.score,
        hits=(
            *(reply.hits or ()),
            *(assertion.text for assertion in assertions if assertion.passed),
        ),
        misses=(*(reply.misses or ()), *failed),
        reasoning=reply.reasoning or "",
        details=reply.details or {},
    )
