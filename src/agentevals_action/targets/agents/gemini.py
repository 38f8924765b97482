"""`gemini-cli`: Gemini CLI without a person (`gemini`).

Its stream contains pieces of messages, tool calls with their results, and at the end a `result`
with the tokens of all models: https://geminicli.com/docs/cli/headless and the CLI's
`output/types.ts`. It does not contain: model calls, the cost, the calls that sub-agents make."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.tools import ToolAccess
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Event
from agentevals_action.targets.agents.headless import AgentTarget, Command
from agentevals_action.targets.dialects.blocks import ToolResult
from agentevals_action.targets.dialects.usage import reported
from agentevals_action.validation.json_values import decode_json

_NAMES = {
    "run_shell_command": "Bash", "read_file": "Read", "write_file": "Write", "replace": "Edit",
    "glob": "Glob", "grep_search": "Grep", "search_file_content": "Grep", "web_fetch": "WebFetch",
    "google_web_search": "WebSearch", "activate_skill": "Skill", "invoke_agent": "Agent",
}  # fmt: skip
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "Read": {"absolute_path": "file_path"},
    "Skill": {"name": "skill"},
    "Agent": {"agent_name": "subagent_type"},
}
#: `mcp_server_tool`; the CLI asks for names of servers without `_`.
_MCP = re.compile(r"mcp_([^_]+)_(.+)")
#: A parameter that the CLI adds to each tool.
_ADDED = "wait_for_previous"
#: Errors of calls that were not made: the mode of approval leaves tools out, a policy forbids, or
#: the arguments are wrong.
_REFUSED = ("tool_not_registered", "policy_violation", "execution_denied", "invalid_tool_params")
#: The variable of the key, and those that choose another login.
_KEY, _LOGINS = "GEMINI_API_KEY", {"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"}
_API_ERROR = re.compile(r"\[API Error: (.*)\]", re.DOTALL)


class GeminiCli(AgentTarget):
    """Gemini CLI without a person."""

    provider: ClassVar[str] = "gemini-cli"
    title: ClassVar[str] = "Gemini CLI"
    package: ClassVar[str] = "npm install -g @google/gemini-cli"
    key_hint: ClassVar[str] = "name GEMINI_API_KEY in the input `env` (`--env`), and check `model`"

    servers_option: ClassVar[str] = "--allowed-mcp-server-names"

    command: Command = "gemini"

    def arguments(self, args: Sequence[str], _system: str) -> Sequence[str]:
        """The words after the program. Without a person it refuses a folder that nobody trusted
        before, and does not read skills."""
        words = ("--output-format", "stream-json", "--skip-trust", "--allowed-tools=activate_skill")
        return (*words, *self.model_arguments(), *args)

    def tool_arguments(
        self, access: ToolAccess, folder: Path, variables: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """A home of its own, whose settings have the servers; servers of the workspace are not
        allowed. The variables decide the login."""
        if not access.servers:
            return (), {}
        path = folder / ".gemini/settings.json"
        path.parent.mkdir()
        # With the address of a gateway in a variable it would not take the key on its own.
        has_key = _KEY in variables and not _LOGINS & variables.keys()
        login = {"security": {"auth": {"selectedType": "gemini-api-key"}}} if has_key else None
        path.write_text(access.config(login, trust=True), "utf-8")
        allowed = [f"--allowed-mcp-server-names={name}" for name in access.servers]
        return allowed, {"GEMINI_CLI_HOME": str(folder)}

    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run."""
        messages = agent_events.add_results(_messages(events), _results(events))
        stats = agent_events.last(events, "result").object("stats")
        return Trace(
            messages=messages,
            tool_calls=agent_events.known_calls(messages, stats.count("tool_calls")),
            usage=reported(
                Usage(stats.count("input_tokens"), _output_tokens(stats), stats.count("cached"))
            ),
            duration_ms=stats.amount("duration_ms"),
        )

    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """The error of the `result`, in which the body of the API's reply may be."""
        result = agent_events.last(events, "result")
        if result.text("status") != "error":
            return None
        message = result.object("error").text("message")
        if body := _API_ERROR.fullmatch(message):
            message = body[1]
        error = Event(decode_json(message)).object("error")
        return agent_events.failure(error.text("message") or message, error.count("code"))


def _output_tokens(stats: Event) -> int | None:
    """The tokens of answers and thoughts; thoughts are part of the total alone."""
    total, given = stats.count("total_tokens"), stats.count("input_tokens")
    answers = stats.count("output_tokens")
    if total is None or given is None or answers is None:
        return answers
    return max(answers, total - given)


def _messages(events: Sequence[Event]) -> Iterator[Message]:
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


def _call(event: Event) -> ToolCall:
    name = event.text("tool_name")
    if mcp := _MCP.fullmatch(name):
        name = f"mcp__{mcp[1]}__{mcp[2]}"
    arguments, call_id = event.value("parameters"), event.text("tool_id")
    if isinstance(arguments, Mapping):
        arguments = {field: value for field, value in arguments.items() if field != _ADDED}
    return agent_events.common_call(name, arguments, call_id, _NAMES, _ARGUMENTS)


def _results(events: Sequence[Event]) -> Iterator[ToolResult]:
    started = {event.text("tool_id"): event for event in events if event.type == "tool_use"}
    for event in (event for event in events if event.type == "tool_result"):
        call_id, error = event.text("tool_id"), event.object("error")
        start = started.get(call_id, Event()).value("timestamp")
        duration = agent_events.milliseconds(start, event.value("timestamp"))
        output = error.text("message") or event.value("output")
        refused = error.text("type") in _REFUSED
        yield ToolResult(call_id, output, refused=refused, duration_ms=duration)
