"""Pure: the stream of `copilot --output-format json` as a trace.

The events of a session, and at the end a `result` with the exit code: the CLI's
`session-events.schema.json`, and
https://docs.github.com/en/copilot/reference/copilot-cli-reference. Not every version tells the
tokens. Tools have the names that they have everywhere here: `bash` is `Bash`, `view` `Read`,
`create` `Write`, `edit` `Edit`, `skill` `Skill`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents import stream as agent_stream
from agentevals_action.targets.agents.stream import Event, Failure, Finished, Outcome, Weight

_NAMES: Mapping[str, str] = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "skill": "Skill",
}
_REFUSALS: Mapping[str, Weight] = {
    "authentication": "dead",
    "authorization": "dead",
    "quota": "dead",
    "rate_limit": "limited",
}
_TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens")


def read(events: Sequence[Event]) -> Outcome:
    """What a run told. It is paid for in requests, not in dollars: no cost is known."""
    messages = agent_stream.with_ends(list(_messages(events)), _ends(events))
    result = next((event for event in reversed(events) if event["type"] == "result"), None)
    tokens_in, tokens_out, cached = _tokens(events)
    calls = sum(event["type"] == "assistant.usage" for event in events)
    trace = Trace(
        messages=messages,
        tool_calls=agent_stream.calls_of(messages),
        llm_call_count=calls or len(messages),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_tokens=cached,
        duration_ms=agent_stream.amount(
            agent_stream.member(result or {}, "usage").get("sessionDurationMs")
        ),
    )
    ended = result is not None or any(
        event["type"] in ("session.shutdown", "session.idle") for event in events[-3:]
    )
    return Outcome(trace, ended=ended, failure=_failed(events, result))


def _data(event: Event) -> Mapping[str, Any]:
    return agent_stream.member(event, "data")


def _messages(events: Sequence[Event]) -> Iterator[Message]:
    """The agent's messages with the tools that each asked for; a tool that no message asked for
    stands for itself."""
    asked = {
        agent_stream.text(request.get("toolCallId"))
        for event in events
        if event["type"] == "assistant.message"
        for request in agent_stream.objects(_data(event).get("toolRequests"))
    }
    for event in events:
        data = _data(event)
        if event["type"] == "assistant.message":
            requests = agent_stream.objects(data.get("toolRequests"))
            name = "subagent" if isinstance(data.get("parentToolCallId"), str) else None
            calls = tuple(
                filter(None, (_call(request, request.get("name")) for request in requests))
            )
            yield Message(
                "assistant", agent_stream.text(data.get("content")), name, tool_calls=calls
            )
        elif (
            event["type"] == "tool.execution_start"
            and agent_stream.text(data.get("toolCallId")) not in asked
        ):
            call = _call(data, data.get("toolName"))
            yield Message("assistant", "", tool_calls=(call,) if call else ())


def _call(request: Mapping[str, Any], name: Any) -> ToolCall | None:
    if not isinstance(name, str) or not name:
        return None
    arguments = request.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):  # a tool may well take a text
            arguments = request.get("arguments")
    name = _NAMES.get(name, name)
    if name == "Read" and isinstance(arguments, Mapping) and "path" in arguments:
        arguments = {"file_path": arguments["path"], **arguments}
    return ToolCall(name, arguments, id=agent_stream.text(request.get("toolCallId")) or None)


def _ends(events: Sequence[Event]) -> Mapping[str, Finished]:
    begun: dict[str, Any] = {}
    ends: dict[str, Finished] = {}
    for event in events:
        own_id = agent_stream.text(_data(event).get("toolCallId"))
        if event["type"] == "tool.execution_start":
            begun[own_id] = event.get("timestamp")
        elif event["type"] == "tool.execution_complete":
            error = agent_stream.text(agent_stream.member(event, "data", "error").get("message"))
            result = _data(event).get("result")
            output = result.get("content", result) if isinstance(result, Mapping) else result
            ends[own_id] = Finished(
                error or output,
                agent_stream.milliseconds(begun.get(own_id), event.get("timestamp")),
            )
    return ends


def _tokens(events: Sequence[Event]) -> tuple[int | None, int | None, int | None]:
    """Tokens in, out and cached: of the session's end, else of each call of a model, else only
    those out, of each message."""
    last = next(
        (_data(event) for event in reversed(events) if event["type"] == "session.shutdown"), {}
    )
    told = [
        agent_stream.member(model, "usage")
        for model in agent_stream.member(last, "modelMetrics").values()
    ]
    told = told or [_data(event) for event in events if event["type"] == "assistant.usage"]
    told = told or [
        {"outputTokens": _data(event).get("outputTokens")}
        for event in events
        if event["type"] == "assistant.message"
    ]
    tokens_in, tokens_out, cached = (
        agent_stream.total([json_values.count(usage.get(name)) for usage in told])
        for name in _TOKENS
    )
    return tokens_in, tokens_out, cached


def _failed(events: Sequence[Event], result: Event | None) -> Failure | None:
    """What went wrong when the run ended badly, or ended with an error: one that the agent got over
    is none."""
    said = [
        event
        for event in events
        if event["type"] in ("session.error", "assistant.message", "assistant.turn_end")
    ]
    code = None if result is None else result.get("exitCode")
    unresolved = bool(said) and said[-1]["type"] == "session.error"
    if not unresolved and code in (None, 0):
        return None
    data = next(
        (_data(event) for event in reversed(events) if event["type"] == "session.error"), {}
    )
    message = agent_stream.text(data.get("message")) or f"it ended with exit code {code}"
    weight = _REFUSALS.get(agent_stream.text(data.get("errorType")))
    return agent_stream.failure(message, json_values.count(data.get("statusCode")), weight)
