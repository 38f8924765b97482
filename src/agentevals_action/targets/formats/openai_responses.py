"""The Responses format of OpenAI's API, and its items as `result.to_input_list()` of openai-agents
returns them. Items contain no tokens.

https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.messages import Message, Role, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base, requests
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.requests import Picture

_ROLES_WITH_PICTURES: tuple[Role, ...] = ("user", "tool")
_COMPLETED = (None, "completed", "incomplete")
#: The types of parts that only this API has.
_PARTS = ("input_text", "output_text", "input_image", "input_file")
#: Calls that have a name; other types of calls are named after the vendor's own tool.
_NAMED = ("function_call", "custom_tool_call", "mcp_call")
#: Fields of a call of the vendor's own tool that are not its arguments.
_NOT_ARGUMENTS = frozenset(
    {"id", "call_id", "type", "status", "name", "output", "outputs", "result", "results", "error"}
)


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
    What a model produces between two inputs is one reply. ValueError for a call without a name."""
    found: list[WireMessage] = []
    in_reply = False
    for item in items:
        kind, role = str(item.get("type", "message")), item.get("role", "assistant")
        text = base.text_of_parts(item.get("content"))
        if kind.endswith("_call_output"):
            output, call_id = (
                base.output_text(item.get("output")),
                base.optional_text(item.get("call_id")),
            )
            found.append(WireMessage(Message("tool", output, tool_call_id=call_id)))
            in_reply = False
        elif kind.endswith("_call"):
            if not in_reply:
                found.append(WireMessage(Message("assistant", "")))
            last = found[-1].message
            calls = (*last.tool_calls, _read_call(kind, item))
            found[-1] = replace(found[-1], message=replace(last, tool_calls=calls))
            in_reply = True
        elif kind == "message" and role == "assistant" and text:
            found.append(WireMessage(Message("assistant", text), continues=in_reply))
            in_reply = True
        elif kind == "message" and role in ("user", "system", "developer"):
            found.append(WireMessage(Message("user" if role == "user" else "system", text)))
            in_reply = False
    return found


def _read_call(kind: str, item: Item) -> ToolCall:
    name = base.call_name(item, kind) if kind in _NAMED else base.optional_text(item.get("name"))
    if "arguments" in item:
        arguments = base.decode_arguments(item["arguments"])
    elif "input" in item:
        arguments = item["input"]
    else:
        arguments = {key: value for key, value in item.items() if key not in _NOT_ARGUMENTS}
    call_id = base.optional_text(item.get("call_id")) or base.optional_text(item.get("id"))
    return ToolCall(name or kind.removesuffix("_call"), arguments, item.get("output"), call_id)


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
