"""The common parts of the agents' JSON streams: lines, fields of events, tool calls, failures."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from agentevals_action.formatting import cut_line
from agentevals_action.model import json_values
from agentevals_action.model.json_values import parse_json
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace, text_of

#: The meaning of a failure for later calls: every call will fail, the rate limit is reached, a
#: retry may succeed, or only this call failed.
Severity = Literal["dead", "limited", "transient", "own"]

_STATUS = re.compile(r"(?:\bstatus(?: code)?:?|\berror:?|\bHTTP)\s*\(?([45]\d\d)\b", re.IGNORECASE)
_SHOWN = 500  # characters of a message that an error quotes
_LINE_SHOWN = 80


class Event:
    """A JSON object of a stream. A field of another type than the expected one counts as
    missing."""

    def __init__(self, data: Any) -> None:
        self._data = json_values.members(data)

    @property
    def type(self) -> str:
        """The `type` field."""
        return self.text("type")

    def __contains__(self, name: str) -> bool:
        return name in self._data

    def value(self, name: str) -> Any:
        """A field of any type; None if it is missing."""
        return self._data.get(name)

    def text(self, name: str) -> str:
        """A string; empty if it is missing."""
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def count(self, name: str) -> int | None:
        """A whole number of at least 0."""
        return json_values.count(self.value(name))

    def amount(self, name: str) -> float | None:
        """A finite number of at least 0."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) and value >= 0 else None

    def object(self, name: str) -> "Event":
        """An object; empty if it is missing."""
        return Event(self.value(name))

    def objects(self, name: str) -> list["Event"]:
        """The objects in a list, or in an object's values."""
        value = self.value(name)
        items = list(value.values()) if isinstance(value, Mapping) else value
        items = items if isinstance(items, list) else []
        return [Event(item) for item in items if isinstance(item, Mapping)]


@dataclass(frozen=True)
class Failure:
    """A failure that the stream reports."""

    message: str
    severity: Severity = "own"


@dataclass(frozen=True)
class Outcome:
    """The content of a stream; `ended`: it contains the agent's own end of the run."""

    trace: Trace
    ended: bool
    failure: Failure | None = None


@dataclass(frozen=True)
class Lines:
    """The events of a stream, the text between them, and a description of the first line that is
    neither valid JSON nor text."""

    events: tuple[Event, ...]
    text: str = ""
    broken: str = ""


def read_lines(stream: str) -> Lines:
    """The lines of a stream: one JSON object with a `type` a line, or text of the program. A line
    that begins like an object and is not valid JSON is broken."""
    events: list[Event] = []
    text: list[str] = []
    broken = ""
    for number, line in enumerate(stream.split("\n"), 1):
        if not line.lstrip().startswith("{"):
            text += [line] if line.strip() else []
            continue
        try:
            event = Event(parse_json(line))
        except ValueError:
            shown = cut_line(line, _LINE_SHOWN)
            broken = broken or f"line {number} of its stream is not valid JSON: {shown}"
            continue
        if isinstance(event.value("type"), str):
            events.append(event)
    return Lines(tuple(events), "\n".join(text), broken)


def last(events: Sequence[Event], *types: str) -> Event | None:
    """The last event of one of these types."""
    return next((event for event in reversed(events) if event.type in types), None)


def failure(message: str, status: int | None = None, severity: Severity | None = None) -> Failure:
    """A failure; its severity is as given, else by the HTTP status of the vendor, else by a status
    in the message."""
    message = cut_line(message, _SHOWN) or "the agent gave no reason"
    if severity is not None:
        return Failure(message, severity)
    if status is None:
        found = _STATUS.search(message)
        status = int(found[1]) if found else 0
    if status in (401, 403, 404):
        return Failure(message, "dead")
    if status == 429:
        return Failure(message, "limited")
    return Failure(message, "transient" if status in (408, 409) or status >= 500 else "own")


def milliseconds(start: Any, end: Any) -> float | None:
    """The time between two timestamps (ISO 8601); None if one is invalid or they run backwards."""
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):  # not a text, not a timestamp, or one of them without a zone
        return None
    return round(passed * 1000, 3) if passed >= 0 else None


@dataclass(frozen=True)
class Finished:
    """The result of a tool call, and its duration in milliseconds (None: unknown)."""

    output: Any = None
    duration_ms: float | None = None


def add_results(
    messages: Sequence[Message], results: Mapping[str, Finished]
) -> tuple[Message, ...]:
    """The messages with the results of their tool calls, by the id of the call."""

    def finish(call: ToolCall) -> ToolCall:
        end = results.get(call.id or "")
        return replace(call, output=end.output, duration_ms=end.duration_ms) if end else call

    return tuple(
        replace(message, tool_calls=tuple(map(finish, message.tool_calls))) for message in messages
    )


def calls_of(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The tool calls of messages, in order."""
    return tuple(call for message in messages for call in message.tool_calls)


def add_answer(messages: Sequence[Message], answer: str) -> tuple[Message, ...]:
    """The messages, with the agent's final answer as one more message unless the last one already
    ends with it."""
    answers = (text_of(message) for message in reversed(messages) if message.role == "assistant")
    if not answer.strip() or next(answers, "").strip().endswith(answer.strip()):
        return tuple(messages)
    return (*messages, Message("assistant", answer))
