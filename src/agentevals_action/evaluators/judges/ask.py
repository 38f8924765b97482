"""Asks a judge: one prompt, one reply that must be read, one chance to repair it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Ask
from agentevals_action.evaluators.judges.replies import UnreadableReply, find_object
from agentevals_action.model.suite import Evaluator, Message

Reading = TypeVar("Reading")

_KEPT = 20_000  # characters of an unreadable reply that the judge is shown again
_TOLD = 200  # characters of an unreadable reply that the error quotes

# It ends in something meant as JSON that is none: a judge that only says our words back can never
# be read as a reply.
_REPAIR = """\
Your last message could not be read: {failure}.

Give your judgement again, as one JSON object and nothing else, in the form that was asked for; when no form was asked for, in this one:
{form}
"""


async def ask_judge(
    ask: Ask,
    evaluator: Evaluator,
    prompt: str,
    form: str,
    keys: Collection[str],
    read: Callable[[Mapping[str, Any]], Reading],
) -> Reading:
    """What `read` makes of the last JSON object with one of the keys in the judge's reply to a
    prompt, its only user message.

    `read` raises UnreadableReply for an object that will not do. `form` shows the judge what is
    wanted, when it must be asked a second time; it must not be JSON itself. AttemptError of kind
    `judge` when the second reply is no better."""
    question = Message("user", prompt)
    reply = await ask(evaluator, (question,))
    try:
        return read(find_object(reply, keys))
    except UnreadableReply as failure:
        said = (Message("assistant", reply[:_KEPT]),) if reply.strip() else ()
        repair = Message("user", _REPAIR.format(failure=failure, form=form))
        reply = await ask(evaluator, (question, *said, repair))
    try:
        return read(find_object(reply, keys))
    except UnreadableReply as failure:
        raise AttemptError(
            "judge",
            f"the judge's reply cannot be read, also when asked again: {failure}; {_ending(reply)}",
        ) from None


def _ending(reply: str) -> str:
    line = " ".join(reply.split())
    if not line:
        return "it was empty"
    return f"it ended in “{line}”" if len(line) <= _TOLD else f"it ended in “…{line[-_TOLD:]}”"
