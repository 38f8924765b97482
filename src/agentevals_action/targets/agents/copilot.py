"""`copilot-cli`: GitHub Copilot without a person (`copilot`).

Its stream contains the events of a session, and at the end a `result` with the exit code: the CLI's
`session-events.schema.json`, and
https://docs.github.com/en/copilot/reference/copilot-cli-reference. The tokens are in the spans that
it writes to a file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.tools import ToolAccess
from agentevals_action.model.trace import Trace, Usage, list_calls, total
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Event
from agentevals_action.targets.agents.headless import AgentTarget, Command
from agentevals_action.targets.dialects.blocks import ToolResult
from agentevals_action.targets.dialects.usage import reported
from agentevals_action.validation.json_values import decode_json

_NAMES = {
    "bash": "Bash", "view": "Read", "create": "Write", "edit": "Edit", "skill": "Skill",
    "glob": "Glob", "grep": "Grep", "rg": "Grep", "web_fetch": "WebFetch",
    "web_search": "WebSearch", "task": "Agent",
}  # fmt: skip
_FILE = {"path": "file_path"}
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "Read": _FILE,
    "Write": {**_FILE, "file_text": "content"},
    "Edit": {**_FILE, "old_str": "old_string", "new_str": "new_string"},
    "Grep": {"paths": "path"},
    "Agent": {"agent_type": "subagent_type"},
}
#: The tool with which Codex models change files; its argument is a text.
_PATCH = "apply_patch"
_PATCHED_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
#: The tools for the kinds of changes in a patch, and in the report of its files.
_CHANGES = {"Add": "Write", "create": "Write", "Delete": "Delete", "delete": "Delete"}
_REFUSAL_CODES = ("denied", "rejected")
#: Tokens in, out and cached in a span.
_TOKENS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens",
)
_FAILED_SPAN = 2  # a status


class CopilotCli(AgentTarget):
    """GitHub Copilot without a person."""

    provider: ClassVar[str] = "copilot-cli"
    title: ClassVar[str] = "Copilot"
    package: ClassVar[str] = "npm install -g @github/copilot"
    key_hint: ClassVar[str] = (
        "name COPILOT_GITHUB_TOKEN in the input `env` (`--env`) (GITHUB_TOKEN is never passed "
        "on), and check `model`"
    )
    last_events: ClassVar[tuple[str, ...]] = ("result", "session.shutdown")
    servers_option: ClassVar[str] = "--additional-mcp-config"
    skill_mark: ClassVar[str] = ""  # `/name` is a text like any other without a person
    events_variable: ClassVar[str] = "COPILOT_OTEL_FILE_EXPORTER_PATH"

    command: Command = "copilot"

    def priced_model(self) -> None:
        """None: Copilot is paid for in requests, not in tokens."""

    def arguments(self, args: Sequence[str], _system: str) -> Sequence[str]:
        """The words after the program. With a prompt on standard input, and not as `-p`, it runs
        without a person."""
        options = ("--output-format", "json", "--no-color", "--no-ask-user")
        return (*options, *self.model_arguments(), *args)

    def tool_arguments(
        self, access: ToolAccess, folder: Path, _variables: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """A file with the servers, and a home of its own without other servers."""
        if not access.servers:
            return (), {}
        path = folder / "servers.json"
        path.write_text(access.config(tools=["*"]), "utf-8")
        allowed = (word for name in access.servers for word in ("--allow-tool", name))
        options = ("--disable-builtin-mcps", "--additional-mcp-config", f"@{path}", *allowed)
        return options, {"COPILOT_HOME": str(folder / "home")}

    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run. It is paid for in requests, so that its cost is unknown."""
        shown = agent_events.add_results(_messages(events), _results(events))
        edits = _file_edits(events)
        messages = tuple(_with_file_calls(message, edits) for message in shown)
        finished = _data(events, "model.call_finished")
        ended = agent_events.last(events, "result")
        answered = sum(call.text("outcome") == "success" for call in finished)
        return Trace(
            messages=messages,
            tool_calls=list_calls(messages),
            llm_call_count=answered if finished else None,
            usage=_usage(events),
            duration_ms=ended.object("usage").amount("sessionDurationMs"),
        )

    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """The error of a run that ended badly, or ended with an error; not an error from which the
        agent recovered."""
        end = agent_events.last(events, "session.error", "assistant.message", "assistant.turn_end")
        code = agent_events.last(events, "result").value("exitCode")
        if code in (None, 0) and end.type != "session.error":
            return None
        data = agent_events.last(events, "session.error").object("data")
        message = data.text("message") or f"it ended with exit code {code}"
        call = agent_events.last(events, "model.call_failure").object("data")
        if call.text("failureKind") == "transport":  # it has no status
            return TransientError(message)
        return agent_events.failure(message, data.count("statusCode"), data.text("errorType"))


