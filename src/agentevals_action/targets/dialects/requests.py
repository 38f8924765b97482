"""The common parts of all requests to models: linked tool calls, turns of two sides, texts and
pictures."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from agentevals_action.model.messages import Message, Picture, Role, ToolCall, picture
from agentevals_action.targets.message_texts import content_text

Side = Literal["user", "assistant"]


def link_calls(messages: Sequence[Message]) -> list[Message]:
    """The messages with an id for each tool call, and with the id and name of its call on each tool
    message.

    A tool message without an id answers the next open call of its name, else the next of all. The
    output that a call itself holds becomes a tool message unless another one answers the call.
    ValueError if a tool message has no call to answer."""
    linked: list[Message] = []
    unanswered: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            linked.append(_link_answer(message, unanswered))
            continue
        linked += _outputs(unanswered)
        calls = tuple(
            replace(call, id=call.id or f"call_{index}_{number}")
            for number, call in enumerate(message.tool_calls)
        )
        unanswered = {call.id: call for call in calls if call.id}
        linked.append(replace(message, tool_calls=calls))
    return linked + _outputs(unanswered)


def _link_answer(message: Message, unanswered: dict[str, ToolCall]) -> Message:
    call_id = message.tool_call_id
    if call_id is None:
        same_name = (key for key, call in unanswered.items() if call.name == message.name)
        call_id = next(same_name, None) or next(iter(unanswered), None)
    if call_id is None:
        raise ValueError("a tool message answers no tool call before it")
    call = unanswered.pop(call_id, None)
    return replace(message, tool_call_id=call_id, name=call.name if call else message.name)


def _outputs(unanswered: dict[str, ToolCall]) -> list[Message]:
    outputs = []
    for call in unanswered.values():
        if call.output is not None:
            text = call.output
            text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            outputs.append(Message("tool", text, name=call.name, tool_call_id=call.id))
    return outputs


def system_text(messages: Sequence[Message]) -> str:
    """The system messages as one text, with an empty line in between; ValueError if one has a
    picture."""
    return "\n\n".join(
        "\n".join(str(part) for part in parts(message, ()))
        for message in messages
        if message.role == "system"
    )


def turns(messages: Sequence[Message]) -> Iterator[tuple[Side, list[Message]]]:
    """The other messages, grouped by the side that they are on; a tool message is on the user's."""
    others = [message for message in messages if message.role != "system"]
    for is_assistant, together in groupby(others, lambda message: message.role == "assistant"):
        yield "assistant" if is_assistant else "user", list(together)


def arguments(call: ToolCall) -> dict[str, object]:
    """A tool call's arguments as an object; ValueError if they are not one."""
    if call.arguments is None:
        return {}
    if not isinstance(call.arguments, dict):
        raise ValueError(f"the arguments of the tool call `{call.name}` are not an object")
    return call.arguments


def parts(message: Message, with_pictures: Sequence[Role]) -> Iterator[str | Picture]:
    """The texts and pictures of a message without empty texts; ValueError if one cannot be sent."""
    for block in message.blocks:
        if block.type == "image" and message.role not in with_pictures:
            whose = "an assistant" if message.role == "assistant" else f"a {message.role}"
            raise ValueError(
                f"a picture in {whose} message cannot be sent; put it into a user message"
            )
        part = picture(block) if block.type == "image" else content_text(Message("user", (block,)))
        if part:
            yield part


def text_or_parts(
    message: Message,
    with_pictures: Sequence[Role],
    convert: Callable[[str | Picture], dict[str, Any]],
) -> str | list[dict[str, Any]]:
    """The content of a message: one text if it has no pictures, else its converted parts; raises as
    `parts` does."""
    contents = list(parts(message, with_pictures))
    if any(isinstance(part, Picture) for part in contents):
        return [convert(part) for part in contents]
    return content_text(message)
