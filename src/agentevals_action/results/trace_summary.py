"""Pure: the figures of a trace, as results and judges get them."""

from agentevals_action.model.result import TraceSummary
from agentevals_action.model.trace import Trace


def summary_of(trace: Trace) -> TraceSummary:
    """The figures of a trace; what it does not know stays None."""
    calls = trace.tool_calls
    both = trace.input_tokens is not None and trace.output_tokens is not None
    return TraceSummary(
        event_count=len(calls or ()),
        tool_names=tuple(dict.fromkeys(call.name for call in calls or ())),
        tool_call_count=None if calls is None else len(calls),
        llm_call_count=trace.llm_call_count,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        total_tokens=(trace.input_tokens or 0) + (trace.output_tokens or 0) if both else None,
        cost_usd=trace.cost_usd,
        duration_ms=trace.duration_ms,
    )
