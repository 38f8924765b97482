"""The Responses format of OpenAI's API: a conversation as items in, a response out.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from agentevals_action.model.suite import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import Picture
from agentevals_action.targets.apis.openai_chat import (
    decode_arguments,
    encode_arguments,
)
from agentevals_action.targets.reply_model import IfValid, ModelReply, ReplyModel, Tokens, at

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")
_COMPLETED = (None, "completed", "incomplete")
_TEMPORARY = ("server_error", "rate_limit_exceeded", "vector_store_timeout")
#: Fields of a call of the vendor's own tool that are not its arguments.
_NOT_ARGUMENTS = frozenset(
    {"id", "call_id", "type", "status", "name", "output", "outputs", "result", "results", "error"}
)


class TemporaryFailure(ValueError):
    """A response that failed for a temporary reason; `limited`: the rate limit."""

    def __init__(self, message: str, limited: bool) -> None:
        super().__init__(message)
        self.limited = limited


def conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `instructions` (the system messages at the beginning) and `input` of a request;
    ValueError or OSError if something cannot be sent. It has no field for names of participants."""
    linked = alternating_turns.link_calls(messages)
    first = next(
        (index for index, message in enumerate(linked) if message.role != "system"), len(linked)
    )
    instructions = alternating_turns.system_text(linked[:first])
    items = [item for message in linked[first:] for item in _items(message)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _items(message: Message) -> Iterator[dict[str, Any]]:
    content = alternating_turns.text_or_parts(message, _ROLES_WITH_PICTURES, _part)
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
            "arguments": encode_arguments(call),
        }


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "detail": "auto", "image_url": part.uri}


class _Part(ReplyModel):
    text: IfValid[str] = None
    refusal: IfValid[str] = None


class _MessageItem(ReplyModel):
    content: str | list[_Part]

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text or part.refusal or "" for part in self.content)


class _CallItem(ReplyModel):
    id: IfValid[str] = None
    call_id: IfValid[str] = None
    name: IfValid[str] = None
    output: Any = None


class _Response(ModelReply):
    object: Literal["response"] = "response"
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    error: IfValid[dict[str, Any]] = None
    error_code: IfValid[str] = at("error", "code")
    error_message: IfValid[str] = at("error", "message")
    incomplete_reason: IfValid[str] = at("incomplete_details", "reason")
    input_tokens: Tokens = at("usage", "input_tokens")
    output_tokens: Tokens = at("usage", "output_tokens")
    cached_tokens: Tokens = at("usage", "input_tokens_details", "cached_tokens")
    cache_write_tokens: Tokens = at("usage", "input_tokens_details", "cache_write_tokens")


def read_response(data: Any) -> Trace:
    """The trace of a response without its reasoning: each message has the calls that follow it.
    ValueError if it is not one, failed, was filtered or is empty; TemporaryFailure."""
    response = _Response.parse(data, "a response")
    reason = response.incomplete_reason
    if response.error is not None or response.status not in _COMPLETED:
        code = response.error_code
        details = "".join(f": {part}" for part in (code, response.error_message) if part)
        problem = f"the response was not completed (status {response.status!r}){details}"
        if code in _TEMPORARY:
            raise TemporaryFailure(problem, limited=code == "rate_limit_exceeded")
        raise ValueError(problem)
    if reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    if response.output is None:
        raise ValueError("the reply is not a response: `output` is missing")
    messages = _messages(response.output)
    if not messages:
        status = f"{response.status!r}, {reason}" if reason else repr(response.status)
        raise ValueError(f"the reply is empty (status {status})")
    return response.trace(messages)


def _messages(items: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    messages: list[tuple[str, list[ToolCall]]] = []
    for item in items:
        item_type = str(item.get("type"))
        if item_type == "message":
            text = _MessageItem.parse(item, "a response with a valid message").text
            messages.append((text, []))
        elif item_type.endswith("_call"):
            if not messages:
                messages.append(("", []))
            messages[-1][1].append(read_call(item_type, item))
    return tuple(
        Message("assistant", text, tool_calls=tuple(calls))
        for text, calls in messages
        if text or calls
    )


def read_call(item_type: str, item: Mapping[str, Any]) -> ToolCall:
    """The call in an item of a type that ends with `_call`; ValueError if it has no name."""
    call = _CallItem.parse(item, "a response with a valid call")
    if call.name is None and item_type in ("function_call", "custom_tool_call", "mcp_call"):
        raise ValueError(f"a {item_type} of the reply has no name")
    if "arguments" in item:
        arguments = decode_arguments(item["arguments"])
    elif "input" in item:
        arguments = item["input"]
    else:
        arguments = {key: value for key, value in item.items() if key not in _NOT_ARGUMENTS}
    name = call.name or item_type.removesuffix("_call")
    return ToolCall(name, arguments, call.output, call.call_id or call.id)
