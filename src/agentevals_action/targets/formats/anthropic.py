"""The format of Anthropic's Messages API: requests, replies, and the history of a conversation, in
which replies may be complete (`message.model_dump()`), with their tokens.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agentevals_action.model.messages import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.requests import Picture

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")
#: The types of blocks that only this API has.
_BLOCKS = ("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "thinking")


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


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of roles with a block, or a reply, that only this API has."""
    return all(item.get("role") in ("user", "assistant") for item in items) and any(
        (item.get("type") == "message" and "stop_reason" in item)
        or any(members(block).get("type") in _BLOCKS for block in _listed(item))
        for item in items
    )


def _listed(item: Item) -> Sequence[Any]:
    content = item.get("content")
    return content if isinstance(content, list) else ()


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history; a tool's result is a message of its own. ValueError for a tool
    call without a name."""
    return [message for item in items for message in _read_item(item)]


def _read_item(item: Item) -> Iterator[WireMessage]:
    content = item.get("content")
    blocks = () if isinstance(content, str) else base.objects(item, "content")
    texts = [block for block in blocks if block.get("type") == "text"]
    text = content if isinstance(content, str) else base.text_of_parts(texts)
    if item["role"] == "assistant":
        message = Message("assistant", text, tool_calls=_calls(blocks))
        usage, model = base.read_usage(item.get("usage")), base.optional_text(item.get("model"))
        yield WireMessage(message, usage, model)
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            call_id = base.optional_text(block.get("tool_use_id"))
            output = base.output_text(block.get("content"))
            yield WireMessage(Message("tool", output, tool_call_id=call_id))
    if text:
        yield WireMessage(Message("user", text))


def _calls(blocks: Sequence[Item]) -> tuple[ToolCall, ...]:
    """The blocks `tool_use`, and `server_tool_use` and `mcp_tool_use` with the content of their
    `…_tool_result`."""
    kinds = [(str(block.get("type")), block) for block in blocks]
    outputs = {
        block.get("tool_use_id"): block.get("content")
        for kind, block in kinds
        if kind.endswith("tool_result")
    }
    calls = []
    for kind, block in kinds:
        if kind.endswith("tool_use"):
            call_id = base.optional_text(block.get("id"))
            output = outputs.get(call_id) if call_id else None
            calls.append(
                ToolCall(base.call_name(block, "tool call"), block.get("input"), output, call_id)
            )
    return tuple(calls)


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
    (read,) = _read_item({**reply, "role": "assistant"})
    if not read.message.content and not read.message.tool_calls:
        advice = "; raise `max_tokens` in `config`" if reason == "max_tokens" else ""
        raise ValueError(f"the reply is empty (stop_reason {reason!r}){advice}")
    return base.reply_trace([read.message], read.usage, read.model)
