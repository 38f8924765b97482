"""The blocks of which messages consist, in the forms of all APIs and frameworks: texts, calls of
tools, and their results. A block of an unknown kind is named, because it may be a call.

Vercel's AI SDK: https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message; Amazon Bedrock's
Converse and Strands:
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html; LangChain:
https://reference.langchain.com/python/langchain-core/messages/content"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.validation.json_values import members
from agentevals_action.targets.formats import base
from agentevals_action.targets.formats.base import Item, WireMessage

_TEXTS = ("text", "input_text", "output_text", "refusal")
_CALLS = ("tool_use", "toolUse", "tool-call", "_call")
_RESULTS = (
    "tool_result", "toolResult", "tool-result", "tool-return", "_call_output", "_call_result",
)  # fmt: skip
#: Vercel's question to a person, who may permit a call.
_APPROVAL = "tool-approval-request"
_CITED = "citationsContent"
#: The other kinds of blocks and items that cannot be a call.
_OTHERS = frozenset({
    _APPROVAL, "json", "file", "image", "image_url", "input_image", "input_file", "document",
    "audio", "input_audio", "video", "source", "thinking", "redacted_thinking", "reasoning",
    "redacted-reasoning", "reasoningContent", "cachePoint", "guardContent", "searchResult",
    "container_upload", "mcp_list_tools",
})  # fmt: skip
#: Calls that have a name; others that end with `_call` are named after the vendor's own tool.
_NAMED = ("function_call", "custom_tool_call", "mcp_call", "tool_call", "server_tool_call")
#: Fields of a call of the vendor's own tool that are not its arguments.
_NOT_ARGUMENTS = frozenset(
    {"id", "call_id", "type", "status", "name", "output", "outputs", "result", "results", "error"}
)
_IDS = ("toolCallId", "toolUseId", "tool_use_id", "tool_call_id", "call_id", "id")
_TOOL_NAMES = ("toolName", "tool_name", "name")
_OUTPUTS = ("output", "result", "content")
_DENIED = "execution-denied"
#: Names of fields in which a message or a block may have calls; `tool_plan` is Cohere's text.
_MAY_HOLD_CALLS = re.compile(r"tool(?!_plan)|call|function|^parts$|^blocks$", re.IGNORECASE)
#: Fields that have counts, and the data of a block; their own fields have any names.
_DATA = frozenset({"usage", "usage_metadata", "token_usage", "value"})


@dataclass(frozen=True)
class Result:
    """The output of a call. `refused`: a person did not permit the call."""

    call_id: str | None
    output: Any
    name: str | None = None
    refused: bool = False

    def message(self) -> WireMessage:
        """The result as a message of its own."""
        output = base.output_text(self.output)
        return WireMessage(Message("tool", output, self.name, self.call_id), refused=self.refused)


@dataclass(frozen=True)
class Blocks:
    """What the blocks of a message contain. `results` are those of calls in other messages,
    `waiting` the ids of calls that need a person's approval, `unread` the kinds of blocks that are
    not known, and the fields of the others that may be calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Result, ...] = ()
    waiting: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def read_blocks(content: Any) -> Blocks:
    """The content of a message: a text, or a list of blocks. ValueError for anything else, and for
    a call without a name."""
    if not isinstance(content, list):
        return Blocks(base.text_of_parts(content))
    blocks = [_kind_and_fields(block) for block in content]
    texts = (part for kind, fields in blocks for part in _text_parts(kind, fields))
    calls = [read_call(kind, fields) for kind, fields in blocks if is_call(kind)]
    results = [read_result(fields) for kind, fields in blocks if is_result(kind)]
    made = {call.id for call in calls}
    return Blocks(
        base.text_of_parts(list(texts)),
        tuple(_with_output(call, results) for call in calls),
        tuple(result for result in results if result.call_id not in made),
        tuple(str(fields.get("toolCallId")) for kind, fields in blocks if kind == _APPROVAL),
        tuple(name for block in blocks for name in _unread(*block)),
    )


