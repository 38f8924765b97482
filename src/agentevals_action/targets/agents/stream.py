"""The common parts of the agents' JSON streams: lines, fields of events, tool calls, failures.

All agents use one name and one form of arguments for a tool, those of Claude Code: `Bash`
(`command`), `Read`, `Write`, `Edit` (`file_path`), `Glob`, `Grep`, `WebFetch`, `WebSearch`, `Skill`
(`skill`), `Agent` (a sub-agent: `prompt`), `mcp__server__tool`."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from agentevals_action.formatting import cut_line
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.model.validation import json_values
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.system.redaction import redact

#: The meaning of a failure for later calls: every call will fail, the rate limit is reached, a
#: retry may succeed, or only this call failed.
Severity = Literal["dead", "limited", "transient", "own"]

_STATUS = re.compile(r"(?:\bstatus(?: code)?:?|\berror:?|\bHTTP)\s*\(?([45]\d\d)\b", re.IGNORECASE)
_WAIT = re.compile(r"try again in (\d+(?:\.\d+)?) ?(ms|s|m)\b", re.IGNORECASE)
_UNKNOWN_TOOL = re.compile(r"Tool '.*' does not exist\.?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_SHOWN = 500  # characters of a message that an error quotes
_LINE_SHOWN = 80


class StreamEvent:
    """A JSON object of a stream. A field of another type than the expected one counts as
    missing. `arrived` is the time at which its line arrived, in milliseconds of a clock that never
    runs backwards; None if it is unknown."""

    def __init__(self, data: Any, arrived: float | None = None) -> None:
        self._data = json_values.members(data)
        self.arrived = arrived

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
        return json_values.amount(self.value(name))

    def object(self, name: str) -> "StreamEvent":
        """An object; empty if it is missing."""
        return StreamEvent(self.value(name))

    def objects(self, name: str) -> list["StreamEvent"]:
        """The objects in a list, or in an object's values."""
        value = self.value(name)
        items = list(value.values()) if isinstance(value, Mapping) else value
        items = items if isinstance(items, list) else []
        return [StreamEvent(item) for item in items if isinstance(item, Mapping)]


@dataclass(frozen=True)
class Failure:
    """A failure that the stream reports; `retry_after` is in seconds if the vendor gave it."""

    message: str
    severity: Severity = "own"
    retry_after: float | None = None


@dataclass(frozen=True)
class StreamContent:
    """The content of a stream; `ended`: it contains the agent's own end of the run."""

    trace: Trace
    ended: bool
    failure: Failure | None = None


class StreamReader:
    """Reads a stream as it arrives: one JSON object with a `type` a line (`events`), or lines of
    text of the program. `broken` describes the first line that begins like an object and is not
    valid JSON."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.text: list[str] = []
        self.broken = ""
        self._numbered = 0
        self._partial = bytearray()

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = bytes(self._partial) + complete[0]
            self._partial.clear()
        self._partial += rest
        for line in complete:
            self._add_line(line)

    def end(self) -> None:
        """Takes the last line, which may have no end."""
        if self._partial:
            self._add_line(bytes(self._partial))
            self._partial.clear()

    def _add_line(self, data: bytes) -> None:
        self._numbered += 1
        line = redact(data.decode("utf-8", "replace"))
        if not line.lstrip().startswith("{"):
            self.text += [line] if line.strip() else []
            return
        try:
            event = StreamEvent(parse_json(line), time.monotonic() * 1000)
        except ValueError:
            shown = cut_line(line, _LINE_SHOWN)
            problem = f"line {self._numbered} of its stream is not valid JSON: {shown}"
            self.broken = self.broken or problem
            return
        if isinstance(event.value("type"), str):
            self.events.append(event)


def last(events: Sequence[StreamEvent], *types: str) -> StreamEvent | None:
    """The last event of one of these types."""
    return next((event for event in reversed(events) if event.type in types), None)


def failure(message: str, status: int | None = None, severity: Severity | None = None) -> Failure:
    """A failure; its severity is as given, else by the HTTP status of the vendor, else by a status
    in the message. The message may contain the wait."""
    message = cut_line(message, _SHOWN) or "the agent gave no reason"
    if severity is not None:
        return Failure(message, severity, _wait(message))
    if status is None:
        found = _STATUS.search(message)
        status = int(found[1]) if found else 0
    if status in (401, 403, 404):
        return Failure(message, "dead")
    if status == 429:
        return Failure(message, "limited", _wait(message))
    return Failure(message, "transient" if status in (408, 409) or status >= 500 else "own")


def _wait(message: str) -> float | None:
    found = _WAIT.search(message)
    return float(found[1]) * _SECONDS[found[2]] if found else None


def milliseconds(start: Any, end: Any) -> float | None:
    """The time between two timestamps (ISO 8601); None if one is invalid or they run backwards."""
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):  # not a text, not a timestamp, or one of them without a zone
        return None
    return round(passed * 1000, 3) if passed >= 0 else None


def milliseconds_between(start: StreamEvent | None, end: StreamEvent) -> float | None:
    """The time between the arrivals of two events; None if one is unknown."""
    if start is None or start.arrived is None or end.arrived is None:
        return None
    return round(end.arrived - start.arrived, 3)


@dataclass(frozen=True)
class Finished:
    """The result of a tool call, and its duration in milliseconds (None: unknown). `refused`: the
    agent was not permitted to make it."""

    output: Any = None
    duration_ms: float | None = None
    refused: bool = False


def is_refusal(code: str, message: str) -> bool:
    """Whether the error of a call says that the agent may not make it, or has no such tool; in
    the codes and words of Copilot."""
    return (
        code in ("denied", "rejected")
        or message.startswith("Permission denied")
        or _UNKNOWN_TOOL.fullmatch(message) is not None
    )


def add_results(
    messages: Sequence[Message], results: Mapping[str, Finished]
) -> tuple[Message, ...]:
    """The messages with the results of their tool calls, by the id of the call."""

    def finish(call: ToolCall) -> ToolCall:
        end = results.get(call.id or "")
        if end is None:
            return call
        took = None if end.refused else end.duration_ms
        return replace(call, output=end.output, duration_ms=took, refused=end.refused)

    return tuple(
        replace(message, tool_calls=tuple(map(finish, message.tool_calls))) for message in messages
    )


def calls_of(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The tool calls of messages, in order."""
    return tuple(call for message in messages for call in message.tool_calls)


def renamed(arguments: Any, names: Mapping[str, str]) -> Any:
    """The arguments of a call with other names, which replace theirs."""
    if not isinstance(arguments, Mapping):
        return arguments
    return {names.get(name, name): value for name, value in arguments.items()}


def add_answer(messages: Sequence[Message], answer: str) -> tuple[Message, ...]:
    """The messages, with the agent's final answer as one more message unless the last one already
    ends with it."""
    answers = (text_of(message) for message in reversed(messages) if message.role == "assistant")
    if not answer.strip() or next(answers, "").strip().endswith(answer.strip()):
        return tuple(messages)
    return (*messages, Message("assistant", answer))
