"""The registry of conventions: one file and one line each."""

from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.targets.agents.stream import is_refusal
from agentevals_action.targets.otel.conventions import gen_ai, openinference, openllmetry
from agentevals_action.targets.otel.conventions.base import ReadStep, SpanMeaning
from agentevals_action.targets.otel.otlp.spans import Span

#: The readers of every convention; an earlier one takes precedence.
CONVENTIONS: Sequence[ReadStep] = (gen_ai.read, openinference.read, openllmetry.read)


def read_step(span: Span) -> SpanMeaning:
    """The meaning of a span; libraries mix conventions, so each fills what the others leave out.
    Without a type if no convention knows the span."""
    step = SpanMeaning()
    for read in CONVENTIONS:
        step = step.filled(read(span))
    return replace(step, refused=True) if step.type == "tool" and _is_refused(span, step) else step


def _is_refused(span: Span, step: SpanMeaning) -> bool:
    """Whether the error of a tool's span says that the agent was not permitted to call it. The
    result of a call that succeeded may contain the same words."""
    message = step.result if span.failed and isinstance(step.result, str) else ""
    return is_refusal(str(span.attributes.get("error.type")), message)
