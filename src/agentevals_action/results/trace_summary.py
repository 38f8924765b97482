"""The summary of an attempt's trace as results store it, and the agent's work that a stored sample
contains."""

from dataclasses import dataclass
from pathlib import Path

from agentevals_action.model.messages import read_message
from agentevals_action.model.result import SampleResult, TraceSummary
from agentevals_action.model.trace import Trace


@dataclass(frozen=True)
class Work:
    """The work of an agent: its trace, and with a workspace the folder (None for a stored sample)
    and the diff."""

    trace: Trace
    folder: Path | None = None
    changes: str | None = None


def summarize(trace: Trace) -> TraceSummary:
    """The summary of a trace; unknown values are None."""
    calls = trace.made_calls
    refused = (call.name for call in trace.tool_calls or () if call.refused)
    return TraceSummary(
        event_count=len(calls or ()),
        tool_names=tuple(dict.fromkeys(call.name for call in calls or ())),
        tool_call_count=None if calls is None else len(calls),
        llm_call_count=trace.llm_call_count,
        total_tokens=trace.usage.total_tokens,
        **vars(trace.usage),
        cost_source=trace.cost_source,
        duration_ms=trace.duration_ms,
        refused_tools=tuple(dict.fromkeys(refused)),
        hidden_tools=trace.hidden_tools,
    )


def stored_work(sample: SampleResult) -> Work:
    """The work of a stored sample, without its folder."""
    messages = tuple(read_message(data) for data in sample.output_messages)
    summary = sample.trace_summary or TraceSummary()
    calls = tuple(call for message in messages for call in message.tool_calls)
    trace = Trace(
        messages=messages,
        tool_calls=None if summary.tool_call_count is None else calls,
        llm_call_count=summary.llm_call_count,
        usage=summary.usage,
        cost_source=summary.cost_source,
        duration_ms=summary.duration_ms,
        hidden_tools=summary.hidden_tools,
    )
    return Work(trace, changes=sample.file_changes)
