"""Lists of messages with a `role`: OpenAI's chat format
(https://platform.openai.com/docs/api-reference/chat), which is that of our own envelope with more
kinds of blocks, Anthropic's Messages API, Vercel's AI SDK, Amazon Bedrock's Converse and Strands.
One list may have blocks of all of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.messages import (
    BLOCK_TYPES,
    Block,
    Message,
    Picture,
    Role,
    ToolCall,
    chat_tool_call,
    read_message,
    read_tool_call,
)
from agentevals_action.targets.dialects import requests
from agentevals_action.targets.dialects.blocks import (
    Item,
    WireMessage,
    find_call_fields,
    find_kind,
    objects,
    optional_text,
    read_blocks,
    read_call,
)
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.validation.json_values import as_object, describe_json

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
#: Fields of structured answers that may have calls, too: `contents` is Microsoft's Agent Framework.
_LISTS = frozenset({"contents", "items", "actions", "steps"})


def to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The messages of a request in OpenAI's chat format, with ids that link tool messages to their
    calls; ValueError if something cannot be sent."""
    return {"messages": [_wire_message(message) for message in requests.link_calls(messages)]}


def _wire_message(message: Message) -> dict[str, Any]:
    content = requests.text_or_parts(message, ("user",), _wire_part)
    data: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id
    elif message.name is not None:
        data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [chat_tool_call(call) for call in message.tool_calls]
    return data


def _wire_part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": part.uri}}


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of roles with an assistant's."""
    roles = [item.get("role") for item in items]
    return "assistant" in roles and all(str(role) in _ROLES for role in roles)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history; a tool's result is a message of its own. ValueError if one of
    them is not valid."""
    return [message for item in items for message in _read_item(item)]


def read_reply(item: Item) -> WireMessage:
    """The message of a model, with its usage. ValueError if it is not valid."""
    (reply,) = _read_item({**item, "role": "assistant"})
    return reply


def _read_item(item: Item) -> Iterator[WireMessage]:
    """The message of an item, and before it one for each result of a tool in its blocks."""
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise ValueError(
            f"the reply has a message of the unknown role {describe_json(item.get('role'))}"
        )
    name, content = optional_text(item.get("name")), item.get("content")
    if role == "assistant" and find_kind(str(as_object(content).get("type"))):
        content = [content]
    own_blocks = _own_blocks(content)
    blocks = read_blocks(content if isinstance(content, list) or not own_blocks else None)
    if role == "assistant":
        calls = (*blocks.calls, *_listed_calls(item, {call.id for call in blocks.calls if call.id}))
        answer = own_blocks or blocks.text or optional_text(item.get("refusal")) or ""
        yield WireMessage(
            Message(role, answer, name, tool_calls=calls),
            read_usage(item.get("usage")),
            optional_text(item.get("model")),
            unread=(*blocks.unread, *_unread_fields(item, content, calls)),
            waiting=tuple(blocks.waiting),
        )
        return
    yield from (result.message() for result in blocks.results)
    if own_blocks or blocks.text or not blocks.results:
        call_id = optional_text(item.get("tool_call_id"))
        yield WireMessage(Message(role, own_blocks or blocks.text, name, call_id))


def _own_blocks(content: Any) -> tuple[Block, ...]:
    """The blocks of our own envelope, which have a `value`; none if it has another form."""
    content = [{"type": "json", "value": content}] if isinstance(content, Mapping) else content
    blocks = [as_object(block) for block in content] if isinstance(content, list) else []
    is_own = all(block.get("type") in BLOCK_TYPES for block in blocks)
    if not is_own or not any("value" in block for block in blocks):
        return ()
    try:
        return read_message({"role": "user", "content": content}).blocks
    except ValueError as error:
        raise ValueError(f"the reply has a message that is not valid: {error}") from None


def _listed_calls(item: Item, known: set[str]) -> Iterator[ToolCall]:
    """The calls in the lists of a message, and in the single call that OpenAI had before them,
    without those with `known` ids."""
    listed = [*objects(item, "tool_calls"), *objects(item, "toolCalls")]
    if single := item.get("function_call"):
        listed.append(as_object(single))
    return (call for call in map(_read_call, listed) if call.id not in known)


def _read_call(data: Item) -> ToolCall:
    """A call of a function or of a custom tool, one of LangChain, or one of our own envelope."""
    if "tool" not in data:
        wrapped = as_object(data.get("function") or data.get("custom"))
        return read_call("tool_call", {**data, **wrapped})
    try:
        return read_tool_call({**data, "id": optional_text(data.get("id"))})
    except ValueError as error:
        raise ValueError(f"the reply has a message that is not valid: {error}") from None


def _unread_fields(item: Item, content: Any, calls: Sequence[ToolCall]) -> Iterator[str]:
    """What is not read in an assistant's message and may have calls: the kind of a content that is
    an object, and fields. The blocks of a list are read."""
    yield from filter(None, [optional_text(as_object(content).get("type"))])
    unread = {**item, "content": None if isinstance(content, list) else content}
    yield from (name for name, value in find_call_fields(unread) if not _is_copy(value, calls))
    yield from (name for name in item if name in _LISTS and item[name])


def _is_copy(value: Any, calls: Sequence[ToolCall]) -> bool:
    """Whether a field has only calls that are read, or data with their ids as keys. LangChain also
    keeps the calls as they arrived."""
    names = {call.id: call.name for call in calls if call.id}
    if isinstance(value, Mapping) and names.keys() >= value.keys():
        return True
    read = [(call.name, call.arguments) for call in calls]
    listed = value if isinstance(value, list) else [value]
    try:
        copies = [_read_call(as_object(entry)) for entry in listed]
    except ValueError:
        return False
    return all(
        names.get(copy.id or "") == copy.name or (copy.name, copy.arguments) in read
        for copy in copies
    )
