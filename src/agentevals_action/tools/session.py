"""The tools of one attempt: the replies that the suite has, and the record of the calls."""

import asyncio
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import QUOTE_LIMIT, cut, quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.tools import (
    INVALID,
    UNKNOWN,
    Command,
    Condition,
    Tool,
    ToolSet,
    find_differences,
)
from agentevals_action.model.trace import Trace
from agentevals_action.system.redaction import redact
from agentevals_action.tools.merging import ADDED_ARGUMENT, Arrival, merge_calls
from agentevals_action.validation.json_schema import find_mismatches
from agentevals_action.validation.json_values import decode_json, map_texts

#: Calls of one attempt that are recorded: an agent that never stops calling would fill the memory.
MAX_CALLS = 10_000
#: The exit code of a command for whose call there is no reply.
NO_REPLY = 64
#: Stands for the folder that the agent works in, in replies and conditions.
_WORKSPACE = "{{workspace}}"
_PROBLEMS_SHOWN = 3
_STOPPED = "the suite's schemas cannot check the calls"
_ENTRY_SHOWN = 2_000  # characters


Entry = TypeVar("Entry", bound=Condition)


class UnknownTool(LookupError):
    """A call of a tool that the server does not have; the message is for the client."""


@dataclass(frozen=True)
class ToolResult:
    """What a call of a tool is answered with. `structured` is for a tool with an output schema."""

    text: str
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass(frozen=True)
class CommandResult:
    """What a call of a command prints, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


class ToolSession:
    """Answers the calls of one attempt, and records them. `workspace` is the folder that the agent
    works in; its path stands in replies and conditions as `{{workspace}}`."""

    def __init__(self, tools: ToolSet, workspace: Path | None = None) -> None:
        self._tools, self._workspace = tools, workspace
        self._arrivals: list[Arrival] = []
        self._call_count = 0
        #: How often an entry answered, by its identity.
        self._turns = Counter[int]()
        self._is_listed = self._is_stopped = False
        self._errors: list[AttemptError] = []
        #: Calls are answered in the order in which they arrive, although a check takes a thread.
        self._turn = asyncio.Lock()

    @property
    def servers(self) -> tuple[str, ...]:
        """The agent's names of the MCP servers."""
        return self._tools.servers

    @property
    def commands(self) -> Mapping[str, Command]:
        """The commands by their names."""
        return self._tools.commands

    def list_tools(self, server: str) -> list[dict[str, Any]]:
        """The tools of a server as MCP lists them."""
        self._is_listed = True
        return [tool.listing() for tool in self._tools.tools.values() if tool.server == server]

    async def call(self, server: str, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The result of a call; UnknownTool."""
        async with self._turn:
            return await self._call(server, name, arguments)

    async def _call(self, server: str, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        key = server, name
        tool = self._tools.tools.get(key)
        if tool is None:
            problem, unknown = f"{UNKNOWN}{name}", Tool(name=name, server_name=server)
            call = ToolCall(unknown.trace_name, arguments, problem, refused=True)
            self._record(Arrival(call, key))
            raise UnknownTool(problem)
        if ADDED_ARGUMENT in arguments and ADDED_ARGUMENT not in tool.argument_names:
            arguments = {key: arguments[key] for key in arguments if key != ADDED_ARGUMENT}
        if problems := await self._find_problems(tool.parameters, arguments):
            result = ToolResult(f"{INVALID}{name}: {problems}", is_error=True)
        else:
            result = await self._reply(tool, arguments)
        is_data = result.structured is not None
        output = result.structured if is_data else decode_json(result.text)
        call = ToolCall(tool.trace_name, arguments, output, refused=bool(problems))
        self._record(Arrival(call, key))
        return result

    async def run_command(
        self, name: str, arguments: Sequence[str], stdin: str | None = None
    ) -> CommandResult:
        """What a call of a command prints; UnknownTool."""
        if (command := self.commands.get(name)) is None:
            raise UnknownTool(f"Unknown command: {name}")
        recorded = {"line": shlex.join(arguments), "args": list(arguments)}
        given = recorded if stdin is None else {**recorded, "stdin": stdin}
        async with self._turn:
            reply = await self._find_reply(command.replies, given)
            if reply is None:
                problem = self._no_reply(name, "commands", {"line": recorded["line"]}, "stdout")
                done = CommandResult(stderr=f"{problem}\n", exit_code=NO_REPLY)
            else:
                stdout, stderr = self._filled([reply.stdout, reply.stderr])
                done = CommandResult(stdout, stderr, reply.exit)
            self._record(Arrival(ToolCall(name, recorded, done.stdout + done.stderr)))
        return done

    def finish(self, trace: Trace) -> Trace:
        """The trace of the agent's answer with the calls that arrived here. AttemptError of kind
        `tools` if a call has no reply, of kind `target` if the agent did not ask for its tools.
        Its checks may take seconds."""
        error = self.find_error()
        merged = self.merge(trace)
        if error is None and self._tools.tools and not (self._is_listed or self._arrivals):
            error = AttemptError(
                "target",
                "the agent did not connect to the tools of the test",
                "let it use the MCP server that the action gives it; see the page about tools",
            )
        if error is not None:
            error.spent = merged
            raise error
        return merged

    def find_error(self) -> AttemptError | None:
        """The error of an attempt that cannot be scored because of its calls."""
        if self._errors:
            return self._errors[0].copy()
        if self._call_count > MAX_CALLS:
            return AttemptError(
                "target",
                f"the agent made more than {MAX_CALLS:,} calls",
                "let it stop, or set a smaller `timeout_seconds`",
            )
        return None

    def merge(self, trace: Trace) -> Trace:
        """The trace with the calls that arrived here: names, arguments and replies are those of
        the server, the order is the agent's own where it shows the call."""
        return merge_calls(trace, self._arrivals, self._tools.tools, _accepts)

    def _record(self, arrival: Arrival) -> None:
        self._call_count += 1
        if self._call_count <= MAX_CALLS:
            self._arrivals.append(arrival)

    async def _reply(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        entry = await self._find_reply(tool.replies, arguments)
        if entry is None and tool.ask is not None:
            entry = await tool.ask(arguments, self._hidden)
        if entry is None:
            problem = self._no_reply(tool.name, "tools", arguments, "reply")
            return ToolResult(problem, is_error=True)
        answer = entry.answers[min(self._turns[id(entry)], len(entry.answers) - 1)]
        self._turns[id(entry)] += 1
        if answer.error is not None:
            return ToolResult(self._filled(answer.error), is_error=True)
        value = self._filled(answer.reply)
        is_text = isinstance(value, str)
        text = value if is_text else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        is_structured = tool.output_schema is not None and isinstance(value, dict)
        return ToolResult(text, value if is_structured else None)

    def _no_reply(self, name: str, field: str, when: Mapping[str, Any], result: str) -> str:
        """Records a call without a reply; the text for the agent."""
        condition = f"when: {json.dumps(self._hidden(when), ensure_ascii=False)}, " if when else ""
        entry = f"{{{condition}{result}: …}}"
        shown = cut(redact(entry), _ENTRY_SHOWN)
        problem = f"the test has no reply for a call of {quoted(name)}; add it to the `replies` of "
        problem += f"this entry of `{field}`:\n- {shown}"
        self._errors.append(AttemptError("tools", problem))
        return f"The test has no reply for this call of {name}."

    async def _find_reply(
        self, entries: Sequence[Entry], arguments: Mapping[str, Any]
    ) -> Entry | None:
        """The first entry that fits a call."""
        for entry in entries:
            wanted = self._filled(entry.wanted)
            if not find_differences(arguments, wanted, wanted) and not (
                await self._find_problems(entry.matches, arguments)
            ):
                return entry
        return None

    async def _find_problems(self, schema: Mapping[str, Any] | None, value: Any) -> str:
        """What is wrong with a value, by the function of this name. A value that cannot be checked
        is an error of the attempt, and no further check takes its time."""
        if not schema:
            return ""
        if self._is_stopped:
            return _STOPPED
        try:
            return await asyncio.to_thread(_find_problems, schema, value)
        except AttemptError as error:
            self._is_stopped = True
            self._errors.append(AttemptError("tools", str(error), error.hint))
            return _STOPPED

    def _filled(self, value: Any) -> Any:
        """A value with the path of the workspace in its texts."""
        if self._workspace is None:
            return value
        return map_texts(value, lambda text: text.replace(_WORKSPACE, str(self._workspace)))

    def _hidden(self, value: Any) -> Any:
        """A value without the path of the workspace: the inverse of `_filled`."""
        if self._workspace is None:
            return value
        return map_texts(value, lambda text: text.replace(str(self._workspace), _WORKSPACE))


def _accepts(tool: Tool, arguments: Any) -> bool:
    return not _find_problems(tool.parameters or {}, arguments or {})


def _find_problems(schema: Mapping[str, Any], value: Any) -> str:
    """What is wrong with a value, by the path in it; empty if nothing is."""
    errors = find_mismatches(schema, value, "a call", _PROBLEMS_SHOWN)
    return "; ".join(f"{error.json_path}: {cut(error.message, QUOTE_LIMIT)}" for error in errors)
