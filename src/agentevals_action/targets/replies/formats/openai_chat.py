"""Messages of OpenAI's chat API, which are those of our own envelope with more types of parts. They
contain no tokens.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentevals_action.model import messages
from agentevals_action.targets.replies.formats import base
from agentevals_action.targets.replies.formats.base import Item, Turn

_ROLES = {role: role for role in messages.ROLES} | {"developer": "system", "function": "tool"}


def read(items: Sequence[Item]) -> Sequence[Turn] | None:
    """The turns of a list of roles with an assistant's; None if one of them is not valid."""
    if not all(str(item.get("role")) in _ROLES for item in items):
        return None
    if not any(item["role"] == "assistant" for item in items):
        return None
    try:
        return [Turn(messages.read_message(_plain(item))) for item in items]
    except ValueError:  # the reader of envelopes reports it, with its index
        return None


def _plain(item: Item) -> Mapping[str, Any]:
    content, refusal = item.get("content"), item.get("refusal")
    if isinstance(content, list) and not all(
        isinstance(part, Mapping) and part.get("type") in messages.BLOCK_TYPES for part in content
    ):
        content = base.joined_text(content)
    return {**item, "role": _ROLES[item["role"]], "content": content or refusal or ""}
