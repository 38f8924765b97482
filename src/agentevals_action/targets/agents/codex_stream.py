"""The stream of `codex exec --json` as a trace.

It contains the completed items and the usage of the turn:
https://developers.openai.com/codex/noninteractive and the CLI's `exec_events.rs`. It does not
contain: model calls, the tokens and calls of sub-agents, calls that were refused, files that a
command reads."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.agents import stream
from agentevals_action.targets.agents.stream import Failure, StreamContent, StreamEvent

#: The tools whose calls are part of shell commands.
HIDDEN_TOOLS = ("Glob", "Grep", "Read", "Skill")
_CHANGES: Mapping[Any, str] = {"add": "Write", "delete": "Delete"}
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
_DEAD = re.compile(
    r"usage limit|quota exceeded|insufficient_quota|invalid_api_key|not logged in|codex login"
    r"|model_not_found|model\b.*(?:does not exist|is not supported|not found)",
    re.IGNORECASE,
)
_LIMITED = re.compile(r"rate limit", re.IGNORECASE)
_TRANSIENT = re.compile(
    r"high demand|overloaded|stream disconnected|at capacity|timed out|connection", re.IGNORECASE
)
#: What the CLI writes to standard error in place of an item of the stream.
REFUSED = re.compile(r'Rejected\(\\?"(.+?)\\?"\)')


def read(events: Sequence[StreamEvent]) -> StreamContent:
    """The outcome of a run. Durations are the times between the lines of the stream."""
    started = {
        event.object("item").text("id"): event for event in events if event.type == "item.started"
    }
    ended = [event for event in events if event.type == "item.completed"]
    messages = tuple(
        message
        for event in ended
        for message in _messages(event, started.get(event.object("item").text("id")))
    )
    completed = stream.last(events, "turn.completed")
    usage = (completed or StreamEvent(None)).object(
        "usage"
    )  # of the thread, without its sub-agents
    if any(call.name == "Agent" for call in stream.calls_of(messages)):
        usage = StreamEvent(None)
    trace = Trace(
        messages=messages,
        tool_calls=stream.calls_of(messages),
        usage=Usage(*map(usage.count, ("input_tokens", "output_tokens", "cached_input_tokens"))),
        hidden_tools=HIDDEN_TOOLS,
    )
    failed = _failure(events)
    return StreamContent(
        trace,
        ended=completed is not None or failed is not None,
        failure=failed,
    )


def _messages(event: StreamEvent, started: StreamEvent | None) -> Iterator[Message]:
    item = event.object("item")
    if item.type == "agent_message":
        yield Message("assistant", item.text("text"))
    elif calls := tuple(_calls(item)):
        refused = item.text("status") == "declined"
        took = None if refused else stream.milliseconds_between(started, event)
        calls = tuple(replace(call, duration_ms=took, refused=refused) for call in calls)
        yield Message("assistant", "", tool_calls=calls)


def _calls(item: StreamEvent) -> Iterator[ToolCall]:
    """The tool calls of an item: one for each file of a change, else at most one."""
    own_id = item.text("id") or None
    match item.type:
        case "command_execution":
            arguments = {"command": _unwrapped(item.value("command"))}
            yield ToolCall("Bash", arguments, item.value("aggregated_output"), own_id)
        case "file_change":
            for number, change in enumerate(item.objects("changes")):
                name = _CHANGES.get(change.value("kind"), "Edit")
                change_id = own_id if number == 0 or own_id is None else f"{own_id}.{number}"
                arguments = {"file_path": change.value("path")}
                yield ToolCall(name, arguments, item.value("status"), change_id)
        case "web_search":
            yield ToolCall("WebSearch", {"query": item.value("query")}, id=own_id)
        case "collab_tool_call" if item.text("tool"):
            name = "Agent" if item.text("tool") == "spawn_agent" else item.text("tool")
            arguments = {"prompt": item.value("prompt")}
            yield ToolCall(name, arguments, item.value("agents_states"), own_id)
        case "mcp_tool_call":
            result, error = item.object("result"), item.object("error").text("message")
            structured = result.value("structured_content")
            output = error or (result.value("content") if structured is None else structured)
            name = f"mcp__{item.text('server')}__{item.text('tool')}"
            yield ToolCall(name, item.value("arguments"), output, own_id)


def _unwrapped(command: Any) -> Any:
    """The command that a shell is started for: `ls` of `/bin/bash -lc ls`."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    is_shell = len(words) == 3 and _SHELLS.fullmatch(words[0]) and words[1] in ("-c", "-lc")
    return words[2] if is_shell else command


def _failure(events: Sequence[StreamEvent]) -> Failure | None:
    """A failed turn, or an error that no turn followed: while it reconnects, the CLI reports errors
    from which it recovers."""
    end = stream.last(events, "turn.completed", "turn.failed", "error")
    if end is None or end.type == "turn.completed":
        return None
    return _classify((end.object("error") if end.type == "turn.failed" else end).text("message"))


def _classify(message: str) -> Failure:
    message, status = _unwrap(message)
    if _DEAD.search(message):
        return stream.failure(message, status, "dead")
    if _LIMITED.search(message):
        return stream.failure(message, severity="limited")
    transient = status is None and _TRANSIENT.search(message)
    return stream.failure(message, status, "transient" if transient else None)


def _unwrap(message: str) -> tuple[str, int | None]:
    """The message and the status inside a message that is the body of the API's reply."""
    body = StreamEvent(decoded(message))
    return body.object("error").text("message") or message, body.count("status")
