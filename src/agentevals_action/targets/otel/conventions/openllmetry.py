"""The attributes of OpenLLMetry (Traceloop) and of the early GenAI conventions:
`gen_ai.prompt.0.role`, `gen_ai.completion.0.content`, `traceloop.span.kind`.

https://github.com/traceloop/openllmetry"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.otel.conventions import base
from agentevals_action.targets.otel.conventions.base import SpanMeaning, StepType
from agentevals_action.targets.otel.otlp.spans import Span

_TYPES: Mapping[str, StepType] = {"workflow": "agent", "agent": "agent", "tool": "tool"}


def read(span: Span) -> SpanMeaning:
    """The step of a span with these attributes."""
    attributes = span.attributes
    step_type = _TYPES.get(str(attributes.get("traceloop.span.kind")))
    outputs = base.numbered(attributes, "gen_ai.completion")
    inputs = base.numbered(attributes, "gen_ai.prompt")
    if step_type is None and (
        outputs or attributes.get("llm.request.type") in ("chat", "completion")
    ):
        step_type = "model"
    if step_type is None:
        return SpanMeaning()
    finish = [base.text(each.get("finish_reason")) for each in outputs]
    return SpanMeaning(
        type=step_type,
        input=_messages(inputs, "user") if inputs else None,
        output=_messages(outputs, "assistant") if outputs else None,
        finish=tuple(filter(None, finish)) or None,
        tool=base.text(attributes.get("traceloop.entity.name")),
        arguments=_entity(attributes, "input", "inputs", "kwargs"),
        result=_entity(attributes, "output", "outputs", "output"),
        input_tokens=base.first_count(
            attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"
        ),
        output_tokens=base.first_count(
            attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"
        ),
        cache_write_tokens=base.first_count(attributes, "gen_ai.usage.cache_creation_input_tokens"),
        model=base.text(attributes.get("gen_ai.response.model")),
        cached_tokens=base.first_count(attributes, "gen_ai.usage.cache_read_input_tokens"),
    )


def _messages(items: Sequence[Mapping[str, Any]], role: str) -> tuple[Message, ...]:
    return tuple(
        base.message(
            item.get("role") or role,
            base.content_text(item.get("content")),
            [
                base.tool_call(call.get("name"), call.get("arguments"), call.get("id"))
                for call in base.numbered(item, "tool_calls")
            ],
            item.get("tool_call_id"),
        )
        for item in items
    )


def _entity(attributes: Mapping[str, Any], name: str, *members: str) -> Any:
    """The input or output of a tool, without the object around it."""
    value = decoded(attributes.get(f"traceloop.entity.{name}"))
    if isinstance(value, Mapping):
        return next((value[member] for member in members if member in value), value)
    return value
