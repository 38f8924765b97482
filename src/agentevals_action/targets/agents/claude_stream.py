"""The stream of `claude -p --output-format stream-json --verbose` as a trace.

It contains messages in the form of the API, tool results as messages of the user, and at the end a
`result` with usage, cost and duration: https://code.claude.com/docs/en/headless and
https://platform.claude.com/docs/en/agent-sdk/typescript#message-types"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents.stream import (
    Event,
    Failure,
    Finished,
    Outcome,
    Severity,
    add_answer,
    add_results,
    calls_of,
    failure,
    last,
    milliseconds,
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
_NO_LOGIN = ("please run /login", "invalid api key", "not logged in", "failed to authenticate")
_SYNTHETIC = "<synthetic>"  # the model of messages that the CLI itself wrote
_DURATIONS = ("durationMs", "totalDurationMs")


def read(events: Sequence[Event]) -> Outcome:
    """The outcome of a run."""
    spoken = add_results(_messages(events), _results(events))
    result = last(events, "result")
    if result is None:
        trace = Trace(spoken, calls_of(spoken))
        return Outcome(trace, ended=False, failure=_refusal(events))
    usage = result.object("usage")
    fresh, cached = usage.count("input_tokens"), usage.count("cache_read_input_tokens")
    written = usage.count("cache_creation_input_tokens")
    messages = add_answer(spoken, result.text("result"))
    trace = Trace(
        messages=messages,
        tool_calls=calls_of(messages),
        llm_call_count=len(spoken) or len(messages),
        # The API's `input_tokens` are those after the last cache breakpoint; a price applies to the
        # sum of all three.
        input_tokens=None if fresh is None else fresh + (written or 0) + (cached or 0),
        output_tokens=usage.count("output_tokens"),
        cached_tokens=cached,
        cost_usd=result.amount("total_cost_usd"),
        duration_ms=result.amount("duration_ms"),
    )
    return Outcome(trace, ended=True, failure=_failure(result, events))


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
        ToolCall(block.text("name"), block.value("input"), id=block.text("id") or None)
        for block in blocks
        if block.type.endswith("tool_use") and isinstance(block.value("name"), str)
    )
    return Message("assistant", text, name, tool_calls=calls)


def _results(events: Sequence[Event]) -> Mapping[str, Finished]:
    """The results of tool calls, by id. The duration is as reported, else the time between the
    events of the call and of the result."""
    started: dict[str, Any] = {}
    finished: dict[str, Finished] = {}
    for event in events:
        blocks = event.object("message").objects("content")
        started |= {
            block.text("id"): event.value("timestamp") for block in blocks if "input" in block
        }
        results = [block for block in blocks if block.type.endswith("tool_result")]
        for block in results:
            own_id = block.text("tool_use_id")
            took = _reported_duration(event) if len(results) == 1 else None
            if took is None:
                took = milliseconds(started.get(own_id), event.value("timestamp"))
            finished[own_id] = Finished(_output(block), took)
    return finished


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


def _failure(result: Event, events: Sequence[Event]) -> Failure | None:
    subtype = result.text("subtype")
    if result.value("is_error") is not True and not subtype.startswith("error"):
        return None
    listed = result.value("errors")
    errors = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    message = result.text("result") or "; ".join(errors) or f"it stopped with `{subtype}`"
    if (refusal := _refusal(events)) is not None:
        return failure(message, severity=refusal.severity)
    if any(words in message.lower() for words in _NO_LOGIN):
        return failure(message, severity="dead")
    return failure(message, result.count("api_error_status"))


def _refusal(events: Sequence[Event]) -> Failure | None:
    event = last(events, "assistant") or Event(None)
    error = event.text("error")
    if not error:
        return None
    message = str(_message(event.object("message"), None).content) or error
    return failure(message, severity=_REFUSALS.get(error))
