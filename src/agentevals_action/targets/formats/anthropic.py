"""The format of Anthropic's Messages API: requests and replies.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agentevals_action.model.messages import Message, Role
from agentevals_action.model.pictures import Picture
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests, role_messages

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")


def to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `system` and `messages` of a request; ValueError if something cannot be sent. The
    format has no field for names of participants."""
    linked = requests.link_calls(messages)
    system = requests.system_text(linked)
    turns = [
        {"role": side, "content": [block for message in together for block in _blocks(message)]}
        for side, together in requests.sides(linked)
    ]
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    blocks = [_block(part) for part in requests.parts(message, _ROLES_WITH_PICTURES)]
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}
        return
    yield from blocks
    for call in message.tool_calls:
        arguments = requests.arguments(call)
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _block(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


def read_reply(data: Any) -> Trace:
    """The trace of a message without its thinking, with the tools that the vendor ran as tool
    calls; ValueError if it is not a message, was refused or paused, or has no content."""
    reply = members(data)
    if not isinstance(reply.get("content"), list):
        raise ValueError("the reply is not a message: `content` is not a list")
    reason = reply.get("stop_reason")
    if reason == "refusal":
        raise ValueError("the model's vendor refused to answer (stop_reason 'refusal')")
    if reason == "pause_turn":
        raise ValueError(
            "the vendor paused the turn before the answer was complete (pause_turn); "
            "limit the use of its tools"
        )
    base.objects(reply, "content")
    (read,) = role_messages.read_item({**reply, "role": "assistant"})
    if not read.message.content and not read.message.tool_calls:
        advice = "; raise `max_tokens` in `config`" if reason == "max_tokens" else ""
        raise ValueError(f"the reply is empty (stop_reason {reason!r}){advice}")
    return base.reply_trace([read.message], read.usage, read.model)
