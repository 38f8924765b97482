"""Messages of LangChain and LangGraph: `messages_to_dict(messages)`, or the messages themselves as
`model_dump()` writes them.

https://reference.langchain.com/python/langchain_core/messages/
"""

from collections.abc import Mapping, Sequence

from agentevals_action.targets.dialects import messages
from agentevals_action.targets.dialects.blocks import Item, WireMessage, objects, output_text
from agentevals_action.validation.json_values import as_object

#: The roles by type. `remove` is not a message: it removes one from the state of a graph.
_ROLES: Mapping[str, str] = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "remove": "",
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
    return messages.from_wire([_with_role(item) for item in items if _ROLES[item["type"]]])


def _with_role(item: Item) -> Item:
    fields = as_object(item.get("data")) or item
    role, content = _ROLES[item["type"]], fields.get("content")
    # Invalid calls are those whose arguments are not valid JSON.
    calls = [
        call for name in ("tool_calls", "invalid_tool_calls") for call in objects(fields, name)
    ]
    return {
        **fields,
        "role": role,
        "content": output_text(content) if role == "tool" else content,
        "tool_calls": calls,
        "usage": fields.get("usage_metadata"),
        "model": as_object(fields.get("response_metadata")).get("model_name"),
    }
