"""The items of OpenAI's Responses API, and of histories as `result.to_input_list()` of
openai-agents returns them. Items contain no tokens.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from agentevals_action.model.messages import Message, Picture, encode_arguments
from agentevals_action.targets.dialects import messages as role_messages
from agentevals_action.targets.dialects import requests
from agentevals_action.targets.dialects.blocks import (
    Item,
    WireMessage,
    find_kind,
    read_call,
    read_result,
)
from agentevals_action.validation.json_values import as_object

#: The types of parts that only this API has.
_PARTS = ("input_text", "output_text", "input_image", "input_file")


def to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `instructions` (the system messages at the beginning) and `input` of a request;
    ValueError if something cannot be sent. It has no field for names of participants."""
    linked = requests.link_calls(messages)
    first = list(takewhile(lambda message: message.role == "system", linked))
    instructions = requests.system_text(first)
    items = [item for message in linked[len(first) :] for item in _wire_items(message)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _wire_items(message: Message) -> Iterator[dict[str, Any]]:
    content = requests.text_or_parts(message, ("user", "tool"), _wire_part)
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": content}
        return
    if content or not message.tool_calls:
        yield {"role": message.role, "content": content}
    for call in message.tool_calls:
        arguments = encode_arguments(call)
        named = {"type": "function_call", "call_id": call.id, "name": call.name}
        yield {**named, "arguments": arguments}


def _wire_part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "detail": "auto", "image_url": part.uri}


def matches(items: Sequence[Item]) -> bool:
    """Whether one of the items is of a type, or has a part, that only this API has."""
    for item in items:
        name, parts = str(item.get("type")), item.get("content")
        if name == "reasoning" or name.endswith(("_call", "_call_output")):
            return True
        if isinstance(parts, list) and any(as_object(part).get("type") in _PARTS for part in parts):
            return True
    return False


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history, or of the output of a reply: each has the calls that follow it.
    What a model produces between two inputs is one reply. An unknown item may be a call. ValueError
    for a call without a name."""
    history: list[WireMessage] = []
    in_reply = False
    for item in items:
        name = str(item.get("type", "message"))
        kind = "message" if name == "message" else find_kind(name)
        if kind in ("call", None):
            if not in_reply:
                history.append(WireMessage(Message("assistant", "")))
            history[-1] = _with_call(history[-1], name, item)
            in_reply = True
        elif kind == "result":
            history.append(read_result(item).message())
            in_reply = False
        elif kind == "message":
            for read in role_messages.from_wire([{"role": "assistant", **item}]):
                is_own = read.message.role == "assistant"
                if not is_own or read.unread or not read.is_empty:
                    history.append(replace(read, continues=is_own and in_reply))
                    in_reply = is_own
    return history


def _with_call(reply: WireMessage, name: str, item: Item) -> WireMessage:
    """The reply with a call, or with the name of an item that may be one."""
    if find_kind(name) is None:
        return replace(reply, unread=(*reply.unread, name))
    calls = (*reply.message.tool_calls, read_call(name, item))
    return replace(reply, message=replace(reply.message, tool_calls=calls))