def _data(events: Sequence[Event], event_type: str) -> list[Event]:
    return [event.object("data") for event in events if event.type == event_type]


def _messages(events: Sequence[Event]) -> Iterator[Message]:
    """The agent's messages with their tool calls. A call that no message requested becomes a
    message of its own."""
    requested = {
        request.text("toolCallId")
        for data in _data(events, "assistant.message")
        for request in data.objects("toolRequests")
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


def _call(request: Event, name_field: str) -> ToolCall | None:
    name = request.text(name_field)
    if not name:
        return None
    if request.text("mcpServerName") and request.text("mcpToolName"):
        name = f"mcp__{request.text('mcpServerName')}__{request.text('mcpToolName')}"
    arguments = decode_json(request.value("arguments"))  # a tool may take a text
    return agent_events.common_call(name, arguments, request.text("toolCallId"), _NAMES, _ARGUMENTS)


def _file_edits(events: Sequence[Event]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The kind and the path of each change of a file, by the id of its call."""
    return {
        data.text("toolCallId"): [(edit.text("kind"), edit.text("path")) for edit in edits]
        for data in _data(events, "tool.execution_complete")
        if (edits := data.objects("fileEdits"))
    }


def _with_file_calls(message: Message, edits: Mapping[str, Sequence[tuple[str, str]]]) -> Message:
    """The message with one call for each file of a patch: those that were changed, else those that
    the patch names."""
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        if call.name != _PATCH:
            calls.append(call)
            continue
        named = _PATCHED_FILE.findall(str(call.arguments))
        changes = [(kind, _as_named(path, named)) for kind, path in edits.get(call.id or "", named)]
        for number, (kind, path) in enumerate(changes or [("", "")]):
            arguments = {"file_path": path} if path else call.arguments
            call_id = f"{call.id}.{number}" if number else call.id
            name = _CHANGES.get(kind, "Edit")
            calls.append(replace(call, name=name, arguments=arguments, id=call_id))
    return replace(message, tool_calls=tuple(calls))


def _as_named(path: str, named: Sequence[tuple[str, str]]) -> str:
    """The path of a changed file as its patch names it: relative to the folder of the agent."""
    return next((name for _, name in named if path.endswith(f"/{name}")), path)


def _results(events: Sequence[Event]) -> Iterator[ToolResult]:
    started: dict[str, Any] = {}
    for event in events:
        data, timestamp = event.object("data"), event.value("timestamp")
        call_id = data.text("toolCallId")
        if event.type == "tool.execution_start":
            started[call_id] = timestamp
        elif event.type == "tool.execution_complete":
            output = data.value("result")
            if isinstance(output, Mapping):
                output = output.get("content", output)
            message = data.object("error").text("message")
            duration = agent_events.milliseconds(started.get(call_id), timestamp)
            refused = _is_refusal(data.object("error"))
            yield ToolResult(call_id, message or output, refused=refused, duration_ms=duration)


def _is_refusal(error: Event) -> bool:
    """Whether a call was not made: the agent may not make it, or has no such tool."""
    message = error.text("message")
    return (
        error.text("code") in _REFUSAL_CODES
        or message.startswith("Permission denied")
        or (message.startswith("Tool '") and message.rstrip(".").endswith("' does not exist"))
    )


def _usage(events: Sequence[Event]) -> Usage:
    """The tokens of all model calls, sub-agents' included, by its spans. Unknown if one of the
    calls lacks them."""
    calls = [
        span.object("attributes")
        for span in events
        if span.type == "span"
        and span.object("attributes").text("gen_ai.operation.name") == "chat"
        and span.object("status").count("code") != _FAILED_SPAN
    ]
    usage = total(reported(Usage(*map(call.count, _TOKENS))) for call in calls)
    return Usage() if usage.total_tokens is None else usage
