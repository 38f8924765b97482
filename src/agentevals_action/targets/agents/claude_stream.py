"""The stream of `claude -p --output-format stream-json --verbose` as a trace.

It contains messages in the form of the API, tool results as messages of the user, and at the end a
`result` with usage, cost, duration and the calls that were refused:
https://code.claude.com/docs/en/headless and
https://platform.claude.com/docs/en/agent-sdk/typescript#message-types

The usage of the `result` leaves out sub-agents; its `modelUsage` has all tokens. The last message
of a sub-agent is not in the stream, only its usage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.agents import stream
from agentevals_action.targets.agents.stream import (
    Failure,
    Finished,
    Severity,
    StreamContent,
    StreamEvent,
)

#: The values of an assistant message's `error` if the API refused the call.
_REFUSALS: Mapping[str, Severity] = {
    "authentication_failed": "dead",
    "oauth_org_not_allowed": "dead",
    "billing_error": "dead",
    "model_not_found": "dead",
    "rate_limit": "limited",
    "overloaded": "transient",
    "server_error": "transient",
}
#: Parts of its messages about a missing or wrong login.
_NO_CREDIT = ("exceeded your current quota", "credit balance is too low")
_NO_LOGIN = ("please run /login", "invalid api key", "not logged in", "failed to authenticate")
_SYNTHETIC = "<synthetic>"  # the model of messages that the CLI itself wrote
_DURATIONS = ("durationMs", "totalDurationMs")
_NAMES = {"Task": "Agent"}  # of earlier versions
_UNKNOWN_TOOL = "<tool_use_error>Error: No such tool available"
_TOKENS_IN = (
    ("inputTokens", "input_tokens"),
    ("cacheCreationInputTokens", "cache_creation_input_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
)


def read(events: Sequence[StreamEvent]) -> StreamContent:
    """The outcome of a run."""
    result = stream.last(events, "result")
    denials = (result or StreamEvent(None)).objects("permission_denials")
    results = _results(events, {denial.text("tool_use_id") for denial in denials})
    spoken = stream.add_results(_messages(events), results)
    if result is None:
        trace = Trace(spoken, stream.calls_of(spoken))
        failure = _refusal(events) or _failed_retry(events)
        return StreamContent(trace, ended=False, failure=failure)
    messages = stream.add_answer(spoken, result.text("result"))
    trace = Trace(
        messages=messages,
        tool_calls=stream.calls_of(messages),
        usage=Usage(cost_usd=result.amount("total_cost_usd")),
        duration_ms=result.amount("duration_ms"),
    )
    trace = _with_usage(trace, result, events)
    return StreamContent(trace, ended=True, failure=_failure(result, events))


def _failed_retry(events: Sequence[StreamEvent]) -> Failure | None:
    """The failure for which the CLI tries again in vain at the end of the events."""
    event = stream.last(events, "system", "assistant", "user")
    if event is None or event.text("subtype") != "api_retry":
        return None
    status, error = event.count("error_status"), event.text("error")
    if status not in (401, 403) and _REFUSALS.get(error) != "dead":
        return None
    cause = " ".join(filter(None, (str(status or ""), error)))
    return stream.failure(f"the API refused the call ({cause})", severity="dead")


def _with_usage(trace: Trace, result: StreamEvent, events: Sequence[StreamEvent]) -> Trace:
    """The trace with the tokens of all models, and the number of model calls if the stream shows
    the input of every one: its tokens must add up to the total."""
    models = result.objects("modelUsage")
    names = [new if models else old for new, old in _TOKENS_IN]
    used = models or [result.object("usage")]
    fresh = _sum(used, names[:1])
    # The API's input tokens are those after the last cache breakpoint; a price applies to the sum.
    total = None if fresh is None else _sum(used, names)
    calls = [event.object("message") for event in events if event.type == "assistant"]
    shown = {
        call.text("id"): call.object("usage") for call in calls if call.value("model") != _SYNTHETIC
    }
    reports = [event.object("tool_use_result") for event in events if event.type == "user"]
    last_calls = [report.object("usage") for report in reports if report.text("agentId")]
    usages = [*shown.values(), *last_calls]
    is_complete = bool(total) and _sum(usages, [old for _, old in _TOKENS_IN]) == total
    return replace(
        trace,
        llm_call_count=len(usages) if is_complete else None,
        usage=replace(
            trace.usage,
            input_tokens=total,
            output_tokens=_sum(used, ["outputTokens" if models else "output_tokens"]),
            cached_tokens=_sum(used, names[2:]),
        ),
    )


def _sum(usages: Sequence[StreamEvent], names: Sequence[str]) -> int | None:
    counts = [count for one in usages for name in names if (count := one.count(name)) is not None]
    return sum(counts) if counts else None


def _messages(events: Sequence[StreamEvent]) -> list[Message]:
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


def _message(message: StreamEvent, name: str | None) -> Message:
    content = message.value("content")
    if isinstance(content, str):
        return Message("assistant", content, name)
    blocks = message.objects("content")
    text = "\n".join(block.text("text") for block in blocks if block.type == "text")
    calls = tuple(
        ToolCall(
            _NAMES.get(block.text("name"), block.text("name")),
            block.value("input"),
            id=block.text("id") or None,
        )
        for block in blocks
        if block.type.endswith("tool_use") and isinstance(block.value("name"), str)
    )
    return Message("assistant", text, name, tool_calls=calls)


def _results(events: Sequence[StreamEvent], denied: Collection[str]) -> Mapping[str, Finished]:
    """The results of tool calls, by id. The duration is as reported, else the time between the
    events of the call and of the result."""
    started: dict[str, StreamEvent] = {}
    finished: dict[str, Finished] = {}
    for event in events:
        blocks = event.object("message").objects("content")
        started |= {block.text("id"): event for block in blocks if "input" in block}
        results = [block for block in blocks if block.type.endswith("tool_result")]
        for block in results:
            own_id, output = block.text("tool_use_id"), _output(block)
            took = _reported_duration(event) if len(results) == 1 else None
            if took is None and (start := started.get(own_id)):
                took = stream.milliseconds(start.value("timestamp"), event.value("timestamp"))
                took = stream.milliseconds_between(start, event) if took is None else took
            refused = own_id in denied or str(output).startswith(_UNKNOWN_TOOL)
            finished[own_id] = Finished(output, took, refused)
    return finished


def _reported_duration(event: StreamEvent) -> float | None:
    details = event.object("tool_use_result")
    return next((details.amount(name) for name in _DURATIONS if name in details), None)


def _output(block: StreamEvent) -> Any:
    """The text of a result if it contains only text, else the result unchanged."""
    content, parts = block.value("content"), block.objects("content")
    if isinstance(content, list) and len(parts) == len(content):
        texts = [part.value("text") for part in parts]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(texts)
    return content


def _failure(result: StreamEvent, events: Sequence[StreamEvent]) -> Failure | None:
    subtype = result.text("subtype")
    if result.value("is_error") is not True and not subtype.startswith("error"):
        return None
    listed = result.value("errors")
    errors = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    message = result.text("result") or "; ".join(errors) or f"it stopped with `{subtype}`"
    if any(words in message.lower() for words in (*_NO_LOGIN, *_NO_CREDIT)):
        return stream.failure(message, severity="dead")
    if (refusal := _refusal(events)) is not None:
        return stream.failure(message, severity=refusal.severity)
    return stream.failure(message, result.count("api_error_status"))


def _refusal(events: Sequence[StreamEvent]) -> Failure | None:
    event = stream.last(events, "assistant") or StreamEvent(None)
    error = event.text("error")
    if not error:
        return None
    message = str(_message(event.object("message"), None).content) or error
    return stream.failure(message, severity=_REFUSALS.get(error))
