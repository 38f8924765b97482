"""`claude-cli`: Claude Code without a person (`claude -p`).

Its stream contains messages in the form of the API, tool results as messages of the user, and at
the end a `result` with usage, cost, duration and the calls that were refused:
https://code.claude.com/docs/en/headless and
https://platform.claude.com/docs/en/agent-sdk/typescript#message-types

The usage of the `result` leaves out sub-agents; its `modelUsage` has all tokens. The last message
of a sub-agent is not in the stream, only its usage."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage, total
from agentevals_action.model.validation.file_model import NonEmpty
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Event, ToolResult
from agentevals_action.targets.agents.headless import AgentOptions, Command

#: The errors for the values of an assistant message's `error`, if the API refused the call.
_REFUSALS: Mapping[str, Callable[[str], AttemptError]] = {
    "authentication_failed": TargetDead,
    "oauth_org_not_allowed": TargetDead,
    "billing_error": TargetDead,
    "model_not_found": TargetDead,
    "rate_limit": agent_events.rate_limit,
    "overloaded": TransientError,
    "server_error": TransientError,
}
#: Parts of its messages about a missing or wrong login, and about an empty account.
_DEAD = (
    "please run /login",
    "invalid api key",
    "not logged in",
    "failed to authenticate",
    "exceeded your current quota",
    "credit balance is too low",
)
_SYNTHETIC = "<synthetic>"  # the model of messages that the CLI itself wrote
_DURATIONS = ("durationMs", "totalDurationMs")
_NAMES = {"Task": "Agent"}  # of earlier versions
_UNKNOWN_TOOL = "<tool_use_error>Error: No such tool available"
#: Tokens of one call, and of all calls of one model: input after the last cache breakpoint, output,
#: input read from the cache and written to it. A price applies to the sum of the input.
_CALL_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_MODEL_FIELDS = (
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
)


class ClaudeCli(AgentOptions):
    """Claude Code without a person."""

    provider: ClassVar[str] = "claude-cli"
    aliases: ClassVar[tuple[str, ...]] = ("claude", "claude_code")
    title: ClassVar[str] = "Claude Code"
    package: ClassVar[str] = "npm install -g @anthropic-ai/claude-code"
    key_hint: ClassVar[str] = (
        "name ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN) in the workflow's input `env`, and "
        "check `model`"
    )
    system_option: ClassVar[str] = "--append-system-prompt"

    command: Command = "claude"
    system_prompt: NonEmpty | None = Field(
        None, description="Replaces the agent's own system prompt."
    )
    append_system_prompt: str | None = Field(
        None, description="Appended to the agent's own system prompt."
    )
    max_turns: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Turns after which it stops, which is an error."
    )

    @property
    def first_message(self) -> None:
        """None: `system_prompt` is an option of its own."""

    def arguments(self, args: Sequence[str], system: str) -> Sequence[str]:
        """The words after the program; it refuses the stream without `--verbose`."""
        appended = "\n\n".join(filter(None, (self.append_system_prompt, system)))
        options = {
            "--max-turns": str(self.max_turns) if self.max_turns else None,
            "--system-prompt": self.system_prompt,
            "--append-system-prompt": appended,
        }
        return (
            *("-p", "--output-format", "stream-json", "--verbose"),
            *self.model_arguments(),
            *(word for name, value in options.items() if value for word in (name, value)),
            *args,
        )

    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run."""
        result = agent_events.last(events, "result")
        denied = {denial.text("tool_use_id") for denial in result.objects("permission_denials")}
        messages = agent_events.add_results(_messages(events), _results(events, denied))
        messages = agent_events.add_answer(messages, result.text("result"))
        models = result.objects("modelUsage")
        usage = total(_usage(model, _MODEL_FIELDS) for model in models)
        if not models:
            usage = _usage(result.object("usage"), _CALL_FIELDS)
        return Trace(
            messages=messages,
            tool_calls=agent_events.calls_of(messages),
            llm_call_count=_calls_count(events, usage),
            usage=replace(usage, cost_usd=result.amount("total_cost_usd")),
            duration_ms=result.amount("duration_ms"),
        )

    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """The error of the `result`, or a message of the CLI itself that the API refused a call."""
        result, refusal = agent_events.last(events, "result"), _refusal(events)
        subtype = result.text("subtype")
        if result.type and result.value("is_error") is not True and not subtype.startswith("error"):
            return None
        if not result.type:
            return refusal
        listed = result.value("errors")
        errors = [item for item in listed if isinstance(item, str)] if listed else []
        message = result.text("result") or "; ".join(errors) or f"it stopped with `{subtype}`"
        if any(words in message.lower() for words in _DEAD):
            return TargetDead(message)
        return refusal or agent_events.failure(message, result.count("api_error_status"))


