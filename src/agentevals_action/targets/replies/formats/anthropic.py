"""Messages of Anthropic's API: the history of a conversation, in which replies may be complete
(`message.model_dump()`), with their tokens.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.targets.apis.anthropic_messages import AssistantMessage
from agentevals_action.targets.replies.formats import base
from agentevals_action.targets.replies.formats.base import Item, Turn

_BLOCKS = ("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "thinking")


def read(items: Sequence[Item]) -> Sequence[Turn] | None:
    """The turns of a list of roles with a block, or a reply, that only this API has."""
    if not all(item.get("role") in ("user", "assistant") for item in items):
        return None
    if not any(map(_is_own, items)):
        return None
    return [turn for item in items for turn in _turns(item)]


def _blocks(item: Item) -> Sequence[Mapping[str, Any]]:
    content = item.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, Mapping)]


def _is_own(item: Item) -> bool:
    if item.get("type") == "message" and "stop_reason" in item:
        return True
    return any(block.get("type") in _BLOCKS for block in _blocks(item))


def _turns(item: Item) -> Iterator[Turn]:
    blocks = _blocks(item)
    if item["role"] == "assistant":
        fields = {**item, "content": blocks}
        reply = AssistantMessage.parse(fields, "a list of messages of Anthropic")
        yield Turn(Message("assistant", reply.text, tool_calls=reply.calls), reply.figures)
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            text, call_id = base.output_text(block.get("content")), block.get("tool_use_id")
            yield Turn(Message("tool", text, tool_call_id=base.optional_text(call_id)))
    if text := base.joined_text([block for block in blocks if block.get("type") == "text"]):
        yield Turn(Message("user", text))
