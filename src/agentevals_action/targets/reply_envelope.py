"""What a command or a service replied: an envelope of answer and figures, or the answer's text
alone."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from agentevals_action.model.messages import read_message
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace, text_of

_ANSWER = frozenset({"output", "text", "messages"})
_FIGURES = frozenset({"token_usage", "cost_usd", "duration_ms", "llm_call_count"})


def read_reply(text: str) -> Trace:
    """The trace of a reply. An envelope is a JSON object with an answer (`output`, `text`,
    `messages`) and nothing but figures beside it; ValueError when something in one is of the wrong
    type."""
    data = _json_object(text)
    if data is None or _ANSWER.isdisjoint(data) or not data.keys() <= _ANSWER | _FIGURES:
        return Trace(messages=(Message("assistant", text.rstrip("\r\n")),), llm_call_count=1)
    messages, calls = _answer(data)
    usage = _optional(data, "token_usage", Mapping, "an object") or {}
    reported = _count(data, "llm_call_count")
    return Trace(
        messages=messages,
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        llm_call_count=calls if reported is None else reported,
        input_tokens=_count(usage, "input", "token_usage.input"),
        output_tokens=_count(usage, "output", "token_usage.output"),
        cached_tokens=_count(usage, "cached", "token_usage.cached"),
        cost_usd=_amount(data, "cost_usd"),
        duration_ms=_amount(data, "duration_ms"),
    )


def trace_of(messages: Sequence[Message]) -> Trace:
    """The trace of a reply that shows every message: what it does not show did not happen."""
    return Trace(
        messages=tuple(messages),
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        llm_call_count=_llm_calls(messages),
    )


def _llm_calls(messages: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)


def _json_object(text: str) -> Mapping[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):  # text that merely looks like JSON is text
        return None
    return data if isinstance(data, dict) else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _answer(data: Mapping[str, Any]) -> tuple[tuple[Message, ...], int]:
    """The messages, and how many calls of a model they show.

    Beside a list of messages, a string `output` is the answer given after them; `text` stands in
    where they hold none."""
    output = _optional(data, "output", (str, list), "a string or a list of messages")
    text = _optional(data, "text", str, "a string")
    listed = _optional(data, "messages", list, "a list of messages")
    if isinstance(output, list) and listed is not None and output != listed:
        raise ValueError(
            "the reply has two different lists of messages, in `output` and in `messages`; give one"
        )
    raw = output if isinstance(output, list) else listed
    if raw is None:
        answer = output if isinstance(output, str) else text
        if answer is None:
            raise ValueError("the reply has no answer: `output`, `text` and `messages` are null")
        return (Message("assistant", answer),), 1
    messages = _messages(raw, "output" if isinstance(output, list) else "messages")
    last = next(
        (text_of(message) for message in reversed(messages) if message.role == "assistant"), ""
    )
    final = output if isinstance(output, str) and output != last else text if not last else None
    if final is None:
        return messages, _llm_calls(messages)
    return (*messages, Message("assistant", final)), max(_llm_calls(messages), 1)


def _messages(raw: Sequence[Any], field: str) -> tuple[Message, ...]:
    messages = []
    for place, item in enumerate(raw):
        try:
            messages.append(read_message(item))
        except ValueError as error:
            raise ValueError(f"the reply's `{field}[{place}]` is wrong: {error}") from None
    return tuple(messages)


def _optional(data: Mapping[str, Any], key: str, types: type | tuple[type, ...], what: str) -> Any:
    value = data.get(key)
    if value is not None and not isinstance(value, types):
        raise ValueError(f"the reply's `{key}` is not {what}")
    return value


def _count(data: Mapping[str, Any], key: str, shown: str = "") -> int | None:
    number = _amount(data, key, shown)
    if number is not None and number != int(number):
        raise ValueError(f"the reply's `{shown or key}` is not a whole number")
    return None if number is None else int(number)


def _amount(data: Mapping[str, Any], key: str, shown: str = "") -> float | None:
    value = data.get(key)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < 0
    ):
        raise ValueError(f"the reply's `{shown or key}` is not a number from 0 on")
    return value
