"""The stream of `copilot --output-format json` as a trace.

It contains the events of a session, and at the end a `result` with the exit code: the CLI's
`session-events.schema.json`, and
https://docs.github.com/en/copilot/reference/copilot-cli-reference. Some versions do not report
tokens; those that write telemetry report them there."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.agents import stream
from agentevals_action.targets.agents.stream import (
    Failure,
    Finished,
    Severity,
    StreamContent,
    StreamEvent,
)

_NAMES: Mapping[str, str] = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "skill": "Skill",
    "glob": "Glob",
    "grep": "Grep",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "task": "Agent",
}
_FILE = {"path": "file_path"}
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "Read": _FILE,
    "Write": {**_FILE, "file_text": "content"},
    "Edit": {**_FILE, "old_str": "old_string", "new_str": "new_string"},
    "Agent": {"agent_type": "subagent_type"},
}
_REFUSALS: Mapping[str, Severity] = {
    "authentication": "dead",
    "authorization": "dead",
    "quota": "dead",
    "rate_limit": "limited",
}
_NOTHING = StreamEvent(None)


def read(events: Sequence[StreamEvent]) -> StreamContent:
    """The outcome of a run. It is paid for in requests, so that its cost is unknown."""
    results = _results(events)
    messages = stream.add_results(list(_messages(events)), results)
    result = stream.last(events, "result")
    calls = _model_calls(events)
    trace = Trace(
        messages=messages,
        tool_calls=stream.calls_of(messages),
        llm_call_count=calls,
        usage=_usage(events),
        duration_ms=(result or _NOTHING).object("usage").amount("sessionDurationMs"),
    )
    shut_down = stream.last(events[-3:], "session.shutdown", "session.idle") is not None
    return StreamContent(
        trace,
        ended=result is not None or shut_down,
        failure=_failure(events, result),
    )


def _model_calls(events: Sequence[StreamEvent]) -> int | None:
    """The number of model calls that were answered; None if this version does not report them."""
    finished = [event for event in events if event.type == "model.call_finished"]
    if finished:
        return sum(event.object("data").text("outcome") == "success" for event in finished)
    return sum(event.type == "assistant.usage" for event in events) or None


def _messages(events: Sequence[StreamEvent]) -> Iterator[Message]:
    """The agent's messages with their tool calls. A call that no message requested becomes a
    message of its own."""
    requested = {
        request.text("toolCallId")
        for event in events
        if event.type == "assistant.message"
        for request in event.object("data").objects("toolRequests")
    }
    for event in events:
        data = event.object("data")
        if event.type == "assistant.message":
            requests = data.objects("toolRequests")
            calls = tuple(filter(None, (_call(request, "name") for request in requests)))
            name = "subagent" if isinstance(data.value("parentToolCallId"), str) else None
            yield Message("assistant", data.text("content"), name, tool_calls=calls)
        elif event.type == "tool.execution_start" and data.text("toolCallId") not in requested:
            call = _call(data, "toolName")
            yield Message("assistant", "", tool_calls=(call,) if call else ())


def _call(request: StreamEvent, name_field: str) -> ToolCall | None:
    name = request.text(name_field)
    if not name:
        return None
    arguments = decoded(request.value("arguments"))  # a tool may take a text
    if request.text("mcpServerName") and request.text("mcpToolName"):
        name = f"mcp__{request.text('mcpServerName')}__{request.text('mcpToolName')}"
    name = _NAMES.get(name, name)
    arguments = stream.renamed(arguments, _ARGUMENTS.get(name, {}))
    return ToolCall(name, arguments, id=request.text("toolCallId") or None)


def _results(events: Sequence[StreamEvent]) -> Mapping[str, Finished]:
    started: dict[str, Any] = {}
    finished: dict[str, Finished] = {}
    for event in events:
        data, timestamp = event.object("data"), event.value("timestamp")
        own_id = data.text("toolCallId")
        if event.type == "tool.execution_start":
            started[own_id] = timestamp
        elif event.type == "tool.execution_complete":
            output = data.value("result")
            if isinstance(output, Mapping):
                output = output.get("content", output)
            error = data.object("error")
            message = error.text("message")
            refused = stream.is_refusal(error.text("code"), message)
            took = stream.milliseconds(started.get(own_id), timestamp)
            finished[own_id] = Finished(message or output, took, refused)
    return finished


def _usage(events: Sequence[StreamEvent]) -> Usage:
    """The tokens of the session's end, else of each call of a model, else only
    those out, of each message. A sum is unknown if one of its counts is missing; a call without
    cached tokens does not report them."""
    end = (stream.last(events, "session.shutdown") or _NOTHING).object("data")
    usages = [model.object("usage") for model in end.objects("modelMetrics")]
    usages = usages or [event.object("data") for event in events if event.type == "assistant.usage"]

    def total(name: str, *, partial: bool = False) -> int | None:
        known = [count for usage in usages if (count := usage.count(name)) is not None]
        return sum(known) if known and (partial or len(known) == len(usages)) else None

    if usages:
        cached = total("cacheReadTokens", partial=True)
        return Usage(total("inputTokens"), total("outputTokens"), cached)
    usages = [event.object("data") for event in events if event.type == "assistant.message"]
    return Usage(output_tokens=total("outputTokens"))


def _failure(events: Sequence[StreamEvent], result: StreamEvent | None) -> Failure | None:
    """The error of a run that ended badly, or ended with an error; not an error from which the
    agent recovered."""
    end = stream.last(events, "session.error", "assistant.message", "assistant.turn_end")
    code = None if result is None else result.value("exitCode")
    if code in (None, 0) and (end is None or end.type != "session.error"):
        return None
    data = (stream.last(events, "session.error") or _NOTHING).object("data")
    message = data.text("message") or f"it ended with exit code {code}"
    severity = _REFUSALS.get(data.text("errorType"))
    call = (stream.last(events, "model.call_failure") or _NOTHING).object("data")
    if severity is None and call.text("failureKind") == "transport":  # it has no status
        severity = "transient"
    return stream.failure(message, data.count("statusCode"), severity)
