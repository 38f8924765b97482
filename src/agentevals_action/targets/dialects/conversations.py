"""Traces of conversations, in the formats of APIs and frameworks."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Protocol

from agentevals_action.formatting import distinct, joined, quoted, shortened
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Trace, join_text, list_calls, total
from agentevals_action.targets.dialects import langchain, messages, pydantic_ai, responses
from agentevals_action.targets.dialects.blocks import Item, WireMessage


class HistoryFormat(Protocol):
    """A module that reads lists of messages."""

    def matches(self, items: Sequence[Item]) -> bool:
        """Whether the items have the structure of this format."""
        ...

    def from_wire(self, items: Sequence[Item]) -> Sequence[WireMessage]:
        """The messages. ValueError if one of them is not valid."""
        ...


#: The formats of histories: the first one that matches a list of messages reads it.
HISTORIES: Sequence[HistoryFormat] = (pydantic_ai, langchain, responses, messages)
_MAX_NAMES = 5  # unknown kinds that a warning names


def read_conversation(
    items: Any, question: Sequence[Message], waiting: Collection[str] = ()
) -> Trace | None:
    """The trace of what an agent added to a conversation; None if the items have no known
    structure, ValueError if one of them is not valid. `question` are the messages of the test,
    `waiting` the ids of calls that wait for a person's approval.

    The tool calls are known if the agent's part has a message, and all of it is understood."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    history = next((reader for reader in HISTORIES if items and reader.matches(items)), None)
    if history is None:
        return None
    read = history.from_wire(items)
    new = read[_question_end([wire.message for wire in read], question) :]
    finished = tuple(_with_outputs(new, waiting))
    replies = [wire for wire in new if wire.message.role == "assistant"]
    models = {wire.model for wire in replies}
    unread = distinct(wire.unread for wire in new)
    asked = {call.id for wire in read for call in wire.message.tool_calls}
    results = [wire.message for wire in new if wire.message.role == "tool" and wire.message.content]
    is_complete = history is pydantic_ai  # there, the structured answer is a call with a result
    if not (unread or is_complete) and any(result.tool_call_id not in asked for result in results):
        unread = ("a result of a tool without its call",)
    return Trace(
        messages=finished,
        tool_calls=list_calls(finished) if replies and not unread else None,
        llm_call_count=sum(not wire.continues for wire in replies),
        usage=total(wire.usage for wire in replies),
        model=models.pop() if len(models) == 1 else None,
        warnings=(_unread_warning(unread),) if unread else (),
    )


def _unread_warning(unread: Sequence[str]) -> str:
    names = joined(shortened([quoted(name) for name in unread], _MAX_NAMES))
    return (
        f"its messages have parts of an unknown kind ({names}), which may be tool calls: the tool "
        "calls are unknown; list them in `tool_calls`"
    )


def _question_end(messages: Sequence[Message], question: Sequence[Message]) -> int:
    """The index of the first message that is not part of the question.

    Attack: the conversation of a test contains a call of the expected tool, and an agent that does
    not call it passes because its framework returns the whole conversation. An agent may leave out
    earlier messages, or put a message into a text of its own."""
    asked = [message for message in question if message.role == "user"]
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    if not asked or not users:
        return 0
    last, count = _text(asked[-1]), len(asked)
    if given := [index for index in users if last and last in join_text(messages[index])]:
        users, count = given, sum(last in _text(message) for message in asked)
    elif any(message.role not in ("system", "user") for message in messages[: users[0]]):
        return 0  # it begins with the agent's own messages
    end = users[min(count, len(users)) - 1] + 1
    after = [*takewhile(lambda message: message.role != "user", reversed(question))][::-1]
    pairs = zip(messages[end:], after, strict=False)
    same = takewhile(
        lambda pair: (pair[0].role, join_text(pair[0])) == (pair[1].role, _text(pair[1])), pairs
    )
    return end + len([*same])


def _text(message: Message) -> str:
    """The first text of a message: files and pictures have other forms in a conversation."""
    return next((str(block.value) for block in message.blocks if block.type == "text"), "")


def _with_outputs(items: Sequence[WireMessage], waiting: Collection[str]) -> Sequence[Message]:
    """The messages, with the outputs of their calls from the tool messages after them, which may
    also say that a call was refused. A call that waits for a person was not made either."""
    answers: dict[str, WireMessage] = {}
    waiting = {*waiting, *(call_id for wire in items for call_id in wire.waiting)}

    def finish(call: ToolCall) -> ToolCall:
        answer = answers.pop(call.id, None) if call.id else None
        if answer is None:
            is_waiting = call.output is None and call.id in waiting
            return replace(call, refused=call.refused or is_waiting)
        output = join_text(answer.message) if call.output is None else call.output
        return replace(call, output=output, refused=call.refused or answer.refused)

    finished = []
    for wire in reversed(items):
        message = wire.message
        if message.role == "tool" and message.tool_call_id:
            answers[message.tool_call_id] = wire
        finished.append(replace(message, tool_calls=tuple(map(finish, message.tool_calls))))
    return finished[::-1]


def add_answer(messages: Sequence[Message], answer: str) -> tuple[Message, ...]:
    """The messages, with the agent's final answer as one more message unless the last one already
    ends with it."""
    answers = (join_text(message) for message in reversed(messages) if message.role == "assistant")
    if not answer.strip() or next(answers, "").strip().endswith(answer.strip()):
        return tuple(messages)
    return (*messages, Message("assistant", answer))
