"""The wire form of Anthropic's Messages API: a conversation there, a message back.

https://platform.claude.com/docs/en/api/messages
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture

_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")


def conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `system` and `messages` of a request; names of participants have no place in it.

    ValueError when something cannot be sent (a file that is no text, a picture from the assistant,
    arguments that are no object), OSError when a file cannot be read."""
    whole = alternating_turns.linked(messages)
    system = alternating_turns.system_text(whole)
    spoken = [
        {"role": side, "content": [block for message in together for block in _blocks(message)]}
        for side, together in alternating_turns.sides(whole)
    ]
    return {"system": system, "messages": spoken} if system else {"messages": spoken}


def _blocks(message: Message) -> Iterator[dict[str, Any]]:
    own = [_block(part) for part in alternating_turns.parts(message, _WITH_PICTURES)]
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": own}
        return
    yield from own
    for call in message.tool_calls:
        yield {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": alternating_turns.arguments(call),
        }


def _block(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": part.media_type, "data": part.data},
    }


def read_message(data: Any) -> Trace:
    """The trace of a message; ValueError when it is none, was refused or paused, or says nothing at
    all.

    Thinking is no part of the answer. Tools that the vendor ran itself count as tool calls, with
    their output."""
    content = data.get("content") if isinstance(data, Mapping) else None
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise ValueError("the reply is no message: it has no list of blocks as `content`")
    reason = data.get("stop_reason")
    if reason == "refusal":
        raise ValueError(_refusal(json_values.members(data.get("stop_details"))))
    if reason == "pause_turn":
        raise ValueError(
            "the vendor paused the turn before the answer was whole (pause_turn); let its tools be used less often"
        )
    text = "".join(
        block["text"]
        for block in content
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    )
    calls = _calls(content)
    if not text and not calls:
        advice = "; raise `max_tokens` in `config`" if reason == "max_tokens" else ""
        raise ValueError(f"the reply is empty (stop_reason {reason!r}){advice}")
    tokens_in, tokens_out, cached = _tokens(data.get("usage"))
    return Trace(
        messages=(Message("assistant", text, tool_calls=calls),),
        tool_calls=calls,
        llm_call_count=1,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_tokens=cached,
    )


def _refusal(details: Mapping[str, Any]) -> str:
    said = [
        details[name] for name in ("category", "explanation") if isinstance(details.get(name), str)
    ]
    return ": ".join(("the model's vendor refused to answer (stop_reason 'refusal')", *said))


def _calls(content: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """The blocks `tool_use`, and `server_tool_use` and `mcp_tool_use` with what their
    `…_tool_result` says."""
    outputs = {
        block.get("tool_use_id"): block.get("content")
        for block in content
        if str(block.get("type")).endswith("tool_result")
    }
    calls = []
    for block in content:
        if not str(block.get("type")).endswith("tool_use"):
            continue
        name, own_id = block.get("name"), block.get("id")
        if not isinstance(name, str):
            raise ValueError("a tool call of the reply has no name")
        call_id = own_id if isinstance(own_id, str) else None
        calls.append(
            ToolCall(name, block.get("input"), outputs.get(call_id) if call_id else None, call_id)
        )
    return tuple(calls)


def _tokens(usage: Any) -> tuple[int | None, int | None, int | None]:
    """Tokens in, out, and read from the vendor's cache.

    In are all three kinds together, as a price is per token in: the API's `input_tokens` are only
    those after the last cache breakpoint.
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching#tracking-cache-performance
    """
    told = json_values.members(usage)
    fresh, written, read = (
        json_values.count(told.get(name))
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    )
    tokens_in = None if fresh is None else fresh + (written or 0) + (read or 0)
    return tokens_in, json_values.count(told.get("output_tokens")), read
