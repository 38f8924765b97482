"""The chat format of OpenAI's API and of compatible servers, which is that of our own envelope with
more types of parts. A history contains no tokens.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.messages import (
    BLOCK_TYPES,
    ROLES,
    Message,
    ToolCall,
    read_message,
    read_tool_call,
)
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.requests import Picture

_ROLES = {role: role for role in ROLES} | {"developer": "system", "function": "tool"}


def to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The messages of a request, with ids that link tool messages to their calls; ValueError if
    something cannot be sent."""
    return {"messages": [_wire_message(message) for message in requests.link_calls(messages)]}


def _wire_message(message: Message) -> dict[str, Any]:
    content = requests.text_or_parts(message, ("user",), _wire_part)
    data: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id
    elif message.name is not None:
        data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": requests.encode_arguments(call)},
            }
            for call in message.tool_calls
        ]
    return data


def _wire_part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": part.uri}}


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of roles with an assistant's."""
    roles = [item.get("role") for item in items]
    return "assistant" in roles and all(str(role) in _ROLES for role in roles)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history. ValueError if one of them is not valid."""
    return [WireMessage(_read_message(item, _ROLES[item["role"]])) for item in items]


def _read_message(item: Item, role: str) -> Message:
    content = item.get("content")
    if isinstance(content, list) and not all(
        isinstance(part, Mapping) and part.get("type") in BLOCK_TYPES for part in content
    ):
        content = base.text_of_parts(content)
    listed = "tool_calls" if "tool_calls" in item else "toolCalls"
    calls = base.objects(item, listed)
    plain = {**item, "role": role, "content": content or item.get("refusal") or "", listed: None}
    try:
        return replace(read_message(plain), tool_calls=tuple(map(_read_call, calls)))
    except ValueError as error:
        raise ValueError(f"the reply has a message that is not valid: {error}") from None


def _read_call(data: Item) -> ToolCall:
    """A call of a function or of a custom tool, or one of our own envelope."""
    function, custom = data.get("function"), data.get("custom")
    data = {**data, "id": base.optional_text(data.get("id"))}
    if isinstance(function, Mapping):
        call = read_tool_call({**data, "function": {"name": function.get("name")}})
        return replace(call, arguments=base.decode_arguments(function.get("arguments")))
    if isinstance(custom, Mapping):
        return ToolCall(
            base.call_name(custom, "custom tool call"), custom.get("input"), id=data["id"]
        )
    return read_tool_call(data)


def read_reply(data: Any) -> Trace:
    """The trace of a chat completion; ValueError if it is not one, was filtered or has no
    content."""
    choices = base.objects(members(data), "choices")
    message = choices[0].get("message") if choices else None
    if not isinstance(message, Mapping):
        raise ValueError("the reply is not a chat completion: `choices[0].message` is missing")
    reason = choices[0].get("finish_reason")
    if reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    text = base.text_of_parts(message.get("content"))
    read = _read_message({**message, "content": text}, "assistant")
    if not read.content and not read.tool_calls:
        raise ValueError(f"the reply is empty (finish_reason {reason!r})")
    return base.reply_trace([read], base.read_usage(data.get("usage")), data.get("model"))