def _unread(kind: str, fields: Item) -> Iterator[str]:
    """The kind if it is not known. The fields of blocks about tools are read, or described by it;
    in any other block a field with such a name may be a call."""
    if not is_known(kind):
        yield kind
    elif not _MAY_HOLD_CALLS.search(kind):
        yield from (name for name, _ in call_fields(fields))


def call_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """What may be a call in a value, at any depth, with its name: the fields whose names are those
    of calls, and the objects whose `type` is that of a call."""
    if isinstance(value, list):
        for item in value:
            yield from call_fields(item)
    fields = members(value)
    kind = fields.get("type")
    if isinstance(kind, str) and is_call(kind):
        yield kind, fields
    for name, field in fields.items():
        if _MAY_HOLD_CALLS.search(name):
            if field:
                yield name, field
        elif name not in _DATA:
            yield from call_fields(field)


def _kind_and_fields(block: Any) -> tuple[str, Item]:
    """The kind of a block and its fields: those in its only field, as `{toolUse: {…}}` of Bedrock,
    unless it has a `type`."""
    if isinstance(block, str):
        return "text", {"text": block}
    fields = members(block)
    kind = fields.get("type")
    if kind is None and len(fields) == 1:
        ((kind, inner),) = fields.items()
        fields = inner if isinstance(inner, Mapping) else fields
    elif kind is None and isinstance(fields.get("text"), str):
        kind = "text"
    return kind if isinstance(kind, str) else "without a `type`", fields


def _text_parts(kind: str, fields: Item) -> Iterable[Any]:
    if kind == _CITED:
        return base.objects(fields, "content")
    return (fields,) if kind in _TEXTS else ()


def is_call(kind: str) -> bool:
    """Whether blocks or items of this kind are calls of tools."""
    return kind.endswith(_CALLS)


def is_result(kind: str) -> bool:
    """Whether blocks or items of this kind are results of calls."""
    return kind.endswith(_RESULTS)


def is_known(kind: str) -> bool:
    """Whether blocks or items of this kind are read, or cannot be a call."""
    is_text = kind in _TEXTS or kind == _CITED
    return is_text or kind in _OTHERS or is_call(kind) or is_result(kind)


def read_call(kind: str, block: Item) -> ToolCall:
    """A call of a tool. ValueError if it has no name, unless it is one of the vendor's own tool."""
    name = _first_text(block, _TOOL_NAMES)
    is_vendors = kind.endswith("_call") and kind not in _NAMED
    if name is None and not is_vendors:
        raise ValueError("a tool call of the reply has no name")
    encoded = next((block[key] for key in ("arguments", "args") if key in block), None)
    if encoded is not None:
        arguments = base.decode_arguments(encoded)
    elif "input" in block or not is_vendors:
        arguments = block.get("input", {})
    else:
        arguments = {key: value for key, value in block.items() if key not in _NOT_ARGUMENTS}
    call_id = _first_text(block, _IDS)
    return ToolCall(name or kind.removesuffix("_call"), arguments, block.get("output"), call_id)


def read_result(block: Item) -> Result:
    """The result of a call; Vercel's has a type and a value, pydantic-ai's an outcome."""
    output = next((block[key] for key in _OUTPUTS if key in block), None)
    typed = members(output)
    refused = typed.get("type") == _DENIED
    if refused:
        output = typed.get("reason")
    elif typed.keys() >= {"type", "value"}:
        output = typed["value"]
    name = _first_text(block, _TOOL_NAMES)
    refused = refused or block.get("outcome") == "denied"
    return Result(_first_text(block, _IDS), output, name, refused)


def _with_output(call: ToolCall, results: Sequence[Result]) -> ToolCall:
    result = next((each for each in results if call.id and each.call_id == call.id), None)
    if result is None:
        return call
    return replace(call, output=result.output, refused=result.refused)


def _first_text(block: Item, names: Iterable[str]) -> str | None:
    return next(filter(None, (base.optional_text(block.get(name)) for name in names)), None)
