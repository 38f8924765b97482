"""What the attributes of spans mean, by the GenAI semantic conventions of OpenTelemetry and those
of OpenInference (Arize Phoenix).

https://opentelemetry.io/docs/specs/semconv/gen-ai,
https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentevals_action.model.messages import Message, Role, ToolCall
from agentevals_action.model.trace import Usage
from agentevals_action.targets.dialects.blocks import decode_arguments, optional_text, output_text
from agentevals_action.targets.dialects.usage import reported
from agentevals_action.targets.otel.spans import Span
from agentevals_action.validation.json_values import as_amount, as_count, as_object, decode_json

#: A call of a model, a call of a tool, or the run of an agent or a workflow around them.
StepType = Literal["model", "tool", "agent"]

#: The attributes that make a span a step, and the types of their values.
_TYPES: Mapping[str, Mapping[str, StepType]] = {
    "gen_ai.operation.name": {
        "chat": "model",
        "text_completion": "model",
        "generate_content": "model",
        "execute_tool": "tool",
        "invoke_agent": "agent",
        "invoke_workflow": "agent",
    },
    "openinference.span.kind": {"LLM": "model", "TOOL": "tool", "AGENT": "agent"},
}
#: The attributes of each value: of the GenAI conventions, and of OpenInference.
_ATTRIBUTES: Mapping[str, Sequence[str]] = {
    "tool": ("gen_ai.tool.name", "tool.name"),
    "arguments": ("gen_ai.tool.call.arguments", "input.value"),
    "result": ("gen_ai.tool.call.result", "output.value"),
    "call_id": ("gen_ai.tool.call.id", "tool_call.id", "tool.id"),
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    "finish": ("gen_ai.response.finish_reasons", "llm.finish_reason"),
    "input_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    # pydantic-ai's, and OpenInference's.
    "cost_usd": ("operation.cost", "llm.cost.total"),
}
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_ROLES: Mapping[str, Role] = {
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
#: Parts of GenAI's messages that contain no tool call; another one may be a call.
_OTHER_PARTS = frozenset({"reasoning", "blob", "file", "uri"})
_NUMBERED = re.compile(r"([0-9]{1,6})\.(.+)", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """The meaning of a span. Of a model call: `received` are the messages that the model received,
    `answered` those that it answered (None if they may lack a tool call). Of a tool call: `call`,
    without a name if the attributes have none."""

    type: StepType
    model: str | None
    usage: Usage
    received: tuple[Message, ...] = ()
    answered: tuple[Message, ...] | None = None
    call: ToolCall = ToolCall("")  # noqa: RUF009  # frozen


def read_step(span: Span) -> Step | None:
    """The meaning of a span; None if neither convention knows it."""
    attributes = span.attributes
    types = [meanings.get(str(attributes.get(name))) for name, meanings in _TYPES.items()]
    step_type = types[0] or types[1]
    if step_type is None:
        return None
    tokens = {name: as_count(_first(attributes, name)) for name in _TOKENS}
    usage = reported(Usage(**tokens, cost_usd=as_amount(_first(attributes, "cost_usd"))))
    model = optional_text(_first(attributes, "model"))
    if step_type == "model":
        answered = _messages(attributes, "output")
        if answered is not None and not _shows_calls(span, answered):
            answered = None
        return Step(step_type, model, usage, _messages(attributes, "input") or (), answered)
    if step_type == "tool":
        return Step(step_type, model, usage, call=_read_tool(attributes))
    return Step(step_type, model, usage)


def _first(attributes: Mapping[str, Any], value: str) -> Any:
    return next((attributes[name] for name in _ATTRIBUTES[value] if name in attributes), None)


def _read_tool(attributes: Mapping[str, Any]) -> ToolCall:
    output = _first(attributes, "result")
    data = decode_json(output)
    if isinstance(data, Mapping) and data.get("type") == "tool":  # LangChain's message
        output = as_object(data.get("data")).get("content", output)
    return ToolCall(
        optional_text(_first(attributes, "tool")) or "",
        decode_json(_first(attributes, "arguments")),
        output,
        optional_text(_first(attributes, "call_id")),
    )


def _shows_calls(span: Span, answered: Sequence[Message]) -> bool:
    """Whether messages show every tool that a model asks for; not if the exporter left content
    out."""
    if span.is_cut:
        return False
    finish = str(_first(span.attributes, "finish"))
    asks = "tool" in finish or "function" in finish
    has_text = any(message.content for message in answered)
    return any(message.tool_calls for message in answered) or (has_text and not asks)


def _messages(attributes: Mapping[str, Any], name: str) -> tuple[Message, ...] | None:
    """The messages of a model call; None without them, or if a part is of an unknown kind."""
    if (value := attributes.get(f"gen_ai.{name}.messages")) is None:
        items = _numbered(attributes, f"llm.{name}_messages")
        return tuple(map(_openinference_message, items)) or None
    try:
        items = decode_json(value)  # as JSON, or as lists and maps
        return tuple(message for item in items for message in _gen_ai_messages(item))
    except (AttributeError, KeyError, TypeError):
        return None


def _gen_ai_messages(item: Mapping[str, Any]) -> list[Message]:
    """A message, and one more for each result of a tool in it. KeyError, TypeError or
    AttributeError for another form."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    for part in item["parts"]:
        if part["type"] == "text":
            texts.append(str(part["content"]))
        elif part["type"] == "tool_call":
            calls.append(_call(part["name"], part.get("arguments"), part.get("id")))
        elif part["type"] == "tool_call_response":
            text = output_text(part.get("response", part.get("result")))
            results.append(Message("tool", text, tool_call_id=part.get("id")))
        elif part["type"] not in _OTHER_PARTS:
            raise KeyError(part["type"])
    role = _ROLES.get(item["role"], "user")
    return [Message(role, "\n".join(texts), tool_calls=tuple(calls)), *results]


def _openinference_message(item: Mapping[str, Any]) -> Message:
    content = item.get("message.content")
    if not isinstance(content, str):
        parts = _numbered(item, "message.contents")
        texts = (optional_text(part.get("message_content.text")) for part in parts)
        content = "\n".join(filter(None, texts))
    calls = (
        _call(
            call.get("tool_call.function.name", ""),
            call.get("tool_call.function.arguments"),
            call.get("tool_call.id"),
        )
        for call in _numbered(item, "message.tool_calls")
    )
    return Message(
        _ROLES.get(str(item.get("message.role")), "user"),
        content,
        tool_call_id=item.get("message.tool_call_id"),
        tool_calls=tuple(calls),
    )


def _call(name: Any, arguments: Any, call_id: Any) -> ToolCall:
    return ToolCall(str(name), decode_arguments(arguments or ""), id=optional_text(call_id))


def _numbered(attributes: Mapping[str, Any], prefix: str) -> Sequence[Mapping[str, Any]]:
    """The attributes `prefix.N.name`, as one mapping for each N, in the order of N."""
    items: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}.") and (match := _NUMBERED.fullmatch(name, len(prefix) + 1)):
            items.setdefault(int(match[1]), {})[match[2]] = value
    return [items[number] for number in sorted(items)]
