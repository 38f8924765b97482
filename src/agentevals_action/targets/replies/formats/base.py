"""The interface of conversations' formats: a list of objects becomes turns."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.targets.reply_model import ModelReply

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One message of a conversation, and the figures of the model's reply that it is. `refused`:
    it answers a call that the agent was not permitted to make."""

    message: Message
    figures: ModelReply = ModelReply()  # noqa: RUF009  # frozen
    refused: bool = False


#: The turns of a conversation; None if the items do not have the structure of the format, and
#: ValueError if they have, but one of them is not valid.
Read = Callable[[Sequence[Item]], Sequence[Turn] | None]


def joined_text(content: Any) -> str:
    """The text of a message: a string, or the parts of a list that are text, without thoughts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "".join(map(_part_text, parts))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text if isinstance(text, str) else ""


def output_text(output: Any) -> str:
    """The output of a tool as text: a string, text parts, or data as JSON."""
    if output is None or isinstance(output, str):
        return output or ""
    return joined_text(output) or json.dumps(output, ensure_ascii=False)


def optional_text(value: Any) -> str | None:
    """A string; None for anything else, as a missing name."""
    return value if isinstance(value, str) and value else None
