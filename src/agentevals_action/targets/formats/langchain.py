"""Messages of LangChain and LangGraph: `messages_to_dict(messages)`, or the messages themselves as
`model_dump()` writes them.

https://reference.langchain.com/python/langchain_core/messages/
"""

from collections.abc import Mapping, Sequence

from agentevals_action.model.messages import Message, Role
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.blocks import read_blocks, read_call
from agentevals_action.targets.formats.role_messages import add_calls, unread_fields

_ROLES: Mapping[str, Role | None] = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "remove": None,
}


def matches(items: Sequence[Item]) -> bool:
    """Whether each item has a `type` of LangChain and a content."""
    return all(
        str(item.get("type")) in _ROLES
        and (isinstance(item.get("data"), Mapping) or "content" in item)
        for item in items
    )


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages. ValueError for a tool call without a name."""
    return [
        _read_message(role, members(item.get("data")) or item)
        for item in items
        if (role := _ROLES[item["type"]])
    ]


def _read_message(role: Role, fields: Item) -> WireMessage:
    content = fields.get("content")
    if role == "tool":
        name, call_id = (base.optional_text(fields.get(key)) for key in ("name", "tool_call_id"))
        return WireMessage(Message(role, base.output_text(content), name, call_id))
    blocks = read_blocks(content)
    if role != "assistant":
        return WireMessage(Message(role, blocks.text))
    # Invalid calls are those whose arguments are not valid JSON.
    listed = [*base.objects(fields, "tool_calls"), *base.objects(fields, "invalid_tool_calls")]
    calls = add_calls(blocks.calls, [read_call("tool_call", call) for call in listed])
    model = base.optional_text(members(fields.get("response_metadata")).get("model_name"))
    usage = base.read_usage(fields.get("usage_metadata"))
    unread = (*blocks.unread, *unread_fields(fields, calls))
    return WireMessage(Message(role, blocks.text, tool_calls=calls), usage, model, unread=unread)
