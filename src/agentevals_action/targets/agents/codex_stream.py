"""Pure: the stream of `codex exec --json` as a trace.

Items that the agent finished, and the turn's usage:
https://developers.openai.com/codex/noninteractive and the CLI's `exec_events.rs`. Tools have the
names that they have everywhere here: a command is `Bash`, a change of files `Edit`, a search of the
web `WebSearch`, a tool of a server `mcp__server__tool`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents import stream as agent_stream
from agentevals_action.targets.agents.stream import Event, Failure, Outcome, Weight

Item = Mapping[str, Any]

_NO_MORE = re.compile(
    r"usage limit|quota exceeded|insufficient_quota|invalid_api_key|not logged in|codex login",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model\b.*(?:does not exist|is not supported|not found)", re.IGNORECASE
)
_PASSING = re.compile(
    r"high demand|overloaded|stream disconnected|at capacity|timed out|connection", re.IGNORECASE
)


def read(events: Sequence[Event]) -> Outcome:
    """What a run told. Times are not in the stream, nor is the cost."""
    items = [
        agent_stream.member(event, "item") for event in events if event["type"] == "item.completed"
    ]
    messages = tuple(filter(None, map(_message, items)))
    completed = [event for event in events if event["type"] == "turn.completed"]
    usage = (
        agent_stream.member(completed[-1], "usage") if completed else {}
    )  # of the thread so far, not of the turn alone
    trace = Trace(
        messages=messages,
        tool_calls=agent_stream.calls_of(messages),
        llm_call_count=len(messages),
        input_tokens=json_values.count(usage.get("input_tokens")),
        output_tokens=json_values.count(usage.get("output_tokens")),
        cached_tokens=json_values.count(usage.get("cached_input_tokens")),
    )
    failed = _failed(events)
    return Outcome(trace, ended=bool(completed) or failed is not None, failure=failed)


def _message(item: Item) -> Message | None:
    kind = agent_stream.text(item.get("type"))
    if kind == "agent_message":
        return Message("assistant", agent_stream.text(item.get("text")))
    call = _CALLS[kind](item) if kind in _CALLS else None
    return Message("assistant", "", tool_calls=(call,)) if call else None


def _id(item: Item) -> str | None:
    return agent_stream.text(item.get("id")) or None


def _command(item: Item) -> ToolCall:
    return ToolCall(
        "Bash", {"command": item.get("command")}, item.get("aggregated_output"), _id(item)
    )


def _change(item: Item) -> ToolCall:
    return ToolCall("Edit", {"changes": item.get("changes")}, item.get("status"), _id(item))


def _search(item: Item) -> ToolCall:
    return ToolCall("WebSearch", {"query": item.get("query")}, id=_id(item))


def _server_tool(item: Item) -> ToolCall:
    name = f"mcp__{agent_stream.text(item.get('server'))}__{agent_stream.text(item.get('tool'))}"
    error = agent_stream.text(agent_stream.member(item, "error").get("message"))
    result = agent_stream.member(item, "result")
    structured = result.get("structured_content")
    return ToolCall(
        name,
        item.get("arguments"),
        error or (result.get("content") if structured is None else structured),
        _id(item),
    )


def _other_agent(item: Item) -> ToolCall | None:
    name = agent_stream.text(item.get("tool"))
    return (
        ToolCall(name, {"prompt": item.get("prompt")}, item.get("agents_states"), _id(item))
        if name
        else None
    )


_CALLS: Mapping[str, Callable[[Item], ToolCall | None]] = {
    "command_execution": _command,
    "file_change": _change,
    "web_search": _search,
    "mcp_tool_call": _server_tool,
    "collab_tool_call": _other_agent,
}


def _failed(events: Sequence[Event]) -> Failure | None:
    """A failed turn, or an error that no turn came after: while it connects anew, the CLI tells
    errors that it gets over."""
    last = next(
        (
            event
            for event in reversed(events)
            if event["type"] in ("turn.completed", "turn.failed", "error")
        ),
        None,
    )
    if last is None or last["type"] == "turn.completed":
        return None
    told = (
        agent_stream.member(last, "error").get("message")
        if last["type"] == "turn.failed"
        else last.get("message")
    )
    message, status = _unpacked(agent_stream.text(told))
    return agent_stream.failure(message, status, _weight(message, status))


def _unpacked(message: str) -> tuple[str, int | None]:
    """The API's own words and its status where the message is the body of its answer."""
    try:
        data = json.loads(message) if message.startswith("{") else None
    except (ValueError, RecursionError):
        data = None
    error = agent_stream.member(json_values.members(data), "error")
    return agent_stream.text(error.get("message")) or message, json_values.count(
        json_values.members(data).get("status")
    )


def _weight(message: str, status: int | None) -> Weight | None:
    if _NO_MORE.search(message) or _NO_MODEL.search(message):
        return "dead"
    return "transient" if status is None and _PASSING.search(message) else None
