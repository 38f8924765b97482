"""Pure: the stream of `claude -p --output-format stream-json --verbose` as a trace.

Messages as the API gives them, tool results as messages of the user, at the end a `result` with
usage, cost and duration: https://code.claude.com/docs/en/headless and
https://platform.claude.com/docs/en/agent-sdk/typescript#message-types"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents import stream as agent_stream
from agentevals_action.targets.agents.stream import Event, Failure, Finished, Outcome, Weight

#: What the CLI puts into an assistant message's `error` when the API refused, and what that means.
_REFUSALS: Mapping[str, Weight] = {
    "authentication_failed": "dead",
    "oauth_org_not_allowed": "dead",
    "billing_error": "dead",
    "model_not_found": "dead",
    "rate_limit": "limited",
    "overloaded": "transient",
    "server_error": "transient",
}
#: How it says in words that it has no login, or a wrong one.
_NO_LOGIN = ("please run /login", "invalid api key", "not logged in", "failed to authenticate")
_SYNTHETIC = "<synthetic>"  # the model of messages that the CLI wrote itself


def read(events: Sequence[Event]) -> Outcome:
    """What a run told."""
    spoken = _spoken(events)
    messages = agent_stream.with_ends([message for _, message in spoken], _ends(events))
    result = next((event for event in reversed(events) if event["type"] == "result"), None)
    if result is None:
        return Outcome(
            Trace(messages, agent_stream.calls_of(messages)), ended=False, failure=_refused(events)
        )
    usage = agent_stream.member(result, "usage")
    fresh, written, cached, given = (
        json_values.count(usage.get(name))
        for name in (
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
            "output_tokens",
        )
    )
    messages = agent_stream.with_answer(messages, agent_stream.text(result.get("result")))
    trace = Trace(
        messages=messages,
        tool_calls=agent_stream.calls_of(messages),
        llm_call_count=len(spoken) or len(messages),
        # The API's `input_tokens` are those after the last cache breakpoint: in are all three kinds
        # together, as a price is per token in.
        input_tokens=None if fresh is None else fresh + (written or 0) + (cached or 0),
        output_tokens=given,
        cached_tokens=cached,
        cost_usd=agent_stream.amount(result.get("total_cost_usd")),
        duration_ms=agent_stream.amount(result.get("duration_ms")),
    )
    return Outcome(trace, ended=True, failure=_failed(result, events))


def _spoken(events: Sequence[Event]) -> list[tuple[str, Message]]:
    """The model's messages with their ids. One message comes as several events, a block each; a
    sub-agent's stand among them."""
    spoken: list[tuple[str, Message]] = []
    for event in events:
        message = agent_stream.member(event, "message")
        if event["type"] != "assistant" or message.get("model") == _SYNTHETIC:
            continue
        name = "subagent" if isinstance(event.get("parent_tool_use_id"), str) else None
        part = _message(message.get("content"), name)
        own_id = agent_stream.text(message.get("id"))
        if spoken and own_id and spoken[-1][0] == own_id:
            before = spoken.pop()[1]
            both = "\n".join(filter(None, (str(before.content), str(part.content))))
            part = replace(part, content=both, tool_calls=(*before.tool_calls, *part.tool_calls))
        spoken.append((own_id, part))
    return spoken


def _message(content: Any, name: str | None) -> Message:
    if isinstance(content, str):
        return Message("assistant", content, name)
    blocks = agent_stream.objects(content)
    text = "\n".join(
        agent_stream.text(block.get("text")) for block in blocks if block.get("type") == "text"
    )
    calls = tuple(
        ToolCall(block["name"], block.get("input"), id=agent_stream.text(block.get("id")) or None)
        for block in blocks
        if agent_stream.text(block.get("type")).endswith("tool_use")
        and isinstance(block.get("name"), str)
    )
    return Message("assistant", text, name, tool_calls=calls)


def _ends(events: Sequence[Event]) -> Mapping[str, Finished]:
    """How tool calls ended, by id. They took as long as their result says, else what passed between
    the two events."""
    begun: dict[str, Any] = {}
    ends: dict[str, Finished] = {}
    for event in events:
        blocks = agent_stream.objects(agent_stream.member(event, "message").get("content"))
        begun.update(
            {
                agent_stream.text(block.get("id")): event.get("timestamp")
                for block in blocks
                if "input" in block
            }
        )
        results = [
            block
            for block in blocks
            if agent_stream.text(block.get("type")).endswith("tool_result")
        ]
        for block in results:
            own_id = agent_stream.text(block.get("tool_use_id"))
            # What the event says of the result beside it is of one call.
            said = agent_stream.member(event, "tool_use_result") if len(results) == 1 else {}
            told = next(
                (
                    agent_stream.amount(said[name])
                    for name in ("durationMs", "totalDurationMs")
                    if name in said
                ),
                None,
            )
            took = (
                agent_stream.milliseconds(begun.get(own_id), event.get("timestamp"))
                if told is None
                else told
            )
            ends[own_id] = Finished(_output(block.get("content")), took)
    return ends


def _output(content: Any) -> Any:
    """A result's text where it is nothing but text, else as it came."""
    blocks = agent_stream.objects(content)
    if (
        isinstance(content, list)
        and len(blocks) == len(content)
        and all(isinstance(block.get("text"), str) for block in blocks)
    ):
        return "\n".join(block["text"] for block in blocks)
    return content


def _failed(result: Event, events: Sequence[Event]) -> Failure | None:
    kind = agent_stream.text(result.get("subtype"))
    if result.get("is_error") is not True and not kind.startswith("error"):
        return None
    listed = result.get("errors")
    told = [error for error in listed if isinstance(error, str)] if isinstance(listed, list) else []
    message = (
        agent_stream.text(result.get("result")) or "; ".join(told) or f"it stopped with `{kind}`"
    )
    if (refused := _refused(events)) is not None:
        return agent_stream.failure(message, weight=refused.weight)
    if any(words in message.lower() for words in _NO_LOGIN):
        return agent_stream.failure(message, weight="dead")
    return agent_stream.failure(message, json_values.count(result.get("api_error_status")))


def _refused(events: Sequence[Event]) -> Failure | None:
    """What the last message says of a refusal, when the CLI wrote it because the API refused."""
    last = next((event for event in reversed(events) if event["type"] == "assistant"), {})
    error = agent_stream.text(last.get("error"))
    if not error:
        return None
    said = _message(agent_stream.member(last, "message").get("content"), None).content
    if error in _REFUSALS:
        return agent_stream.failure(str(said) or error, weight=_REFUSALS[error])
    return agent_stream.failure(str(said) or error)
