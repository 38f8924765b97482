"""The stream of `codex exec --json` as a trace.

It contains the completed items and the usage of the turn:
https://developers.openai.com/codex/noninteractive and the CLI's `exec_events.rs`. Tools get the
names that all agents share here: a command is `Bash`, a change of files `Edit`, a web search
`WebSearch`, a tool of a server `mcp__server__tool`."""

import re
from collections.abc import Sequence
from typing import Any

from agentevals_action.model.json_values import parse_json
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents.stream import (
    Event,
    Failure,
    Outcome,
    calls_of,
    failure,
    last,
)

_DEAD = re.compile(
    r"usage limit|quota exceeded|insufficient_quota|invalid_api_key|not logged in|codex login"
    r"|model_not_found|model\b.*(?:does not exist|is not supported|not found)",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"high demand|overloaded|stream disconnected|at capacity|timed out|connection", re.IGNORECASE
)


def read(events: Sequence[Event]) -> Outcome:
    """The outcome of a run. The stream contains neither times nor the cost."""
    items = [event.object("item") for event in events if event.type == "item.completed"]
    messages = tuple(filter(None, map(_message, items)))
    completed = last(events, "turn.completed")
    usage = (completed or Event(None)).object("usage")  # of the thread, not of the turn alone
    trace = Trace(
        messages=messages,
        tool_calls=calls_of(messages),
        llm_call_count=len(messages),
        input_tokens=usage.count("input_tokens"),
        output_tokens=usage.count("output_tokens"),
        cached_tokens=usage.count("cached_input_tokens"),
    )
    failed = _failure(events)
    return Outcome(trace, ended=completed is not None or failed is not None, failure=failed)


def _message(item: Event) -> Message | None:
    if item.type == "agent_message":
        return Message("assistant", item.text("text"))
    name, arguments, output = _call(item)
    call = ToolCall(name, arguments, output, item.text("id") or None)
    return Message("assistant", "", tool_calls=(call,)) if name else None


def _call(item: Event) -> tuple[str, Any, Any]:
    """Name, arguments and output of a tool call; no name if the item is not one."""
    match item.type:
        case "command_execution":
            arguments = {"command": item.value("command")}
            return "Bash", arguments, item.value("aggregated_output")
        case "file_change":
            return "Edit", {"changes": item.value("changes")}, item.value("status")
        case "web_search":
            return "WebSearch", {"query": item.value("query")}, None
        case "collab_tool_call":
            return item.text("tool"), {"prompt": item.value("prompt")}, item.value("agents_states")
        case "mcp_tool_call":
            result, error = item.object("result"), item.object("error").text("message")
            structured = result.value("structured_content")
            output = error or (result.value("content") if structured is None else structured)
            name = f"mcp__{item.text('server')}__{item.text('tool')}"
            return name, item.value("arguments"), output
    return "", None, None


def _failure(events: Sequence[Event]) -> Failure | None:
    """A failed turn, or an error that no turn followed: while it reconnects, the CLI reports errors
    from which it recovers."""
    end = last(events, "turn.completed", "turn.failed", "error")
    if end is None or end.type == "turn.completed":
        return None
    message = (end.object("error") if end.type == "turn.failed" else end).text("message")
    message, status = _unwrap(message)
    if _DEAD.search(message):
        return failure(message, status, "dead")
    transient = status is None and _TRANSIENT.search(message)
    return failure(message, status, "transient" if transient else None)


def _unwrap(message: str) -> tuple[str, int | None]:
    """The message and the status inside a message that is the body of the API's reply."""
    try:
        body = Event(parse_json(message) if message.startswith("{") else None)
    except ValueError:
        body = Event(None)
    return body.object("error").text("message") or message, body.count("status")
