"""Messages of pydantic-ai: `result.all_messages_json()`.

https://ai.pydantic.dev/api/messages/
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.targets.apis.openai_chat import decode_arguments
from agentevals_action.targets.replies.formats import base
from agentevals_action.targets.replies.formats.base import Item, Turn
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at

_UNKNOWN_TOOL = "Unknown tool name: "


class _Part(ReplyModel):
    part_kind: str
    content: Any = None
    tool_name: IfValid[str] = None
    args: Any = None
    tool_call_id: IfValid[str] = None
    tool_kind: IfValid[str] = None
    outcome: IfValid[str] = None


class _Entry(ModelReply):
    kind: str
    parts: list[_Part]
    model: IfValid[str] = at("model_name")
    input_tokens: Tokens = at("usage", "input_tokens")
    output_tokens: Tokens = at("usage", "output_tokens")
    cached_tokens: Tokens = at("usage", "cache_read_tokens")
    cache_write_tokens: Tokens = at("usage", "cache_write_tokens")


def read(items: Sequence[Item]) -> Sequence[Turn] | None:
    """The turns of a list of requests and responses with parts."""
    kinds = ("request", "response")
    if not all(item.get("kind") in kinds and isinstance(item.get("parts"), list) for item in items):
        return None
    entries = [_Entry.parse(item, "a list of messages of pydantic-ai") for item in items]
    return [turn for entry in entries for turn in _turns(entry)]


def _turns(entry: _Entry) -> Iterator[Turn]:
    if entry.kind == "request":
        yield from (Turn(_input(part), refused=_is_refused(part)) for part in entry.parts)
        return
    returns = {part.tool_call_id: part for part in entry.parts if _is_return(part)}
    texts, calls = [], []
    for part in entry.parts:
        arguments = decode_arguments(part.args)
        if part.part_kind == "text":
            texts.append(base.joined_text(part.content))
        elif part.part_kind.endswith("tool-call") and part.tool_kind == "output":
            # The answer is structured data, which the framework asks for as a call.
            texts.append(json.dumps(arguments, ensure_ascii=False))
        elif part.part_kind.endswith("tool-call"):
            call = ToolCall(part.tool_name or "", arguments, id=part.tool_call_id)
            if end := returns.get(part.tool_call_id):
                call = replace(call, output=end.content, refused=_is_refused(end))
            calls.append(call)
    # A model's call always has input tokens: zero means that the vendor reported none.
    known = entry.input_tokens != 0
    message = Message("assistant", "".join(texts), tool_calls=tuple(calls))
    yield Turn(message, entry if known else ModelReply())


def _is_return(part: _Part) -> bool:
    return part.part_kind.endswith("tool-return")


def _is_retry(part: _Part) -> bool:
    return part.part_kind == "retry-prompt" and bool(part.tool_name)


def _is_refused(part: _Part) -> bool:
    """Whether the call was not made: a person denied it, its arguments are not valid (the content
    is then the list of their errors), or there is no such tool. A text is the tool's own request to
    try again."""
    if not _is_retry(part):
        return _is_return(part) and part.outcome == "denied"
    content = part.content
    return not isinstance(content, str) or content.startswith(_UNKNOWN_TOOL)


def _input(part: _Part) -> Message:
    if _is_return(part) or _is_retry(part):
        name, call_id = base.optional_text(part.tool_name), part.tool_call_id
        return Message("tool", base.output_text(part.content), name, call_id)
    return Message(
        "system" if part.part_kind == "system-prompt" else "user", base.joined_text(part.content)
    )
