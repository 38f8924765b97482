"""Messages of pydantic-ai: `result.all_messages_json()`.

https://ai.pydantic.dev/api/messages/
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.model.messages import Message
from agentevals_action.targets.dialects.blocks import (
    Item,
    WireMessage,
    decode_arguments,
    find_kind,
    objects,
    optional_text,
    read_blocks,
    read_result,
    text_of_parts,
)
from agentevals_action.targets.dialects.usage import read_usage


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of requests and responses with parts."""
    kinds = ("request", "response")
    return all(item.get("kind") in kinds and isinstance(item.get("parts"), list) for item in items)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages. ValueError for a tool call without a name."""
    history: list[WireMessage] = []
    for item in items:
        parts = [(str(part.get("part_kind")), part) for part in objects(item, "parts")]
        if item["kind"] == "request":
            history += [_input(*part) for part in parts]
        else:
            usage, model = read_usage(item.get("usage")), optional_text(item.get("model_name"))
            reply = read_blocks([_block(*part) for part in parts])
            message = Message("assistant", reply.text, tool_calls=tuple(reply.calls))
            history.append(WireMessage(message, usage, model, unread=tuple(reply.unread)))
    return history


def _block(kind: str, part: Item) -> Item:
    """A part of a response as a block."""
    if kind == "text":
        return {"type": kind, "text": part.get("content")}
    if kind == "tool-call" and part.get("tool_kind") == "output":
        # The answer is structured data, which the framework asks for as a call.
        arguments = decode_arguments(part.get("args"))
        return {"type": "text", "text": json.dumps(arguments, ensure_ascii=False)}
    return {**part, "type": kind}


def _input(kind: str, part: Item) -> WireMessage:
    content = part.get("content")
    if kind == "retry-prompt" and part.get("tool_name"):
        # The call was not made if its arguments are not valid (the content is then the list of
        # their errors), or there is no such tool. A text is the tool's own request to try again.
        refused = not isinstance(content, str) or content.startswith("Unknown tool name: ")
        return replace(read_result(part).message(), refused=refused)
    if find_kind(kind) == "result":
        return read_result(part).message()
    text = text_of_parts(content)
    return WireMessage(Message("system" if kind == "system-prompt" else "user", text))
