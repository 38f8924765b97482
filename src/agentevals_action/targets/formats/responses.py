"""The Responses format of OpenAI's API, and its items as `result.to_input_list()` of openai-agents
returns them. Items contain no tokens.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.messages import Message, Role
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests, role_messages
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.blocks import (
    is_call,
    is_known,
    is_result,
    read_call,
    read_result,
)
from agentevals_action.targets.formats.requests import Picture

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")
_COMPLETED = (None, "completed", "incomplete")
#: The types of parts that only this API has.
_PARTS = ("input_text", "output_text", "input_image", "input_file")


def to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `instructions` (the system messages at the beginning) and `input` of a request;
    ValueError if something cannot be sent. It has no field for names of participants."""
    linked = requests.link_calls(messages)
    first = next(
        (index for index, message in enumerate(linked) if message.role != "system"), len(linked)
    )
    instructions = requests.system_text(linked[:first])
    items = [item for message in linked[first:] for item in _wire_items(message)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _wire_items(message: Message) -> Iterator[dict[str, Any]]:
    content = requests.text_or_parts(message, _ROLES_WITH_PICTURES, _wire_part)
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
            "arguments": requests.encode_arguments(call),
        }


def _wire_part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "detail": "auto", "image_url": part.uri}


def matches(items: Sequence[Item]) -> bool:
    """Whether one of the items is of a type, or has a part, that only this API has."""
    for item in items:
        kind, parts = str(item.get("type")), item.get("content")
        if kind == "reasoning" or kind.endswith(("_call", "_call_output")):
            return True
        if isinstance(parts, list) and any(members(part).get("type") in _PARTS for part in parts):
            return True
    return False


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history, or of the output of a reply: each has the calls that follow it.
    What a model produces between two inputs is one reply. An unknown item may be a call. ValueError
    for a call without a name."""
    found: list[WireMessage] = []
    in_reply = False
    for item in items:
        kind = str(item.get("type", "message"))
        if is_call(kind) or (kind != "message" and not is_known(kind)):
            if not in_reply:
                found.append(WireMessage(Message("assistant", "")))
            found[-1] = _with_call(found[-1], kind, item)
            in_reply = True
        for read in _read_messages(kind, item):
            is_own = read.message.role == "assistant"
            found.append(replace(read, continues=is_own and in_reply))
            in_reply = is_own
    return found


def _with_call(reply: WireMessage, kind: str, item: Item) -> WireMessage:
    """The reply with a call, or with the kind of an item that may be one."""
    if not is_call(kind):
        return replace(reply, unread=(*reply.unread, kind))
    calls = (*reply.message.tool_calls, read_call(kind, item))
    return replace(reply, message=replace(reply.message, tool_calls=calls))


def _read_messages(kind: str, item: Item) -> Iterator[WireMessage]:
    """The result of a call, or the messages of an item, unless they are empty."""
    if is_result(kind):
        yield read_result(item).message()
    elif kind == "message":
        for read in role_messages.from_wire([{"role": "assistant", **item}]):
            message = read.message
            if message.role != "assistant" or message.content or message.tool_calls or read.unread:
                yield read


def read_reply(data: Any) -> Trace:
    """The trace of a response without its reasoning. ValueError if it is not one, failed, was
    filtered or is empty."""
    response = members(data)
    if "output" not in response or response.get("object", "response") != "response":
        raise ValueError("the reply is not a response: `output` is missing")
    error, status = response.get("error"), response.get("status")
    reason = members(response.get("incomplete_details")).get("reason")
    if isinstance(error, dict) or status not in _COMPLETED:
        code = members(error).get("code")
        details = [part for part in (code, members(error).get("message")) if isinstance(part, str)]
        problem = f"the response was not completed (status {status!r})"
        problem = ": ".join([problem, *details])
        raise ValueError(problem)
    if reason == "content_filter":
        raise ValueError("the reply was stopped by the vendor's content filter")
    messages = [read.message for read in from_wire(base.objects(response, "output"))]
    if not messages:
        status = f"{status!r}, {reason}" if reason else repr(status)
        raise ValueError(f"the reply is empty (status {status})")
    return base.reply_trace(messages, base.read_usage(response.get("usage")), response.get("model"))
