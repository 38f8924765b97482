"""Messages of pydantic-ai: `result.all_messages_json()`.

https://ai.pydantic.dev/api/messages/
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.model.messages import Message, Role
from agentevals_action.targets.formats import base
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.blocks import is_result, read_blocks, read_result

_UNKNOWN_TOOL = "Unknown tool name: "


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of requests and responses with parts."""
    kinds = ("request", "response")
    return all(item.get("kind") in kinds and isinstance(item.get("parts"), list) for item in items)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages. ValueError for a tool call without a name."""
    found: list[WireMessage] = []
    for item in items:
        parts = [(str(part.get("part_kind")), part) for part in base.objects(item, "parts")]
        if item["kind"] == "request":
            found += [_input(*part) for part in parts]
        else:
            usage = base.read_usage(item.get("usage"))
            model = base.optional_text(item.get("model_name"))
            reply = read_blocks([_block(*part) for part in parts])
            message = Message("assistant", reply.text, tool_calls=reply.calls)
            found.append(WireMessage(message, usage, model, unread=reply.unread))
    return found


def _block(kind: str, part: Item) -> Item:
    """A part of a response as a block."""
    if kind == "text":
        return {"type": kind, "text": part.get("content")}
    if kind == "tool-call" and part.get("tool_kind") == "output":
        # The answer is structured data, which the framework asks for as a call.
        arguments = base.decode_arguments(part.get("args"))
        return {"type": "text", "text": json.dumps(arguments, ensure_ascii=False)}
    return {**part, "type": kind}


def _input(kind: str, part: Item) -> WireMessage:
    content = part.get("content")
    if kind == "retry-prompt" and part.get("tool_name"):
        # The call was not made if its arguments are not valid (the content is then the list of
        # their errors), or there is no such tool. A text is the tool's own request to try again.
        refused = not isinstance(content, str) or content.startswith(_UNKNOWN_TOOL)
        return replace(read_result(part).message(), refused=refused)
    if is_result(kind):
        return read_result(part).message()
    role: Role = "system" if kind == "system-prompt" else "user"
    return WireMessage(Message(role, base.text_of_parts(content)))
