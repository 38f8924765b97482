"""Traces of conversations, in the formats of APIs and frameworks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.model.usage import total
from agentevals_action.targets.replies.formats import FORMATS
from agentevals_action.targets.replies.formats.base import Turn

#: The types of an assistant's blocks that are read, or that cannot hold a tool call.
_BLOCKS = frozenset({
    "text", "input_text", "output_text", "refusal", "json", "file", "image", "image_url", "audio",
    "thinking", "redacted_thinking", "reasoning", "tool-call", "builtin-tool-call", "tool_use",
    "server_tool_use", "mcp_tool_use", "tool-return", "builtin-tool-return", "tool_call",
})  # fmt: skip
_RESULTS = ("_tool_result", "_call_output")
#: The types of messages, and of the items of OpenAI's Responses, that are read.
_ITEMS = frozenset({
    "message", "reasoning", "ai", "AIMessageChunk", "human", "HumanMessageChunk", "system", "tool",
    "function", "remove",
})  # fmt: skip


def read_conversation(items: Any, question: Sequence[Message]) -> Trace | None:
    """The trace of what an agent added to a conversation; None if the items have no known
    structure, ValueError if one of them is not valid. `question` are the messages of the test."""
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    found = (turns for read in FORMATS.values() if (turns := read(items)) is not None)
    turns = next(found, None)
    if turns is None:
        return None
    own = turns[_question_end(turns, question) :]
    messages = tuple(_with_outputs(own))
    replies = [turn.figures.trace(()) for turn in own if turn.message.role == "assistant"]
    models = {reply.model for reply in replies}
    calls = tuple(call for message in messages for call in message.tool_calls)
    return Trace(
        messages=messages,
        tool_calls=calls if all(map(_is_understood, items)) else None,
        llm_call_count=len(replies),
        usage=total(reply.usage for reply in replies),
        model=models.pop() if len(models) == 1 else None,
    )


def _is_understood(item: Mapping[str, Any]) -> bool:
    """Whether an item is of a known type, and all blocks of an assistant's message: a block of an
    unknown type may be a tool call."""
    kind, role = item.get("type"), item.get("role", item.get("kind"))
    if isinstance(kind, str) and kind not in _ITEMS and not kind.endswith(("_call", *_RESULTS)):
        return False
    if role in ("system", "developer", "user", "tool", "function", "request"):
        return True
    data = item.get("data")
    holder = data if isinstance(data, Mapping) else item
    content = holder.get("parts", holder.get("content"))
    blocks = content if isinstance(content, list) else ()
    types = (
        block.get("type", block.get("part_kind")) if isinstance(block, Mapping) else "text"
        for block in blocks
    )
    return all(
        isinstance(each, str) and (each in _BLOCKS or each.endswith(_RESULTS)) for each in types
    )


def _question_end(turns: Sequence[Turn], question: Sequence[Message]) -> int:
    """The index of the first turn that is not part of the question.

    Attack: the conversation of a test contains a call of the expected tool, and an agent that does
    not call it passes because its framework returns the whole conversation. An agent may leave out
    earlier messages, or put a message into a text of its own."""
    asked = [message for message in question if message.role == "user"]
    users = [index for index, turn in enumerate(turns) if turn.message.role == "user"]
    if not asked or not users:
        return 0
    last, count = _text(asked[-1]), len(asked)
    if same := [index for index in users if last and last in text_of(turns[index].message)]:
        users, count = same, sum(last in _text(message) for message in asked)
    elif any(turn.message.role not in ("system", "user") for turn in turns[: users[0]]):
        return 0  # it begins with the agent's own messages
    end = users[min(count, len(users)) - 1] + 1
    after = question[len(question) - 1 - question[::-1].index(asked[-1]) + 1 :]
    for message in after:
        if end == len(turns) or not _is_same(turns[end].message, message):
            break
        end += 1
    return end


def _is_same(one: Message, other: Message) -> bool:
    return one.role == other.role and text_of(one) == _text(other)


def _text(message: Message) -> str:
    """The first text of a message: files and pictures have other forms in a conversation."""
    return next((str(block.value) for block in message.blocks if block.type == "text"), "")


def _with_outputs(turns: Sequence[Turn]) -> Sequence[Message]:
    """The messages, with the outputs of their calls from the tool messages after them, which may
    also say that a call was refused."""
    answers: dict[str, Turn] = {}

    def finish(call: ToolCall) -> ToolCall:
        answer = answers.pop(call.id, None) if call.id else None
        if answer is None:
            return call
        output = text_of(answer.message) if call.output is None else call.output
        return replace(call, output=output, refused=call.refused or answer.refused)

    finished = []
    for turn in reversed(turns):
        message = turn.message
        if message.role == "tool" and message.tool_call_id:
            answers[message.tool_call_id] = turn
        finished.append(replace(message, tool_calls=tuple(map(finish, message.tool_calls))))
    return finished[::-1]
