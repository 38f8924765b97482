"""The conventions of OpenInference (Arize Phoenix): `openinference.span.kind`,
`llm.input_messages.0.message.role`.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md"""

from collections.abc import Mapping
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.validation.json_values import amount, decoded
from agentevals_action.targets.otel.conventions import base
from agentevals_action.targets.otel.conventions.base import SpanMeaning, StepType
from agentevals_action.targets.otel.otlp.spans import Span

_TYPES: Mapping[str, StepType] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}


def read(span: Span) -> SpanMeaning:
    """The step of a span with these attributes."""
    attributes = span.attributes
    step_type = _TYPES.get(str(attributes.get("openinference.span.kind")).upper())
    if step_type is None:
        return SpanMeaning()
    is_tool = step_type == "tool"
    finish = base.text(attributes.get("llm.finish_reason"))
    return SpanMeaning(
        type=step_type,
        input=_messages(attributes, "llm.input_messages"),
        output=_messages(attributes, "llm.output_messages"),
        finish=(finish,) if finish else None,
        tool=base.text(attributes.get("tool.name")) or span.name if is_tool else None,
        arguments=_tool_value(attributes, "input") if is_tool else None,
        result=_result(_tool_value(attributes, "output")) if is_tool else None,
        call_id=base.text(attributes.get("tool_call.id")) or base.text(attributes.get("tool.id")),
        input_tokens=base.first_count(attributes, "llm.token_count.prompt"),
        output_tokens=base.first_count(attributes, "llm.token_count.completion"),
        cached_tokens=base.first_count(attributes, "llm.token_count.prompt_details.cache_read"),
        cache_write_tokens=base.first_count(
            attributes, "llm.token_count.prompt_details.cache_write"
        ),
        model=base.text(attributes.get("llm.model_name")),
        cost_usd=amount(attributes.get("llm.cost.total")),
    )


def _messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...] | None:
    items = base.numbered(attributes, prefix)
    return tuple(_message(item) for item in items) if items else None


def _message(item: Mapping[str, Any]) -> Message:
    content = base.text(item.get("message.content"))
    if content is None:
        parts = base.numbered(item, "message.contents")
        found = (base.text(part.get("message_content.text")) for part in parts)
        content = "\n".join(filter(None, found))
    calls = [
        base.tool_call(
            call.get("tool_call.function.name"),
            call.get("tool_call.function.arguments"),
            call.get("tool_call.id"),
        )
        for call in base.numbered(item, "message.tool_calls")
    ]
    return base.message(item.get("message.role"), content, calls, item.get("message.tool_call_id"))


def _tool_value(attributes: Mapping[str, Any], name: str) -> Any:
    value = attributes.get(f"{name}.value")
    is_json = attributes.get(f"{name}.mime_type") == "application/json"
    return decoded(value) if is_json else value


def _result(value: Any) -> Any:
    """A result; of LangChain's message of a tool, its content."""
    if isinstance(value, Mapping) and value.get("type") == "tool":
        data = value.get("data")
        return data.get("content", value) if isinstance(data, Mapping) else value
    return value
