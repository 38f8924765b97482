"""The chat wire form of OpenAI's API and of all that speak it: messages there, a completion back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.images import data_uri
from agentevals_action.messages import content_text
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as a request carries them; a tool call without an id gets one, and the tool messages after it, in order, answer it.

    ValueError when a file is no text or an image no picture, or stands where models take none; OSError when it cannot be read.
    """
    wired: list[dict[str, Any]] = []
    unanswered: list[str] = []
    for place, message in enumerate(messages):
        data: dict[str, Any] = {"role": message.role, "content": _content(message)}
        if message.role == "tool":
            wanted = message.tool_call_id or (unanswered[0] if unanswered else f"call_{place}")
            unanswered = [name for name in unanswered if name != wanted]
            data["tool_call_id"] = wanted
        elif message.name is not None:
            data["name"] = message.name
        if message.tool_calls:
            calls = [_wire_call(call, f"call_{place}_{number}") for number, call in enumerate(message.tool_calls)]
            unanswered = [call["id"] for call in calls]
            data["tool_calls"] = calls
        wired.append(data)
    return wired


def _content(message: Message) -> str | list[dict[str, Any]]:
    blocks = message.content
    if isinstance(blocks, str) or not any(block.type == "image" for block in blocks):
        return content_text(message)
    if message.role != "user":
        raise ValueError(f"a picture in a {message.role} message cannot be sent; put it into a user message")
    return list(_parts(blocks))


def _parts(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block.type == "image":
            yield {"type": "image_url", "image_url": {"url": data_uri(block)}}
        else:
            yield {"type": "text", "text": content_text(Message("user", (block,)))}


def _wire_call(call: ToolCall, own_id: str) -> dict[str, Any]:
    arguments = json.dumps(call.arguments if call.arguments is not None else {}, ensure_ascii=False)
    return {"id": call.id or own_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def read_completion(data: Any) -> Trace:
    """The trace of a chat completion; ValueError when it is none, was filtered, or says nothing at all."""
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
        raise ValueError(f"the reply is empty (finish_reason {choice.get('finish_reason')!r})")
    usage = _object(data.get("usage"))
    return Trace(
        messages=(Message("assistant", text, tool_calls=calls),),
        tool_calls=calls,
        llm_call_count=1,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(_object(usage.get("prompt_tokens_details")).get("cached_tokens")),
    )


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str))
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
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError("a tool call of the reply has no function.name")
    own_id = call.get("id")
    return ToolCall(name=function["name"], arguments=_arguments(function.get("arguments")), id=own_id if isinstance(own_id, str) else None)


def _arguments(text: Any) -> Any:
    """Arguments decoded. Broken ones are the model's mistake and for the evaluators to see: they stay the text that they are."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    """A count, None where there is none: servers differ in what they report, and unknown is not zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
