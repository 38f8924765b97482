"""The interface of a convention: what the attributes of a span mean."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.validation import json_values
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.otel.otlp.spans import Span

#: A call of a model, a call of a tool, or the run of an agent or a workflow around them.
StepType = Literal["model", "tool", "agent"]
_NUMBERED = re.compile(r"([0-9]{1,6})\.(.+)", re.DOTALL)


@dataclass(frozen=True)
class SpanMeaning:
    """The meaning of a span. None is what the attributes do not contain.

    Of a model call: `input` are the messages that the model received, `output` those that it
    answered, `finish` its reasons for the end, `model` its name. Of a tool call: `tool`, with its
    arguments, result and id, and `refused` if it was not permitted. Tokens are counts, the cost is
    US dollars; those of an agent include its model calls."""

    type: StepType | None = None
    input: tuple[Message, ...] | None = None
    output: tuple[Message, ...] | None = None
    finish: tuple[str, ...] | None = None
    tool: str | None = None
    arguments: Any = None
    result: Any = None
    call_id: str | None = None
    refused: bool | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None

    def filled(self, other: "SpanMeaning") -> "SpanMeaning":
        """This step, with the values of another one where it has none."""
        missing = {
            name: value
            for name in _FIELDS
            if (value := getattr(other, name)) is not None and getattr(self, name) is None
        }
        return replace(self, **missing) if missing else self


_FIELDS = tuple(field.name for field in fields(SpanMeaning))

#: Reads a span; a step without a type if the span does not follow the convention.
ReadStep = Callable[[Span], SpanMeaning]


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def texts(value: Any) -> tuple[str, ...] | None:
    """A list of texts."""
    if not isinstance(value, list):
        return None
    return tuple(item for item in value if isinstance(item, str))


def first_count(attributes: Mapping[str, Any], *names: str) -> int | None:
    """The first of these attributes that is a count."""
    counts = (json_values.count(attributes.get(name)) for name in names)
    return next((count for count in counts if count is not None), None)


def tool_call(name: Any, arguments: Any, call_id: Any) -> ToolCall | None:
    """A tool call of a message; None without a name."""
    if text(name) is None:
        return None
    arguments = {} if arguments == "" else decoded(arguments)
    return ToolCall(name, arguments, id=text(call_id))


def message(
    role: Any, content: str, calls: Iterable[ToolCall | None] = (), call_id: Any = None
) -> Message:
    """A message; a role that is not known counts as the user's."""
    known = {"assistant": "assistant", "model": "assistant", "ai": "assistant"}
    known |= {"system": "system", "developer": "system", "tool": "tool", "function": "tool"}
    return Message(
        known.get(str(role), "user"),  # type: ignore[arg-type]  # the values are roles
        content,
        tool_call_id=text(call_id),
        tool_calls=tuple(filter(None, calls)),
    )


def content_text(value: Any) -> str:
    """The text of a message's content: a text, or the texts of a list of parts, which may be
    JSON."""
    parts = decoded(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        return value if isinstance(value, str) else ""
    found = (text(part.get("text", part.get("content"))) for part in parts)
    return "\n".join(filter(None, found))


def numbered(attributes: Mapping[str, Any], prefix: str) -> Sequence[Mapping[str, Any]]:
    """The attributes `prefix.N.name`, as one mapping for each N, in the order of N."""
    items: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}.") and (match := _NUMBERED.fullmatch(name, len(prefix) + 1)):
            items.setdefault(int(match[1]), {})[match[2]] = value
    return [items[number] for number in sorted(items)]
