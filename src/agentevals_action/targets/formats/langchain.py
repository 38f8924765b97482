"""Messages of LangChain and LangGraph: `messages_to_dict(messages)`, or the messages themselves as
`model_dump()` writes them.

https://reference.langchain.com/python/langchain_core/messages/
"""

from collections.abc import Mapping, Sequence

from agentevals_action.model.messages import Role
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, role_messages
from agentevals_action.targets.formats.base import Item, WireMessage

_ROLES: Mapping[str, Role] = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}
#: Not a message: it removes one from the state of a graph.
_REMOVED = "remove"


def matches(items: Sequence[Item]) -> bool:
    """Whether each item has a `type` of LangChain and a content."""
    return all(
        str(item.get("type")) in (*_ROLES, _REMOVED)
        and (isinstance(item.get("data"), Mapping) or "content" in item)
        for item in items
    )


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages. ValueError for a tool call without a name."""
    kept = [_with_role(item) for item in items if item["type"] != _REMOVED]
    return role_messages.from_wire(kept)


def _with_role(item: Item) -> Item:
    fields = members(item.get("data")) or item
    role, content = _ROLES[item["type"]], fields.get("content")
    return {
        **fields,
        "role": role,
        "content": base.output_text(content) if role == "tool" else content,
        # Invalid calls are those whose arguments are not valid JSON.
        "tool_calls": [
            *base.objects(fields, "tool_calls"),
            *base.objects(fields, "invalid_tool_calls"),
        ],
        "usage": fields.get("usage_metadata"),
        "model": members(fields.get("response_metadata")).get("model_name"),
    }
