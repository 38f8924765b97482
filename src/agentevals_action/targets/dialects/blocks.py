"""The blocks of which messages consist, in the forms of all APIs and frameworks: texts, calls of
tools, and their results. What decides about tool calls is read strictly; a block of an unknown kind
is named, because it may be a call.

Vercel's AI SDK: https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message; Amazon Bedrock's
Converse and Strands:
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html; LangChain:
https://reference.langchain.com/python/langchain-core/messages/content; Gemini:
https://ai.google.dev/api/caching#Part"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Trace, Usage, list_calls
from agentevals_action.validation.json_values import as_object, decode_json

Item = Mapping[str, Any]

#: The kinds of blocks and items, by their names (`*` is any beginning): a text, a list of texts, a
#: call of a tool, the result of one, Vercel's question to a person who may permit a call, and
#: others that cannot be a call.
_KINDS = {
    "text": "text input_text output_text refusal",
    "texts": "citationsContent",
    "call": "*tool_use *toolUse *tool-call *_call",
    "result": "*tool_result *toolResult *tool-result *tool-return *_call_output *_call_result",
    "approval": "tool-approval-request",
    "other": "json file image image_url input_image input_file document audio input_audio video "
    "source thinking redacted_thinking reasoning redacted-reasoning reasoningContent cachePoint "
    "guardContent searchResult container_upload mcp_list_tools",
}
_KIND = re.compile(
    "|".join(
        f"(?P<{kind}>{names.replace(' ', '|').replace('*', '.*')})"
        for kind, names in _KINDS.items()
    ),
    re.DOTALL,
)
#: Calls that have a name; others that end with `_call` are named after the vendor's own tool.
_NAMED = ("function_call", "custom_tool_call", "mcp_call", "tool_call", "server_tool_call")
#: Fields of a call of the vendor's own tool that are not its arguments.
_NOT_ARGUMENTS = frozenset(
    {"id", "call_id", "type", "status", "name", "output", "outputs", "result", "results", "error"}
)
_IDS = ("toolCallId", "toolUseId", "tool_use_id", "tool_call_id", "call_id", "id")
_TOOL_NAMES = ("toolName", "tool_name", "name")
_OUTPUTS = ("output", "result", "content")
#: Names of fields in which a message or a block may have calls; `tool_plan` is Cohere's text.
_MAY_HOLD_CALLS = re.compile(r"tool(?!_plan)|call|function|^parts$|^blocks$", re.IGNORECASE)
#: Fields that have counts, and the data of a block; their own fields have any names.
_DATA = frozenset({"usage", "usage_metadata", "token_usage", "value"})


@dataclass(frozen=True)
class WireMessage:
    """A message as a format has it; a reply of a model has a usage and a model. `continues`: the
    message belongs to the same reply as the one before it. `refused`: it answers a call that was
    not made. `unread` are the kinds of its parts that are not known, each of which may be a call;
    `waiting` are the ids of its calls that need a person's approval."""

    message: Message
    usage: Usage = Usage()  # noqa: RUF009  # frozen
    model: str | None = None
    continues: bool = False
    refused: bool = False
    unread: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a text nor a call."""
        return not self.message.content and not self.message.tool_calls


def trace_of_call(replies: Sequence[WireMessage], usage: Usage, model: Any) -> Trace:
    """The trace of one call of a model that answered with these messages."""
    messages = tuple(reply.message for reply in replies)
    name = optional_text(model)
    return Trace(messages, list_calls(messages), llm_call_count=1, usage=usage, model=name)


@dataclass(frozen=True)
class ToolResult:
    """The result of a call, and its duration in milliseconds. `refused`: the call was not made."""

    call_id: str | None
    output: Any
    name: str | None = None
    refused: bool = False
    duration_ms: float | None = None

    def message(self) -> WireMessage:
        """The result as a message of its own."""
        output = output_text(self.output)
        return WireMessage(Message("tool", output, self.name, self.call_id), refused=self.refused)

    def add_to(self, call: ToolCall) -> ToolCall:
        """The call with its result."""
        duration = None if self.refused else self.duration_ms
        return replace(call, output=self.output, duration_ms=duration, refused=self.refused)


def add_results(
    calls: Iterable[ToolCall], results: Mapping[str | None, ToolResult]
) -> tuple[ToolCall, ...]:
    """The calls with the results that are there, by their ids."""
    pairs = ((call, results.get(call.id or "")) for call in calls)
    return tuple(result.add_to(call) if result else call for call, result in pairs)


@dataclass
class Blocks:
    """What the blocks of a message contain. `results` are those of calls in other messages,
    `waiting` the ids of calls that need a person's approval, `unread` the kinds of blocks that are
    not known, and the fields of the others that may be calls."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, name: str, fields: Item) -> None:
        """Adds a block. ValueError for a call without a name."""
        match find_kind(name):
            case "text":
                self.text += _text_of_part(fields)
            case "texts":
                self.text += text_of_parts([*objects(fields, "content")])
            case "call":
                self.calls.append(read_call(name, fields))
            case "result":
                self.results.append(read_result(fields))
            case "approval":
                self.waiting.append(str(fields.get("toolCallId")))
            case None:
                self.unread.append(name)
                return
        # A block about tools has fields of such names itself.
        if not _MAY_HOLD_CALLS.search(name):
            self.unread += (field for field, _ in find_call_fields(fields))


