"""Items of OpenAI's Responses API, as `result.to_input_list()` of openai-agents returns them. They
contain no tokens.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Sequence
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.targets.apis.openai_responses import read_call
from agentevals_action.targets.replies.formats import base
from agentevals_action.targets.replies.formats.base import Item, Turn

_PARTS = ("input_text", "output_text", "input_image", "input_file")


def read(items: Sequence[Item]) -> Sequence[Turn] | None:
    """The turns of a list with an item that only this API has. What a model produces between two
    inputs is one reply."""
    if not any(map(_is_own, items)):
        return None
    turns: list[Turn] = []
    reply: tuple[list[str], list[ToolCall]] | None = None
    for item in items:
        kind = str(item.get("type", "message"))
        role = item.get("role")
        if kind.endswith("_call") or kind == "reasoning" or role == "assistant":
            texts, calls = reply = reply or ([], [])
            if kind.endswith("_call"):
                calls.append(read_call(kind, item))
            elif role == "assistant":
                texts.append(base.joined_text(item.get("content")))
            continue
        turns += _reply_turn(reply)
        reply = None
        if message := _input(kind, role, item):
            turns.append(Turn(message))
    return [*turns, *_reply_turn(reply)]


def _is_own(item: Item) -> bool:
    kind = item.get("type")
    if isinstance(kind, str) and (kind.endswith(("_call", "_call_output")) or kind == "reasoning"):
        return True
    parts = item.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") in _PARTS for part in parts
    )


def _reply_turn(reply: tuple[list[str], list[ToolCall]] | None) -> Sequence[Turn]:
    texts, calls = reply or ([], [])
    text = "\n".join(filter(None, texts))
    return [Turn(Message("assistant", text, tool_calls=tuple(calls)))] if text or calls else []


def _input(kind: str, role: Any, item: Item) -> Message | None:
    if kind.endswith("_call_output"):
        call_id = base.optional_text(item.get("call_id"))
        return Message("tool", base.output_text(item.get("output")), tool_call_id=call_id)
    if role in ("user", "system", "developer"):
        return Message(
            "user" if role == "user" else "system", base.joined_text(item.get("content"))
        )
    return None
