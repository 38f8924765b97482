"""A conversation as vendors want it that know two sides, and which message answers which tool
call."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from agentevals_action.model.messages import content_text
from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.targets.apis.images import Picture, picture

Side = Literal["user", "assistant"]


def linked(messages: Sequence[Message]) -> list[Message]:
    """The messages with an id for each tool call, and on each tool message the id and the name of
    the call that it answers.

    A tool message that names none answers the next open call of its name, else the next of all. The
    output that a call carries itself becomes a tool message where no other answers it. ValueError
    when a tool message has no call to answer."""
    told: list[Message] = []
    unanswered: dict[str, ToolCall] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            told.append(_answer(message, unanswered))
            continue
        told += _outputs(unanswered)
        calls = tuple(
            replace(call, id=call.id or f"call_{place}_{number}")
            for number, call in enumerate(message.tool_calls)
        )
        unanswered = {call.id: call for call in calls if call.id}
        told.append(replace(message, tool_calls=calls))
    return told + _outputs(unanswered)


def _answer(message: Message, unanswered: dict[str, ToolCall]) -> Message:
    own_id = message.tool_call_id
    if own_id is None:
        of_its_name = (call_id for call_id, call in unanswered.items() if call.name == message.name)
        own_id = next(of_its_name, None) or next(iter(unanswered), None)
    if own_id is None:
        raise ValueError("a tool message answers no tool call before it")
    call = unanswered.pop(own_id, None)
    return replace(message, tool_call_id=own_id, name=call.name if call else message.name)


def _outputs(unanswered: dict[str, ToolCall]) -> list[Message]:
    carried = [call for call in unanswered.values() if call.output is not None]
    return [
        Message("tool", _text(call.output), name=call.name, tool_call_id=call.id)
        for call in carried
    ]


def _text(output: object) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def system_text(messages: Sequence[Message]) -> str:
    """The system messages as one text, an empty line between them; ValueError when a picture stands
    in one."""
    return "\n\n".join(
        "\n".join(str(part) for part in parts(message, ()))
        for message in messages
        if message.role == "system"
    )


def sides(messages: Sequence[Message]) -> Iterator[tuple[Side, list[Message]]]:
    """The other messages, those that follow each other from one side together; what a tool said is
    of the user's side."""
    spoken = [message for message in messages if message.role != "system"]
    for is_assistant, together in groupby(spoken, lambda message: message.role == "assistant"):
        yield "assistant" if is_assistant else "user", list(together)


def parts(message: Message, with_pictures: Sequence[Role]) -> Iterator[str | Picture]:
    """The texts and pictures of a message, empty texts left out.

    ValueError when a file is no text or an image no picture, or stands in a message of a role that
    takes none; OSError when it cannot be read."""
    blocks = message.content
    if isinstance(blocks, str):
        yield from (blocks,) if blocks else ()
        return
    for block in blocks:
        if block.type == "image" and message.role not in with_pictures:
            whose = "an assistant" if message.role == "assistant" else f"a {message.role}"
            raise ValueError(
                f"a picture in {whose} message cannot be sent; put it into a user message"
            )
        part = picture(block) if block.type == "image" else content_text(Message("user", (block,)))
        if part:
            yield part


def arguments(call: ToolCall) -> dict[str, object]:
    """A tool call's arguments as the object that these vendors want; ValueError when they are
    none."""
    if call.arguments is None:
        return {}
    if not isinstance(call.arguments, dict):
        raise ValueError(f"the arguments of the tool call `{call.name}` are no object")
    return call.arguments
