"""The reply of a command or a service: an envelope of answer and figures, or plain text."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentevals_action.formatting import shortened
from agentevals_action.model.messages import Message, read_message, read_tool_call
from agentevals_action.model.trace import Trace, Usage, list_calls
from agentevals_action.targets.dialects.blocks import objects, read_gemini_parts
from agentevals_action.targets.dialects.conversations import read_conversation
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.validation.field_errors import dotted, field_errors
from agentevals_action.validation.json_values import (
    MAX_COUNT,
    MISSING,
    as_object,
    decode_json,
    describe_json,
    look_up,
)

_ANSWER = frozenset({"output", "text", "messages"})
#: The fields of an object that is nothing but an error.
_OF_ERRORS = frozenset({
    "error", "type", "message", "code", "status", "detail", "details", "path", "timestamp",
    "request_id", "traceback", "ok", "success",
})  # fmt: skip
Item = TypeVar("Item")
_MAX_NAMES = 5  # unknown fields that a warning names
_LAST_REPLY = (
    "its reply is the last one of a model, which does not show those before it: the tool calls and "
    "tokens are unknown; return the list of all messages"
)


class ReplyModel(BaseModel):
    """An object of a reply; unknown fields are ignored."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", allow_inf_nan=False, defer_build=True
    )

    @classmethod
    def parse(cls, data: Any, name: str) -> Self:
        """The model of a reply, which `name` describes with its article; ValueError with the first
        error if it is not one."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = field_errors(error, data)[0]
            field = f"`{dotted(first.steps)}`" if first.steps else "it"
            problem = f"{field} is not {' or '.join(first.expected) or 'valid'}"
            if first.is_missing:
                problem = f"{field} is missing"
            elif first.message:
                problem = f"{field}: {first.message}" if first.steps else first.message
            raise ValueError(f"the reply is not {name}: {problem}") from None


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Amount = Annotated[float, Field(ge=0, lt=MAX_COUNT)]
Count = Annotated[int, BeforeValidator(_integer), Field(ge=0, lt=MAX_COUNT)]


class _TokenUsage(ReplyModel):
    """The tokens of an envelope; other fields are those of a vendor's usage."""

    model_config = ConfigDict(extra="allow")

    input: Count | None = None
    output: Count | None = None
    cached: Count | None = None


class _Envelope(ReplyModel):
    output: str | list[Any] | None = None
    text: str | None = None
    messages: list[Any] | None = None
    tool_calls: list[Any] | None = None
    token_usage: _TokenUsage | None = None
    cost_usd: Amount | None = None
    duration_ms: Amount | None = None
    llm_call_count: Count | None = None
    model: str | None = None


def read_reply(text: str, question: Sequence[Message] = (), waiting: Collection[str] = ()) -> Trace:
    """The trace of a reply: an envelope, a conversation, the last reply of a model, or a text. The
    messages of the `question` in a conversation are left out. `waiting` are the ids of calls that
    wait for a person's approval. ValueError if it is an error, or a field has a wrong type.

    What a reply does not show is unknown: tool calls unless it has `tool_calls`, or messages of
    which every block is understood, and model calls unless it has messages."""
    data = decode_json(text) if text.lstrip().startswith(("{", "[")) else None
    trace = _read_data(data, question, waiting)
    return trace or Trace((Message("assistant", text.rstrip("\r\n")),))


def read_object(
    data: Any, type_name: str, question: Sequence[Message], waiting: Collection[str] = ()
) -> Trace:
    """The trace of what a function returned, as JSON. `type_name` is the class of an object, or of
    those in a list; empty for data. ValueError if an object is none of what a reply may be."""
    if isinstance(data, str) and not type_name:
        return read_reply(data, question, waiting)
    trace, problem = None, ""
    try:
        trace = _read_data(data, question, waiting)
    except ValueError as error:
        if not type_name:
            raise
        problem = f" ({error})"
    if trace is None and (type_name or isinstance(data, dict)):
        kind = f"of {type_name}" if type_name else "without `output`"
        raise ValueError(
            f"the reply is an object {kind}, which cannot be read{problem}; return its "
            'text, an envelope as {"output": …, "messages": …}, or the list of messages'
        )
    return trace or Trace((Message("assistant", json.dumps(data)),))


def _read_data(data: Any, question: Sequence[Message], waiting: Collection[str]) -> Trace | None:
    """The trace of an envelope, a conversation, or the last reply of a model; None for any other
    data. ValueError if it is an error, or not valid."""
    if isinstance(data, list):
        return read_conversation(data, question, waiting)
    if not isinstance(data, dict):
        return None
    if data.get("error") and _OF_ERRORS.issuperset(
        name for name, value in data.items() if value is not None
    ):
        raise ValueError(f"the reply is an error: {describe_json(data['error'])}")
    if data.get("object") != "response" and not _ANSWER.isdisjoint(data):
        return _read_envelope(data, question, waiting)
    trace = _last_reply(data)
    # What the model did before it is not shown.
    return trace and Trace(trace.messages, model=trace.model, warnings=(_LAST_REPLY,))


