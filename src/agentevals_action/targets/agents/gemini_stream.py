"""The stream of `gemini --output-format stream-json` as a trace.

It contains pieces of messages, tool calls with their results, and at the end a `result` with the
tokens of all models: https://geminicli.com/docs/cli/headless and the CLI's `output/types.ts`. It
does not contain: model calls, the cost, the calls that sub-agents make."""

import re
from collections.abc import Iterator, Mapping, Sequence

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import decoded
from agentevals_action.targets.agents import stream
from agentevals_action.targets.agents.stream import Failure, Finished, StreamContent, StreamEvent

_NAMES: Mapping[str, str] = {
    "run_shell_command": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "replace": "Edit",
    "glob": "Glob",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "web_fetch": "WebFetch",
    "google_web_search": "WebSearch",
    "activate_skill": "Skill",
    "invoke_agent": "Agent",
}
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "Read": {"absolute_path": "file_path"},
    "Skill": {"name": "skill"},
    "Agent": {"agent_name": "subagent_type"},
}
#: `mcp_server_tool`; the CLI asks for names of servers without `_`.
_MCP = re.compile(r"mcp_([^_]+)_(.+)")
#: Errors of calls that were not made: the mode of approval leaves tools out, or a policy forbids.
_REFUSED = ("tool_not_registered", "policy_violation", "execution_denied")
_API_ERROR = re.compile(r"\[API Error: (.*)\]", re.DOTALL)
_DEAD = re.compile(
    r"API_KEY_INVALID|API key not valid|is not found|must specify the GEMINI_API_KEY"
)
_DROPPED = re.compile(r"fetch failed|socket hang up|ECONNRESET|network", re.IGNORECASE)
_NOTHING = StreamEvent(None)


def read(events: Sequence[StreamEvent]) -> StreamContent:
    """The outcome of a run."""
    results = _results(events)
    messages = stream.add_results(list(_messages(events)), results)
    result = stream.last(events, "result")
    stats = (result or _NOTHING).object("stats")
    trace = Trace(
        messages=messages,
        tool_calls=stream.calls_of(messages),
        usage=Usage(stats.count("input_tokens"), _output_tokens(stats), stats.count("cached")),
        duration_ms=stats.amount("duration_ms"),
    )
    return StreamContent(
        trace,
        ended=result is not None,
        failure=_failure(result) if result else None,
    )


def _output_tokens(stats: StreamEvent) -> int | None:
    """The tokens of answers and thoughts; thoughts are part of the total alone."""
    total, given = stats.count("total_tokens"), stats.count("input_tokens")
    answers = stats.count("output_tokens")
    if total is None or given is None or answers is None:
        return answers
    return max(answers, total - given)


def _messages(events: Sequence[StreamEvent]) -> Iterator[Message]:
    """The messages: pieces of text belong together until a tool is called."""
    text = ""
    for event in events:
        if event.type == "message" and event.text("role") == "assistant":
            text += event.text("content")
        elif event.type == "tool_use" and event.text("tool_name"):
            yield Message("assistant", text, tool_calls=(_call(event),))
            text = ""
    if text:
        yield Message("assistant", text)


def _call(event: StreamEvent) -> ToolCall:
    name = event.text("tool_name")
    if mcp := _MCP.fullmatch(name):
        name = f"mcp__{mcp[1]}__{mcp[2]}"
    name = _NAMES.get(name, name)
    arguments = stream.renamed(event.value("parameters"), _ARGUMENTS.get(name, {}))
    return ToolCall(name, arguments, id=event.text("tool_id") or None)


def _results(events: Sequence[StreamEvent]) -> Mapping[str, Finished]:
    started = {event.text("tool_id"): event for event in events if event.type == "tool_use"}
    finished: dict[str, Finished] = {}
    for event in (event for event in events if event.type == "tool_result"):
        own_id, error = event.text("tool_id"), event.object("error")
        begun = started.get(own_id, _NOTHING).value("timestamp")
        took = stream.milliseconds(begun, event.value("timestamp"))
        output = error.text("message") or event.value("output")
        finished[own_id] = Finished(output, took, error.text("type") in _REFUSED)
    return finished


def _failure(result: StreamEvent) -> Failure | None:
    if result.text("status") != "error":
        return None
    message = result.object("error").text("message")
    body = _API_ERROR.fullmatch(message)
    message = body[1] if body else message
    error = StreamEvent(decoded(message)).object("error")
    shown, status = error.text("message") or message, error.count("code")
    if _DEAD.search(message):
        return stream.failure(shown, severity="dead")
    dropped = status is None and _DROPPED.search(message)
    return stream.failure(shown, status, "transient" if dropped else None)
