"""The Responses wire form of OpenAI's API: a conversation there as items, a response back.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.messages import content_text
from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture
from agentevals_action.targets.apis.openai_chat import (
    EmptyReply,
    decoded_arguments,
    encoded_arguments,
)

_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")
_WHOLE = (None, "completed", "incomplete")
_PASSING = ("server_error", "rate_limit_exceeded", "vector_store_timeout")
#: What an item of a tool that the vendor ran itself says beside the arguments of the call.
_ABOUT = frozenset(
    {"id", "call_id", "type", "status", "name", "output", "outputs", "result", "results", "error"}
)


class PassingFailure(ValueError):
    """A response that failed for a reason that passes: `limited` when it is the rate limit."""

    def __init__(self, message: str, limited: bool) -> None:
        super().__init__(message)
        self.limited = limited


def conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `instructions` (the system messages that it begins with) and `input` of a request;
    names of participants have no place in it.

    ValueError when something cannot be sent (a file that is no text, a picture from the system or
    the assistant, a tool message that answers no call), OSError when a file cannot be read."""
    whole = alternating_turns.linked(messages)
    first = next(
        (place for place, message in enumerate(whole) if message.role != "system"), len(whole)
    )
    instructions = alternating_turns.system_text(whole[:first])
    items = [item for message in whole[first:] for item in _items(message)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _items(message: Message) -> Iterator[dict[str, Any]]:
    content = _content(message)
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": content}
        return
    if content or not message.tool_calls:
        yield {"role": message.role, "content": content}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": encoded_arguments(call),
        }


def _content(message: Message) -> str | list[dict[str, Any]]:
    parts = list(alternating_turns.parts(message, _WITH_PICTURES))
    if not any(isinstance(part, Picture) for part in parts):
        return content_text(message)
    return [_part(part) for part in parts]


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "detail": "auto", "image_url": part.uri}


def read_response(data: Any) -> Trace:
    """The trace of a response; ValueError when it is none, failed or was filtered, EmptyReply when
    it says nothing, PassingFailure when another try may do better.

    Reasoning is no part of the answer. Each message is one of the trace's, with the calls that
    follow it; tools that the vendor ran itself count as tool calls."""
    items = data.get("output") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or data.get("object", "response") != "response":
        raise ValueError("the reply is no response")
    _refuse_failure(data)
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ValueError("the reply is no response: it has no list of items as `output`")
    messages = _messages(items)
    calls = tuple(call for message in messages for call in message.tool_calls)
    if not messages:
        raise EmptyReply(f"the reply is empty (status {_status(data)})")
    usage = json_values.members(data.get("usage"))
    return Trace(
        messages=messages,
        tool_calls=calls,
        llm_call_count=1,
        input_tokens=json_values.count(usage.get("input_tokens")),
        output_tokens=json_values.count(usage.get("output_tokens")),
        cached_tokens=json_values.count(
            json_values.members(usage.get("input_tokens_details")).get("cached_tokens")
        ),
    )


def _status(data: Mapping[str, Any]) -> str:
    reason = json_values.members(data.get("incomplete_details")).get("reason")
    return (
        f"{data.get('status')!r}, {reason}" if isinstance(reason, str) else repr(data.get("status"))
    )


def _refuse_failure(data: Mapping[str, Any]) -> None:
    error = json_values.members(data.get("error"))
    if error or data.get("status") not in _WHOLE:
        code, message = error.get("code"), error.get("message")
        said = ": ".join(part for part in (code, message) if isinstance(part, str))
        told = f"the response was not completed (status {data.get('status')!r})" + (
            f": {said}" if said else ""
        )
        if code in _PASSING:
            raise PassingFailure(told, limited=code == "rate_limit_exceeded")
        raise ValueError(told)
    if json_values.members(data.get("incomplete_details")).get("reason") == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")


def _messages(items: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    told: list[tuple[str, list[ToolCall]]] = []
    for item in items:
        kind = str(item.get("type"))
        if kind == "message":
            told.append((_text(item.get("content")), []))
        elif kind.endswith("_call"):
            if not told:
                told.append(("", []))
            told[-1][1].append(_read_call(kind, item))
    return tuple(
        Message("assistant", text, tool_calls=tuple(calls)) for text, calls in told if text or calls
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError("the reply's content is no list of parts")
    parts = [json_values.members(part) for part in content]
    said = (part.get("text", part.get("refusal")) for part in parts)
    return "".join(text for text in said if isinstance(text, str))


def _read_call(kind: str, item: Mapping[str, Any]) -> ToolCall:
    own_id, name = item.get("call_id", item.get("id")), item.get("name")
    if kind in ("function_call", "custom_tool_call", "mcp_call") and not isinstance(name, str):
        raise ValueError(f"a {kind} of the reply has no name")
    if "arguments" in item:
        arguments = decoded_arguments(item["arguments"])
    elif "input" in item:
        arguments = item["input"]
    else:
        arguments = {key: value for key, value in item.items() if key not in _ABOUT}
    return ToolCall(
        name=name if isinstance(name, str) else kind.removesuffix("_call"),
        arguments=arguments,
        output=item.get("output"),
        id=own_id if isinstance(own_id, str) else None,
    )