def _last_reply(data: Mapping[str, Any]) -> Trace | None:
    """The message in a reply of a model's API or of an agent; None if it is neither."""
    if data.get("object") == "response":
        return read_conversation(data.get("output"), ())
    contents = data.get("contents", [look_up(data, ("candidates", "0", "content"))])
    if isinstance(contents, list) and as_object((contents or [None])[-1]).get("role") == "model":
        return Trace((read_gemini_parts(objects(contents[-1], "parts")).message,))
    choice = look_up(data, ("choices", "0", "message"))
    message = data.get("message") if choice is MISSING else choice
    return read_conversation([message if isinstance(message, Mapping) else data], ())


def _read_envelope(
    data: dict[str, Any], question: Sequence[Message], waiting: Collection[str]
) -> Trace:
    """The trace of an object with an answer; a warning names the fields that are not read."""
    envelope = _Envelope.parse(data, "a valid envelope")
    trace = _with_calls(_answer(envelope, question, waiting), envelope.tool_calls)
    tokens = envelope.token_usage or _TokenUsage()
    usage = Usage(tokens.input, tokens.output, tokens.cached, cost_usd=envelope.cost_usd)
    usage = usage.or_else(read_usage(tokens.model_extra)).or_else(trace.usage)
    calls = envelope.llm_call_count
    warnings = trace.warnings
    if unread := [describe_json(name) for name in data if name not in _Envelope.model_fields]:
        answer = "output" if envelope.output is not None else "messages"
        warning = f"its reply is read as an envelope with the answer in `{answer}`; the fields "
        names = ", ".join(shortened(unread, _MAX_NAMES))
        warnings = (f"{warning}{names} are not read", *warnings)
    return replace(
        trace,
        llm_call_count=trace.llm_call_count if calls is None else calls,
        usage=usage,
        model=envelope.model or trace.model,
        duration_ms=envelope.duration_ms,
        warnings=warnings,
    )


def _answer(envelope: _Envelope, question: Sequence[Message], waiting: Collection[str]) -> Trace:
    """The messages with their figures, as far as these show them.

    A string `output` is the answer after a list of messages; `text` is the answer if the messages
    have none."""
    output, text, listed = envelope.output, envelope.text, envelope.messages
    if output is None and text is None and listed is None:
        raise ValueError("the reply has no answer: `output`, `text` and `messages` are null")
    if isinstance(output, list) and listed is not None and output != listed:
        raise ValueError(
            "the reply has two different lists of messages, in `output` and in `messages`; give one"
        )
    # An empty text does not replace the text of the messages.
    stated = output if isinstance(output, str) and output.strip() else None
    raw, field = (output, "output") if isinstance(output, list) else (listed, "messages")
    if raw is None:
        answer = stated or text
        return Trace((Message("assistant", answer),) if answer else ())
    trace = read_conversation(raw, question, waiting)
    if trace is None:  # it has no message of the agent
        trace = Trace(_read_each(read_message, raw, field))
    last = trace.output
    final = stated or ("" if last else text)
    if not final or final == last:
        return trace
    messages = (*trace.messages, Message("assistant", final))
    return replace(trace, messages=messages, llm_call_count=trace.llm_call_count or None)


def _with_calls(trace: Trace, listed: Sequence[Any] | None) -> Trace:
    """The trace with the tool calls that the envelope lists; ValueError if its messages have other
    ones."""
    if listed is None:
        return trace
    calls = _read_each(read_tool_call, listed, "tool_calls")
    if shown := list_calls(trace.messages):
        if [call.name for call in shown] != [call.name for call in calls]:
            raise ValueError(
                "the reply has two different lists of tool calls, in `tool_calls` and in its "
                "messages; give one"
            )
        return replace(trace, tool_calls=shown)
    messages = [*trace.messages]
    answers = [index for index, message in enumerate(messages) if message.role == "assistant"]
    if answers:
        messages[answers[-1]] = replace(messages[answers[-1]], tool_calls=calls)
    elif calls:
        messages.append(Message("assistant", "", tool_calls=calls))
    return replace(trace, messages=tuple(messages), tool_calls=calls)


def _read_each(read: Callable[[Any], Item], items: Sequence[Any], field: str) -> tuple[Item, ...]:
    values = []
    for index, item in enumerate(items):
        try:
            values.append(read(item))
        except ValueError as error:
            raise ValueError(f"the reply's `{field}[{index}]` is not valid: {error}") from None
    return tuple(values)
