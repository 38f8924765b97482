"""The GenAI semantic conventions of OpenTelemetry: `gen_ai.operation.name`,
`gen_ai.input.messages`.

https://opentelemetry.io/docs/specs/semconv/gen-ai"""

import json
from collections.abc import Mapping
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.validation.json_values import amount, decoded
from agentevals_action.targets.otel.conventions import base
from agentevals_action.targets.otel.conventions.base import SpanMeaning, StepType
from agentevals_action.targets.otel.otlp.spans import Span

_TYPES: Mapping[str, StepType] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
}


def read(span: Span) -> SpanMeaning:
    """The step of a span with these attributes."""
    attributes = span.attributes
    step_type = _type_of(attributes)
    if step_type is None:
        return SpanMeaning()
    costs = (amount(attributes.get(name)) for name in ("gen_ai.usage.cost", "operation.cost"))
    return SpanMeaning(
        type=step_type,
        input=_messages(attributes.get("gen_ai.input.messages"), "user"),
        output=_messages(attributes.get("gen_ai.output.messages"), "assistant"),
        finish=base.texts(attributes.get("gen_ai.response.finish_reasons")),
        tool=base.text(attributes.get("gen_ai.tool.name")),
        arguments=decoded(attributes.get("gen_ai.tool.call.arguments")),
        result=attributes.get("gen_ai.tool.call.result"),
        call_id=base.text(attributes.get("gen_ai.tool.call.id")),
        input_tokens=_tokens(attributes, "input_tokens", "prompt_tokens"),
        output_tokens=_tokens(attributes, "output_tokens", "completion_tokens"),
        cached_tokens=_tokens(attributes, "cache_read.input_tokens", "cache_read_input_tokens"),
        cache_write_tokens=_tokens(
            attributes, "cache_creation.input_tokens", "cache_creation_input_tokens"
        ),
        model=base.text(attributes.get("gen_ai.response.model"))
        or base.text(attributes.get("gen_ai.request.model")),
        cost_usd=next((cost for cost in costs if cost is not None), None),
    )


def _type_of(attributes: Mapping[str, Any]) -> StepType | None:
    operation = attributes.get("gen_ai.operation.name")
    if operation is not None:
        return _TYPES.get(str(operation))
    # Before version 1.27 a call of a model had no name of its operation.
    answered = any(name.startswith(("gen_ai.usage.", "gen_ai.response.")) for name in attributes)
    return "model" if answered and "gen_ai.request.model" in attributes else None


def _tokens(attributes: Mapping[str, Any], *names: str) -> int | None:
    """A number of tokens. pydantic-ai gives the sums of an agent under a name of its own."""
    scopes = ("gen_ai.usage", "gen_ai.aggregated_usage")
    return base.first_count(attributes, *(f"{scope}.{name}" for scope in scopes for name in names))


def _messages(value: Any, role: str) -> tuple[Message, ...] | None:
    """Messages of parts; exporters write them as JSON, or as lists and maps."""
    items = decoded(value)
    if not isinstance(items, list):
        return None
    messages: list[Message] = []
    for item in items:
        if isinstance(item, Mapping):
            messages += _message(item, role)
    return tuple(messages)


def _message(item: Mapping[str, Any], role: str) -> list[Message]:
    """A message, and one more for each result of a tool in it."""
    parts = item.get("parts")
    parts = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    contents = [part.get("content") for part in parts if part.get("type") == "text"]
    calls = [
        base.tool_call(part.get("name"), part.get("arguments"), part.get("id"))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    answers = []
    for part in results:
        text = part.get("response", part.get("result"))
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        answers.append(base.message("tool", text, (), part.get("id")))
    if results and not calls and not contents:
        return answers
    joined = "\n".join(content for content in contents if isinstance(content, str))
    return [base.message(item.get("role") or role, joined, calls), *answers]
