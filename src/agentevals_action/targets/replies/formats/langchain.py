"""Messages of LangChain and LangGraph: `messages_to_dict(messages)`, or the messages themselves as
`model_dump()` writes them.

https://reference.langchain.com/python/langchain_core/messages/
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.targets.apis.openai_chat import decode_arguments
from agentevals_action.targets.replies.formats import base
from agentevals_action.targets.replies.formats.base import Item, Turn
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at

_ROLES: Mapping[str, Role | Literal[""]] = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "remove": "",
}


class _Call(ReplyModel):
    name: str
    args: Any = None
    id: IfValid[str] = None

    def read(self) -> ToolCall:
        return ToolCall(self.name, decode_arguments(self.args), id=self.id)


class _Reply(ModelReply):
    content: Any = ""
    tool_calls: list[_Call] = Field(default_factory=list)
    #: Calls whose arguments are not valid JSON.
    invalid_tool_calls: list[_Call] = Field(default_factory=list)
    model: IfValid[str] = at("response_metadata", "model_name")
    input_tokens: Tokens = at("usage_metadata", "input_tokens")
    output_tokens: Tokens = at("usage_metadata", "output_tokens")
    cached_tokens: Tokens = at("usage_metadata", "input_token_details", "cache_read")
    cache_write_tokens: Tokens = at("usage_metadata", "input_token_details", "cache_creation")


def read(items: Sequence[Item]) -> Sequence[Turn] | None:
    """The turns of a list in which each item has a `type` of LangChain and a content."""
    if not all(str(item.get("type")) in _ROLES and _has_content(item) for item in items):
        return None
    return [turn for item in items for turn in _turns(item)]


def _has_content(item: Item) -> bool:
    return isinstance(item.get("data"), Mapping) or "content" in item


def _turns(item: Item) -> Sequence[Turn]:
    fields = item["data"] if isinstance(item.get("data"), Mapping) else item
    role = _ROLES[item["type"]]
    if not role:
        return ()
    if role == "tool":
        name, call_id = (base.optional_text(fields.get(key)) for key in ("name", "tool_call_id"))
        return (Turn(Message("tool", base.output_text(fields.get("content")), name, call_id)),)
    if role != "assistant":
        return (Turn(Message(role, base.joined_text(fields.get("content")))),)
    reply = _Reply.parse(fields, "a list of valid messages of LangChain")
    calls = tuple(call.read() for call in (*reply.tool_calls, *reply.invalid_tool_calls))
    return (Turn(Message(role, base.joined_text(reply.content), tool_calls=calls), reply),)
