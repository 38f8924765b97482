"""The chat wire form of OpenAI's API and of all that speak it: messages there, a completion
back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model import json_values
from agentevals_action.model.messages import content_text
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis import alternating_turns
from agentevals_action.targets.apis.images import data_uri


class EmptyReply(ValueError):
    """A reply that is what it has to be, and says nothing at all."""


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as a request carries them, every tool call with an id and every tool message with
    the one that it answers.

    ValueError when a file is no text or an image no picture, or stands where models take none, or a
    tool message answers no call; OSError when a file cannot be read."""
    return [_wire(message) for message in alternating_turns.linked(messages)]


def _wire(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id
    elif message.name is not None:
        data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    return data


def _content(message: Message) -> str | list[dict[str, Any]]:
    blocks = message.content
    if isinstance(blocks, str) or not any(block.type == "image" for block in blocks):
        return content_text(message)
    if message.role != "user":
        raise ValueError(
            f"a picture in a {message.role} message cannot be sent; put it into a user message"
        )
    return list(_parts(blocks))


def _parts(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block.type == "image":
            yield {"type": "image_url", "image_url": {"url": data_uri(block)}}
        else:
            yield {"type": "text", "text": content_text(Message("user", (block,)))}


def _wire_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": encoded_arguments(call)},
    }


def encoded_arguments(call: ToolCall) -> str:
    """A tool call's arguments as the string of JSON that the API wants."""
    return json.dumps(call.arguments if call.arguments is not None else {}, ensure_ascii=False)


def read_completion(data: Any) -> Trace:
    """The trace of a chat completion; ValueError when it is none or was filtered, EmptyReply when
    it says nothing."""
    choices = data.get("choices") if isinstance(data, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise ValueError("the reply is no chat completion: it has no choices[0].message")
    if choice.get("finish_reason") == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    calls = _calls(message.get("tool_calls"))
    text = _text(message)
    if not text and not calls:
        raise EmptyReply(f"the reply is empty (finish_reason {choice.get('finish_reason')!r})")
    usage = json_values.members(data.get("usage"))
    return Trace(
        messages=(Message("assistant", text, tool_calls=calls),),
        tool_calls=calls,
        llm_call_count=1,
        input_tokens=json_values.count(usage.get("prompt_tokens")),
        output_tokens=json_values.count(usage.get("completion_tokens")),
        cached_tokens=json_values.count(
            json_values.members(usage.get("prompt_tokens_details")).get("cached_tokens")
        ),
    )


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        )
    if content is not None and not isinstance(content, str):
        raise ValueError("the reply's content is no text")
    refusal = message.get("refusal")
    return content or (refusal if isinstance(refusal, str) else "")


def _calls(calls: Any) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise ValueError("the reply's tool_calls are no list")
    return tuple(_read_call(call) for call in calls)


def _read_call(call: Any) -> ToolCall:
    wired = json_values.members(call)
    function, custom, own_id = (
        json_values.members(wired.get("function")),
        json_values.members(wired.get("custom")),
        wired.get("id"),
    )
    name = function.get("name", custom.get("name"))
    if not isinstance(name, str):
        raise ValueError("a tool call of the reply has no function.name")
    arguments = decoded_arguments(function.get("arguments")) if function else custom.get("input")
    return ToolCall(name=name, arguments=arguments, id=own_id if isinstance(own_id, str) else None)


def decoded_arguments(text: Any) -> Any:
    """A tool call's arguments decoded. Broken ones are the model's mistake and for the evaluators
    to see: they stay the text they are."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
