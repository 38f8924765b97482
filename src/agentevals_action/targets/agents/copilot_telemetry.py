"""The file that Copilot writes to `COPILOT_OTEL_FILE_EXPORTER_PATH`: one span or metric a line, as
JSON. Its spans of model calls follow the GenAI conventions of OpenTelemetry:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/"""

from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents.stream import Event

VARIABLE = "COPILOT_OTEL_FILE_EXPORTER_PATH"
_FAILED = 2  # the status code of a span with an error


def add_tokens(trace: Trace, lines: Sequence[Event]) -> Trace:
    """The trace with the tokens of all model calls, sub-agents' included, if its own are not
    complete. Unknown if a call that succeeded has none."""
    if trace.input_tokens is not None and trace.output_tokens is not None:
        return trace
    calls = [
        line.object("attributes")
        for line in lines
        if line.type == "span"
        and line.object("attributes").text("gen_ai.operation.name") == "chat"
        and line.object("status").count("code") != _FAILED
    ]
    read = [call.count("gen_ai.usage.input_tokens") for call in calls]
    written = [call.count("gen_ai.usage.output_tokens") for call in calls]
    known = [count for count in (*read, *written) if count is not None]
    if not calls or len(known) < 2 * len(calls):
        return trace
    cached = [call.count("gen_ai.usage.cache_read.input_tokens") for call in calls]
    return replace(
        trace,
        input_tokens=sum(known[: len(calls)]),
        output_tokens=sum(known[len(calls) :]),
        cached_tokens=sum(filter(None, cached)) if any(one is not None for one in cached) else None,
    )