def _refusal(events: Sequence[Event]) -> AttemptError | None:
    """The error of the last message, if the API refused the call."""
    event = agent_events.last(events, "assistant")
    error = event.text("error")
    message = str(_message(event.object("message"), None).content) or error
    return _REFUSALS.get(error, agent_events.failure)(message) if error else None


def _calls_count(events: Sequence[Event], usage: Usage) -> int | None:
    """The number of model calls if the stream shows each: their input must add up to the total."""
    calls = [event.object("message") for event in events if event.type == "assistant"]
    shown = {
        call.text("id"): call.object("usage") for call in calls if call.value("model") != _SYNTHETIC
    }
    reports = [event.object("tool_use_result") for event in events if event.type == "user"]
    last_calls = [report.object("usage") for report in reports if report.text("agentId")]
    usages = [_usage(call, _CALL_FIELDS) for call in (*shown.values(), *last_calls)]
    is_complete = usage.input_tokens and total(usages).input_tokens == usage.input_tokens
    return len(usages) if is_complete else None


def _usage(data: Event, fields: Sequence[str]) -> Usage:
    fresh, output, cached, written = map(data.count, fields)
    tokens = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(tokens, output, cached, written)


def _messages(events: Sequence[Event]) -> list[Message]:
    """The model's messages, a sub-agent's among them. One message arrives as several events with
    the same id, one for each block."""
    messages: list[Message] = []
    last_id = ""
    for event in events:
        message = event.object("message")
        if event.type != "assistant" or message.value("model") == _SYNTHETIC:
            continue
        name = "subagent" if isinstance(event.value("parent_tool_use_id"), str) else None
        part = _message(message, name)
        if message.text("id") and message.text("id") == last_id:
            before = messages.pop()
            both = "\n".join(filter(None, (str(before.content), str(part.content))))
            part = replace(part, content=both, tool_calls=(*before.tool_calls, *part.tool_calls))
        last_id = message.text("id")
        messages.append(part)
    return messages


def _message(message: Event, name: str | None) -> Message:
    content = message.value("content")
    if isinstance(content, str):
        return Message("assistant", content, name)
    blocks = message.objects("content")
    text = "\n".join(block.text("text") for block in blocks if block.type == "text")
    calls = tuple(
        agent_events.common_call(
            block.text("name"), block.value("input"), block.text("id"), _NAMES, {}
        )
        for block in blocks
        if block.type.endswith("tool_use") and block.text("name")
    )
    return Message("assistant", text, name, tool_calls=calls)


def _results(events: Sequence[Event], denied: Collection[str]) -> Mapping[str, ToolResult]:
    """The results of tool calls, by id. The duration is as reported, else the time between the
    events of the call and of the result."""
    started: dict[str, Event] = {}
    results: dict[str, ToolResult] = {}
    for event in events:
        blocks = event.object("message").objects("content")
        started |= {block.text("id"): event for block in blocks if "input" in block}
        ended = [block for block in blocks if block.type.endswith("tool_result")]
        for block in ended:
            call_id, output = block.text("tool_use_id"), _output(block)
            duration = _reported_duration(event) if len(ended) == 1 else None
            if duration is None and (start := started.get(call_id)):
                duration = agent_events.milliseconds_between(start, event)
            refused = call_id in denied or str(output).startswith(_UNKNOWN_TOOL)
            results[call_id] = ToolResult(output, duration, refused)
    return results


def _reported_duration(event: Event) -> float | None:
    details = event.object("tool_use_result")
    return next((details.amount(name) for name in _DURATIONS if name in details), None)


def _output(block: Event) -> Any:
    """The text of a result if it contains only text, else the result unchanged."""
    content, parts = block.value("content"), block.objects("content")
    if isinstance(content, list) and len(parts) == len(content):
        texts = [part.value("text") for part in parts]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(texts)
    return content
