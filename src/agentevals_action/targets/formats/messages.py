"""Lists of messages with a `role`: OpenAI's chat format, which is that of our own envelope with
more kinds of blocks, Anthropic's Messages API, Vercel's AI SDK, Amazon Bedrock's Converse and
Strands. One list may have blocks of all of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.messages import (
    BLOCK_TYPES,
    Block,
    Message,
    Role,
    ToolCall,
    read_message,
    read_tool_call,
)
from agentevals_action.model.validation.json_values import members, shown
from agentevals_action.targets.formats import base
from agentevals_action.targets.formats.base import Item, WireMessage
from agentevals_action.targets.formats.blocks import call_fields, is_known, read_blocks, read_call

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_CALL_LISTS = ("tool_calls", "toolCalls")
#: OpenAI's field before it had lists of calls.
_SINGLE_CALL = "function_call"
#: More such fields, whose names are usual in structured answers, too: `contents` is Microsoft's
#: Agent Framework.
_LISTS = frozenset({"contents", "items", "actions", "steps"})


def matches(items: Sequence[Item]) -> bool:
    """Whether it is a list of roles with an assistant's."""
    roles = [item.get("role") for item in items]
    return "assistant" in roles and all(str(role) in _ROLES for role in roles)


def from_wire(items: Sequence[Item]) -> Sequence[WireMessage]:
    """The messages of a history; a tool's result is a message of its own. ValueError if one of
    them is not valid."""
    return [message for item in items for message in read_item(item)]


def read_item(item: Item) -> Iterator[WireMessage]:
    """The message of an item, and before it one for each result of a tool in its blocks. A
    complete reply has its tokens."""
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise ValueError(f"the reply has a message of the unknown role {shown(item.get('role'))}")
    name, content = base.optional_text(item.get("name")), item.get("content")
    if role == "assistant" and is_known(str(members(content).get("type"))):
        content = [content]
    own = _own_blocks(content)
    blocks = read_blocks(content if isinstance(content, list) or not own else None)
    if role == "assistant":
        listed = [call for name in _CALL_LISTS for call in base.objects(item, name)]
        if single := item.get(_SINGLE_CALL):
            listed.append(members(single))
        calls = _add_calls(blocks.calls, [_read_call(call) for call in listed])
        answer = own or blocks.text or base.optional_text(item.get("refusal")) or ""
        usage, model = base.read_usage(item.get("usage")), base.optional_text(item.get("model"))
        unread = (*blocks.unread, *_unread_fields({**item, "content": content}, calls))
        message = Message(role, answer, name, tool_calls=calls)
        yield WireMessage(message, usage, model, unread=unread, waiting=blocks.waiting)
        return
    yield from (result.message() for result in blocks.results)
    if own or blocks.text or not blocks.results:
        call_id = base.optional_text(item.get("tool_call_id"))
        yield WireMessage(Message(role, own or blocks.text, name, call_id))


def _own_blocks(content: Any) -> tuple[Block, ...]:
    """The blocks of our own envelope, which have a `value`; none if it has another form."""
    content = [{"type": "json", "value": content}] if isinstance(content, Mapping) else content
    blocks = [members(block) for block in content] if isinstance(content, list) else []
    is_own = all(block.get("type") in BLOCK_TYPES for block in blocks)
    if not is_own or not any("value" in block for block in blocks):
        return ()
    try:
        return read_message({"role": "user", "content": content}).blocks
    except ValueError as error:
        raise ValueError(f"the reply has a message that is not valid: {error}") from None


def _read_call(data: Item) -> ToolCall:
    """A call of a function or of a custom tool, one of LangChain, or one of our own envelope."""
    if "tool" not in data:
        wrapped = members(data.get("function") or data.get("custom"))
        return read_call("tool_call", {**data, **wrapped})
    try:
        return read_tool_call({**data, "id": base.optional_text(data.get("id"))})
    except ValueError as error:
        raise ValueError(f"the reply has a message that is not valid: {error}") from None


def _add_calls(shown: Sequence[ToolCall], listed: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of a message's blocks, and those of its lists that are not among them."""
    ids = {call.id for call in shown if call.id}
    return (*shown, *(call for call in listed if call.id not in ids))


def _unread_fields(item: Item, calls: Sequence[ToolCall]) -> Iterator[str]:
    """What is not read in an assistant's message and may have calls: the kind of a content that is
    an object, and fields. The blocks of a list are read."""
    content = item.get("content")
    yield from filter(None, [base.optional_text(members(content).get("type"))])
    unread = {**item, "content": None} if isinstance(content, list) else item
    yield from (name for name, value in call_fields(unread) if not _is_copy(value, calls))
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
        copies = [_read_call(members(each)) for each in listed]
    except ValueError:
        return False
    return all(
        names.get(copy.id or "") == copy.name or (copy.name, copy.arguments) in read
        for copy in copies
    )
