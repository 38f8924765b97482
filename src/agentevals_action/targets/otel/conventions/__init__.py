"""The registry of conventions: one file and one line each."""

from collections.abc import Sequence

from agentevals_action.targets.otel.conventions import gen_ai, openinference, openllmetry
from agentevals_action.targets.otel.conventions.base import ReadStep, Step
from agentevals_action.targets.otel.otlp.spans import Span

#: The readers of every convention; an earlier one takes precedence.
CONVENTIONS: Sequence[ReadStep] = (gen_ai.read, openinference.read, openllmetry.read)


def read_step(span: Span) -> Step:
    """The meaning of a span; libraries mix conventions, so each fills what the others leave out.
    Without a type if no convention knows the span."""
    step = Step()
    for read in CONVENTIONS:
        step = step.filled(read(span))
    return step
