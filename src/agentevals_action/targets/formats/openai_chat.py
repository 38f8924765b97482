"""The chat format of OpenAI's API and of compatible servers: requests and replies.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentevals_action.model.messages import Message
from agentevals_action.model.pictures import Picture
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests, role_messages


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
    (read,) = role_messages.read_item({**message, "role": "assistant"})
    if not read.message.content and not read.message.tool_calls:
        raise ValueError(f"the reply is empty (finish_reason {reason!r})")
    return base.reply_trace([read.message], base.read_usage(data.get("usage")), data.get("model"))
