"""`claude-cli`: Claude Code without a person (`claude -p`).

Its stream contains messages in the form of the API, tool results as messages of the user, and at
the end a `result` with usage, cost, duration and the calls that were refused:
https://code.claude.com/docs/en/headless and
https://platform.claude.com/docs/en/agent-sdk/typescript#message-types

The usage of the `result` leaves out sub-agents; its `modelUsage` has all tokens. The last message
of a sub-agent is not in the stream, only its usage."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.tools import ToolAccess
from agentevals_action.model.trace import Trace, Usage, list_calls, total
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Event
from agentevals_action.targets.agents.headless import AgentTarget, Command
from agentevals_action.targets.dialects import messages as role_messages
from agentevals_action.targets.dialects.blocks import ToolResult, WireMessage
from agentevals_action.targets.dialects.conversations import add_answer
from agentevals_action.targets.dialects.usage import read_usage

_SYNTHETIC = "<synthetic>"  # the model of messages that the CLI itself wrote
_DURATIONS = ("durationMs", "totalDurationMs")
_NAMES = {"Task": "Agent"}  # of earlier versions
_UNKNOWN_TOOL = "<tool_use_error>Error: No such tool available"


class ClaudeCli(AgentTarget):
    """Claude Code without a person."""

    provider: ClassVar[str] = "claude-cli"
    title: ClassVar[str] = "Claude Code"
    skill_folders: ClassVar[tuple[str, ...]] = (".claude/skills",)
    package: ClassVar[str] = "npm install -g @anthropic-ai/claude-code"
    key_hint: ClassVar[str] = (
        "name ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN) in the input `env` (`--env`), and "
        "check `model`"
    )
    system_option: ClassVar[str] = "--append-system-prompt"
    servers_option: ClassVar[str] = "--mcp-config"

    command: Command = "claude"

    def arguments(self, args: Sequence[str], system: str) -> Sequence[str]:
        """The words after the program, which refuses the stream without `--verbose`."""
        appended = ("--append-system-prompt", system) if system else ()
        options = ("-p", "--output-format", "stream-json", "--verbose")
        return (*options, *self.model_arguments(), *appended, *args)

    def tool_arguments(
        self, access: ToolAccess, folder: Path, _variables: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """A file with the servers; other servers of the user and the workspace do not start."""
        if not access.servers:
            return (), {}
        path = folder / "servers.json"
        # Without `alwaysLoad` the model would have to search for the tools.
        path.write_text(access.config(alwaysLoad=True), "utf-8")
        allowed = ",".join(f"mcp__{name}" for name in access.servers)
        options = ("--strict-mcp-config", f"--mcp-config={path}", f"--allowedTools={allowed}")
        return options, {}

    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run; ValueError for a message of another form."""
        result = agent_events.last(events, "result")
        denied = {denial.text("tool_use_id") for denial in result.objects("permission_denials")}
        wired = [(event, message) for event in events for message in _wired(event)]
        messages = agent_events.add_results(_messages(wired), _results(wired, denied))
        messages = add_answer(messages, result.text("result"))
        models = result.value("modelUsage")
        usage = result.usage("usage")
        if isinstance(models, Mapping) and models:
            usage = total(map(read_usage, models.values()))
        return Trace(
            messages=messages,
            tool_calls=list_calls(messages),
            llm_call_count=_count_calls(events, wired, usage),
            usage=replace(usage, cost_usd=result.amount("total_cost_usd")),
            duration_ms=result.amount("duration_ms"),
        )

    def find_retry(self, event: Event) -> AttemptError | None:
        """A failed API call that the CLI repeats, by default ten times, with long waits."""
        if event.type != "system" or event.text("subtype") != "api_retry":
            return None
        status, error = event.count("error_status"), event.text("error")
        attempt = f"attempt {event.count('attempt')} of {event.count('max_retries')}"
        cause = " ".join(filter(None, (str(status or ""), error)))
        return agent_events.failure(f"a call of the API failed ({cause}), {attempt}", status)

    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """The error of the `result`, or a message of the CLI itself that the API refused a call."""
        result, answer = (agent_events.last(events, name) for name in ("result", "assistant"))
        subtype, code = result.text("subtype"), answer.text("error")
        if result.type and result.value("is_error") is not True and not subtype.startswith("error"):
            return None
        if result.type:
            listed = result.value("errors")
            errors = [item for item in listed if isinstance(item, str)] if listed else []
            message = result.text("result") or "; ".join(errors) or f"it stopped with `{subtype}`"
        elif code:
            texts = (str(message.message.content) for message in _wired(answer))
            message = "\n".join(filter(None, texts)) or code
        else:
            return self.find_retry(agent_events.last(events, "system", "assistant", "user"))
        return agent_events.failure(message, result.count("api_error_status"), code)


def _wired(event: Event) -> Sequence[WireMessage]:
    """The messages of an event."""
    message = event.value("message")
    if event.type not in ("assistant", "user") or not isinstance(message, Mapping):
        return ()
    return role_messages.from_wire([{**message, "role": event.type}])


def _count_calls(
    events: Sequence[Event], wired: Sequence[tuple[Event, WireMessage]], usage: Usage
) -> int | None:
    """The number of model calls if the stream shows each: their input must add up to the total."""
    shown = {
        event.object("message").text("id"): message.usage
        for event, message in wired
        if event.type == "assistant" and message.model != _SYNTHETIC
    }
    reports = [event.object("tool_use_result") for event in events if event.type == "user"]
    last_calls = [report.usage("usage") for report in reports if report.text("agentId")]
    usages = [*shown.values(), *last_calls]
    is_complete = usage.input_tokens and total(usages).input_tokens == usage.input_tokens
    return len(usages) if is_complete else None


def _messages(wired: Sequence[tuple[Event, WireMessage]]) -> list[Message]:
    """The model's messages, a sub-agent's among them. One message arrives as several events with
    the same id, one for each block."""
    messages: list[Message] = []
    last_id = ""
    for event, wire in wired:
        if event.type != "assistant" or wire.model == _SYNTHETIC:
            continue
        message_id, part = event.object("message").text("id"), wire.message
        calls = tuple(
            replace(call, name=_NAMES.get(call.name, call.name)) for call in part.tool_calls
        )
        text, name = str(part.content), None
        if isinstance(event.value("parent_tool_use_id"), str):
            name = "subagent"
        if message_id and message_id == last_id:
            previous = messages.pop()
            text = "\n".join(filter(None, (str(previous.content), text)))
            calls = (*previous.tool_calls, *calls)
        messages.append(Message("assistant", text, name, tool_calls=calls))
        last_id = message_id
    return messages


def _results(
    wired: Sequence[tuple[Event, WireMessage]], denied: Collection[str]
) -> Iterator[ToolResult]:
    """The results of tool calls. The duration is as reported, else the time between the
    events of the call and of the result."""
    started = {call.id: event for event, wire in wired for call in wire.message.tool_calls}
    for event, wire in wired:
        call_id, output = wire.message.tool_call_id, wire.message.content
        if call_id is not None:
            duration = _reported_duration(event)
            if duration is None and call_id in started:
                duration = agent_events.milliseconds_between(started[call_id], event)
            refused = call_id in denied or str(output).startswith(_UNKNOWN_TOOL)
            yield ToolResult(call_id, output, refused=refused, duration_ms=duration)


def _reported_duration(event: Event) -> float | None:
    details = event.object("tool_use_result")
    return next((details.amount(name) for name in _DURATIONS if name in details), None)
