"""Messages of pydantic-ai: `result.all_messages_json()`.

https://ai.pydantic.dev/api/messages/
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.targets.formats import base
from agentevals_action.targets.formats.base import Item, WireMessage

_UNKNOWN_TOOL = "Unknown tool name: "
#: The parts of a response that are read, or that cannot be a call.
_REPLY_PARTS = frozenset({
    "text", "thinking", "file", "tool-call", "builtin-tool-call", "builtin-tool-return",
})  # fmt: skip


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of requests and responses with parts."""
    kinds = ("request", "response")
    return all(item.get("kind") in kinds and isinstance(item.get("parts"), list) for item in items)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages. ValueError for a tool call without a name."""
    found: list[WireMessage] = []
    for item in items:
        parts = [(str(part.get("part_kind")), part) for part in base.objects(item, "parts")]
        if item["kind"] == "request":
            found += [WireMessage(_input(*part), refused=_is_refused(*part)) for part in parts]
        else:
            usage = base.read_usage(item.get("usage"))
            model = base.optional_text(item.get("model_name"))
            unread = tuple(kind for kind, _ in parts if kind not in _REPLY_PARTS)
            found.append(WireMessage(_reply(parts), usage, model, unread=unread))
    return found


def _reply(parts: Sequence[tuple[str, Item]]) -> Message:
    returns = {
        part.get("tool_call_id"): (kind, part)
        for kind, part in parts
        if kind.endswith("tool-return")
    }
    texts, calls = [], []
    for kind, part in parts:
        arguments = base.decode_arguments(part.get("args"))
        if kind == "text":
            texts.append(base.text_of_parts(part.get("content")))
        elif kind.endswith("tool-call") and part.get("tool_kind") == "output":
            # The answer is structured data, which the framework asks for as a call.
            texts.append(json.dumps(arguments, ensure_ascii=False))
        elif kind.endswith("tool-call"):
            call_id = base.optional_text(part.get("tool_call_id"))
            call = ToolCall(base.call_name(part, kind, "tool_name"), arguments, id=call_id)
            if end := returns.get(call_id):
                call = replace(call, output=end[1].get("content"), refused=_is_refused(*end))
            calls.append(call)
    return Message("assistant", "".join(texts), tool_calls=tuple(calls))


def _is_retry(kind: str, part: Item) -> bool:
    return kind == "retry-prompt" and bool(part.get("tool_name"))


def _is_refused(kind: str, part: Item) -> bool:
    """Whether the call was not made: a person denied it, its arguments are not valid (the content
    is then the list of their errors), or there is no such tool. A text is the tool's own request to
    try again."""
    if not _is_retry(kind, part):
        return kind.endswith("tool-return") and part.get("outcome") == "denied"
    content = part.get("content")
    return not isinstance(content, str) or content.startswith(_UNKNOWN_TOOL)


def _input(kind: str, part: Item) -> Message:
    content = part.get("content")
    if kind.endswith("tool-return") or _is_retry(kind, part):
        name, call_id = (base.optional_text(part.get(key)) for key in ("tool_name", "tool_call_id"))
        return Message("tool", base.output_text(content), name, call_id)
    return Message("system" if kind == "system-prompt" else "user", base.text_of_parts(content))