def read_blocks(content: Any) -> Blocks:
    """The content of a message: a text, or a list of blocks. ValueError for anything else, and for
    a call without a name."""
    if not isinstance(content, list):
        return Blocks(text_of_parts(content))
    blocks = Blocks()
    for block in content:
        blocks.add(*_name_and_fields(block))
    call_ids = {call.id for call in blocks.calls}
    first = {result.call_id: result for result in reversed(blocks.results)}
    blocks.calls = [*add_results(blocks.calls, first)]
    blocks.results = [result for result in blocks.results if result.call_id not in call_ids]
    return blocks


def _name_and_fields(block: Any) -> tuple[str, Item]:
    """The kind of a block as it is named there, and its fields: those in its only field, as
    `{toolUse: {…}}` of Bedrock, unless it has a `type`."""
    if isinstance(block, str):
        return "text", {"text": block}
    fields = as_object(block)
    name = fields.get("type")
    if name is None and len(fields) == 1:
        ((name, inner),) = fields.items()
        fields = inner if isinstance(inner, Mapping) else fields
    elif name is None and isinstance(fields.get("text"), str):
        name = "text"
    return name if isinstance(name, str) else "without a `type`", fields


def find_kind(name: str) -> str | None:
    """The kind of the blocks or items of this name; None if it is not known."""
    match = _KIND.fullmatch(name)
    return match.lastgroup if match else None


def find_call_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value that may be calls, at any depth, with their names: fields that are named
    like calls, and objects whose `type` is a call."""
    if isinstance(value, list):
        for item in value:
            yield from find_call_fields(item)
    fields = as_object(value)
    name = fields.get("type")
    if isinstance(name, str) and find_kind(name) == "call":
        yield name, fields
    for name, item in fields.items():
        if _MAY_HOLD_CALLS.search(name):
            if item:
                yield name, item
        elif name not in _DATA:
            yield from find_call_fields(item)


def read_call(name: str, block: Item) -> ToolCall:
    """A call of a tool. ValueError if it has no name, unless it is one of the vendor's own tool."""
    tool = _first_text(block, _TOOL_NAMES)
    is_vendors = name.endswith("_call") and name not in _NAMED
    if tool is None and not is_vendors:
        raise ValueError("a tool call of the reply has no name")
    encoded = next((block[key] for key in ("arguments", "args") if key in block), None)
    if encoded is not None:
        arguments = decode_arguments(encoded)
    elif "input" in block or not is_vendors:
        arguments = block.get("input", {})
    else:
        arguments = {key: value for key, value in block.items() if key not in _NOT_ARGUMENTS}
    call_id = _first_text(block, _IDS)
    return ToolCall(tool or name.removesuffix("_call"), arguments, block.get("output"), call_id)


def read_result(block: Item) -> ToolResult:
    """The result of a call; Vercel's has a type and a value, pydantic-ai's an outcome."""
    output = next((block[key] for key in _OUTPUTS if key in block), None)
    typed = as_object(output)
    refused = typed.get("type") == "execution-denied"
    if refused:
        output = typed.get("reason")
    elif typed.keys() >= {"type", "value"}:
        output = typed["value"]
    name = _first_text(block, _TOOL_NAMES)
    refused = refused or block.get("outcome") == "denied"
    return ToolResult(_first_text(block, _IDS), output, name, refused)


def _first_text(block: Item, names: Sequence[str]) -> str | None:
    return next(filter(None, (optional_text(block.get(name)) for name in names)), None)


def read_gemini_parts(parts: Sequence[Item]) -> WireMessage:
    """The message of a Gemini model with these parts, without its thoughts, and with the code that
    the vendor ran as calls. ValueError for a call without a name."""
    parts = [part for part in parts if part.get("thought") is not True]
    calls: list[ToolCall] = []
    for part, following in zip_longest(parts, parts[1:]):
        call, code = part.get("functionCall"), part.get("executableCode")
        if call is not None:
            calls.append(read_call("function_call", as_object(call)))
        elif code is not None:
            result = as_object(as_object(following).get("codeExecutionResult"))
            arguments = {name: as_object(code).get(name) for name in ("language", "code")}
            calls.append(ToolCall("code_execution", arguments, result.get("output")))
    return WireMessage(Message("assistant", text_of_parts(parts), tool_calls=tuple(calls)))


def text_of_parts(content: Any) -> str:
    """The text of a message: a string, or the parts of a list that are text, without thoughts.
    ValueError for anything else."""
    if not isinstance(content, str | list | None):
        raise ValueError("the reply is not valid: a content is not a text or a list of parts")
    return "".join(map(_text_of_part, content)) if isinstance(content, list) else content or ""


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    part = as_object(part)
    text = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text if isinstance(text, str) and part.get("thought") is not True else ""


def output_text(output: Any) -> str:
    """The output of a tool as text: a string, text parts, or data as JSON."""
    if output is None or isinstance(output, str):
        return output or ""
    text = text_of_parts(output) if isinstance(output, list) else ""
    return text or json.dumps(output, ensure_ascii=False)


def optional_text(value: Any) -> str | None:
    """A string; None for anything else, as a missing name."""
    return value if isinstance(value, str) and value else None


def decode_arguments(text: Any) -> Any:
    """A tool call's arguments as data. Broken JSON is the model's error, which evaluators judge: it
    stays a text."""
    return {} if isinstance(text, str) and not text.strip() else decode_json(text)


def objects(data: Item, name: str) -> Sequence[Item]:
    """The objects of a list, none if it is missing or null. ValueError if it is anything else: a
    tool call must not be lost."""
    value = data.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"the reply is not valid: `{name}` is not a list")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise ValueError(f"the reply is not valid: `{name}[{index}]` is not an object")
    return value
