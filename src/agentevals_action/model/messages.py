"""Messages from and to their wire forms: the specification's, AgentV's, and plain text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from agentevals_action.model.suite import (
    Block,
    BlockType,
    Message,
    Role,
    ToolCall,
    decode_arguments,
)

ROLES: tuple[str, ...] = get_args(Role)
BLOCK_TYPES: tuple[str, ...] = get_args(BlockType)


def read_message(data: Any) -> Message:
    """One message in either wire form; files in it are not read. ValueError for an invalid
    message."""
    if not isinstance(data, Mapping) or data.get("role") not in ROLES:
        raise ValueError(f"a message is an object with a role of {', '.join(ROLES)}")
    calls = data.get("tool_calls", data.get("toolCalls"))
    if calls is not None and (not isinstance(calls, Sequence) or isinstance(calls, str)):
        raise ValueError("tool_calls is a list")
    return Message(
        role=data["role"],
        content=_read_content(data.get("content")),
        name=_optional_text(data, "name"),
        tool_call_id=_optional_text(data, "tool_call_id"),
        tool_calls=tuple(read_tool_call(call) for call in calls or ()),
    )


def _optional_text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} is a string")
    return value


def _read_content(content: Any) -> str | tuple[Block, ...]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return (Block("json", content),)
    if not isinstance(content, Sequence):
        raise ValueError("content is a string or a list of blocks")
    return tuple(_read_block(block) for block in content)


def _read_block(block: Any) -> Block:
    if not isinstance(block, Mapping) or block.get("type") not in BLOCK_TYPES:
        raise ValueError(f"a block is an object with a type of {', '.join(BLOCK_TYPES)}")
    value = block.get("value", block.get("text"))
    if block["type"] == "text" and not isinstance(value, str):
        raise ValueError("a text block's value is a string")
    return Block(block["type"], value)


def read_tool_call(data: Any) -> ToolCall:
    """One tool call: `{id, type, function: {name, arguments}}` or `{tool, input, output,
    duration_ms}`; ValueError if neither."""
    if not isinstance(data, Mapping):
        raise ValueError("a tool call is an object")
    if isinstance(function := data.get("function"), Mapping) and isinstance(
        function.get("name"), str
    ):
        name, arguments = function["name"], decode_arguments(function.get("arguments"))
    elif isinstance(data.get("tool"), str):
        name, arguments = data["tool"], data.get("input")
    else:
        raise ValueError("a tool call has function.name or tool")
    duration = data.get("duration_ms", data.get("durationMs"))
    if duration is not None and (
        isinstance(duration, bool) or not isinstance(duration, int | float)
    ):
        raise ValueError("a tool call's duration_ms is a number")
    return ToolCall(
        name=name,
        arguments=arguments,
        output=data.get("output"),
        id=_optional_text(data, "id"),
        duration_ms=duration,
        refused=data.get("refused") is True,
    )


def wire_message(message: Message) -> dict[str, Any]:
    """One message as judges and results get it; a tool call carries both wire forms."""
    content = message.content
    data: dict[str, Any] = {"role": message.role}
    data["content"] = (
        content
        if isinstance(content, str)
        else [{"type": block.type, "value": block.value} for block in content]
    )
    if message.name is not None:
        data["name"] = message.name
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        data["tool_calls"] = [_wire_tool_call(call) for call in message.tool_calls]
    return data


def _wire_tool_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments if call.arguments is not None else {}, ensure_ascii=False)
    data = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
        "tool": call.name,
        "input": call.arguments,
        "output": call.output,
        "duration_ms": call.duration_ms,
        "refused": call.refused or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as judges and results get them."""
    return [wire_message(message) for message in messages]
