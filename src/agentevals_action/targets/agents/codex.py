"""`codex-cli`: Codex without a person (`codex exec`).

Its stream contains the completed items and the usage of the turn:
https://developers.openai.com/codex/noninteractive and the CLI's `exec_events.rs`. It does not
contain: model calls, the tokens and calls of sub-agents, commands that were refused, files that a
command reads."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.tools import TOKEN_VARIABLE, ToolAccess
from agentevals_action.model.trace import Trace, Usage, list_calls
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Event
from agentevals_action.targets.agents.headless import AgentTarget, Command
from agentevals_action.validation.json_values import decode_json

#: The tools whose calls are part of shell commands.
_HIDDEN_TOOLS = ("Glob", "Grep", "Read", "Skill")
_CHANGES: Mapping[Any, str] = {"add": "Write", "delete": "Delete"}
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")
#: Arguments with which a command may use the network.
_HAS_NETWORK = re.compile(
    r"danger-full-access|--dangerously-bypass-approvals-and-sandbox"
    r"|workspace-write.*network_access\s*=\s*true|network_access\s*=\s*true.*workspace-write"
)
#: The beginning of an error after the server of a tool was asked.
_SENT = "tool call error:"


class CodexCli(AgentTarget):
    """Codex without a person."""

    provider: ClassVar[str] = "codex-cli"
    title: ClassVar[str] = "Codex"
    package: ClassVar[str] = "npm install -g @openai/codex"
    key_hint: ClassVar[str] = "name CODEX_API_KEY in the input `env` (`--env`), and check `model`"
    last_events: ClassVar[tuple[str, ...]] = ("turn.completed",)
    system_option: ClassVar[str] = "developer_instructions"
    servers_option: ClassVar[str] = "mcp_servers"
    skill_mark: ClassVar[str] = "$"
    refusal: ClassVar[re.Pattern[str]] = re.compile(
        r'(?:Rejected\(\\?"|unsupported call: )(.+?)(?:\\?"\)|$)', re.MULTILINE
    )

    command: Command = Field(
        "codex", description="The program, with words before `exec` if it needs any."
    )

    def arguments(self, args: Sequence[str], system: str) -> Sequence[str]:
        """The words after the program. A workspace need not be a git repository. The sandbox is the
        agent's default, read-only, unless `args` says otherwise."""
        options = ("exec", "--json", "--color", "never", "--skip-git-repo-check")
        # Codex adds them to its own instructions.
        instructions = ("-c", f"developer_instructions={_toml(system)}") if system else ()
        return (*options, *self.model_arguments(), *args, *instructions, "-")

    def tool_arguments(
        self, access: ToolAccess, _folder: Path, _variables: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Options; without the user's own settings, which may have servers."""
        options = ["allow_login_shell=false"] if access.stubs else []  # it would reset the PATH
        for name in access.servers:
            options += (
                f"mcp_servers.{name}.url={_toml(access.address(name))}",
                f"mcp_servers.{name}.bearer_token_env_var={_toml(TOKEN_VARIABLE)}",
                f"mcp_servers.{name}.required=true",
                f'mcp_servers.{name}.default_tools_approval_mode="approve"',
            )
        words = (word for option in options for word in ("-c", option))
        return ("--ignore-user-config", *words), {}

    def refuse_commands(self) -> tuple[str, str] | None:
        """The refusal if the agent's sandbox has no network."""
        if _HAS_NETWORK.search(" ".join(self.args)):
            return None
        problem = "runs commands in a sandbox without network, where they cannot ask the suite"
        advice = "write `args: [--sandbox, danger-full-access]`, or `[--sandbox, workspace-write, "
        return problem, f"{advice}-c, sandbox_workspace_write.network_access=true]`"

    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run, in whose stream calls have no durations: an item is reported as
        started late."""
        items = (event.object("item") for event in events if event.type == "item.completed")
        messages = tuple(message for item in items for message in _messages(item))
        calls = agent_events.known_calls(messages)
        used_shell = any(call.name == "Bash" for call in list_calls(messages))
        usage = agent_events.last(events, "turn.completed").usage("usage")
        return Trace(
            messages=messages,
            tool_calls=calls,
            usage=Usage() if calls is None else usage,  # it is the main agent's alone
            hidden_tools=_HIDDEN_TOOLS if used_shell else (),
        )

    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """A failed turn, or an error that no turn followed: while it reconnects, the CLI reports
        errors from which it recovers. The message may be the body of the API's reply."""
        end = agent_events.last(events, "turn.completed", "turn.failed", "error")
        if end.type in ("", "turn.completed"):
            return None
        message = (end.object("error") if end.type == "turn.failed" else end).text("message")
        body = Event(decode_json(message))
        message = body.object("error").text("message") or message
        return agent_events.failure(message, body.count("status"))


def _toml(text: str) -> str:
    """A string of TOML: one of JSON, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _messages(item: Event) -> Iterator[Message]:
    if item.type == "agent_message":
        yield Message("assistant", item.text("text"))
    elif calls := tuple(_calls(item)):
        calls = tuple(replace(call, refused=_is_refused(item)) for call in calls)
        yield Message("assistant", "", tool_calls=calls)


def _is_refused(item: Event) -> bool:
    """Whether the calls of an item were not made; an `error` is that of a tool of an MCP server."""
    error = item.object("error").text("message")
    return item.text("status") == "declined" or (error != "" and not error.startswith(_SENT))


def _calls(item: Event) -> Iterator[ToolCall]:
    """The tool calls of an item: one for each file of a change, else at most one."""
    call_id = item.text("id") or None
    match item.type:
        case "command_execution":
            arguments = {"command": _without_shell(item.value("command"))}
            yield ToolCall("Bash", arguments, item.value("aggregated_output"), call_id)
        case "file_change":
            for number, change in enumerate(item.objects("changes")):
                name = _CHANGES.get(change.value("kind"), "Edit")
                change_id = f"{call_id}.{number}" if number and call_id else call_id
                arguments = {"file_path": change.value("path")}
                yield ToolCall(name, arguments, item.value("status"), change_id)
        case "web_search":
            yield ToolCall("WebSearch", {"query": item.value("query")}, id=call_id)
        case "collab_tool_call" if item.text("tool"):
            name = "Agent" if item.text("tool") == "spawn_agent" else item.text("tool")
            arguments = {"prompt": item.value("prompt")}
            yield ToolCall(name, arguments, item.value("agents_states"), call_id)
        case "mcp_tool_call":
            result, error = item.object("result"), item.object("error").text("message")
            structured = result.value("structured_content")
            output = error or (result.value("content") if structured is None else structured)
            name = f"mcp__{item.text('server')}__{item.text('tool')}"
            yield ToolCall(name, item.value("arguments"), output, call_id)


def _without_shell(command: Any) -> Any:
    """The command that a shell is started for: `ls` of `/bin/bash -lc ls`."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    is_shell = len(words) == 3 and _SHELLS.fullmatch(words[0]) and words[1] in ("-c", "-lc")
    return words[2] if is_shell else command
