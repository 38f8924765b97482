"""The events of an agent's JSON stream, and their common parts: fields, tool calls, failures.

All agents use one name and one form of arguments for a tool, those of Claude Code: `Bash`
(`command`), `Read`, `Write`, `Edit` (`file_path`), `Glob`, `Grep`, `WebFetch`, `WebSearch`, `Skill`
(`skill`), `Agent` (a sub-agent: `prompt`), `mcp__server__tool`."""

import functools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agentevals_action.errors import AttemptError, NoCredit, TargetDead, TransientError
from agentevals_action.formatting import cut_line
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Usage, list_calls
from agentevals_action.system.redaction import redact
from agentevals_action.targets.dialects import blocks
from agentevals_action.targets.dialects.blocks import ToolResult
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.validation import json_values
from agentevals_action.validation.json_values import parse_json

_STATUS = re.compile(r"(?:\bstatus(?: code)?:?|\berror:?|\bHTTP)\s*\(?([45]\d\d)\b", re.IGNORECASE)
_LINE_SHOWN = 80

#: The error of a rate limit.
_rate_limit = functools.partial(TransientError, limited=True)
#: The errors for the codes with which Claude Code and Copilot name them.
_BY_CODE: Mapping[str, Callable[[str], AttemptError]] = {
    **dict.fromkeys(("authentication", "authentication_failed", "authorization"), TargetDead),
    **dict.fromkeys(("oauth_org_not_allowed", "model_not_found"), TargetDead),
    **dict.fromkeys(("billing_error", "quota"), NoCredit),
    **dict.fromkeys(("overloaded", "server_error"), TransientError),
    "rate_limit": _rate_limit,
}
#: Parts of messages about a missing or wrong login.
NO_LOGIN = re.compile(
    "no authentication|not authenticated|failed to authenticate|authentication token"
    "|bad credentials|not logged in|codex login|/login|invalid.api.key|api key not valid"
    "|must specify the gemini_api_key",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|models?\b.*(?:does not exist|is not supported|not found)", re.IGNORECASE
)
_NO_CREDIT = re.compile(
    "usage limit|quota exceeded|insufficient_quota|exceeded your current quota"
    "|credit balance is too low",
    re.IGNORECASE,
)
_LIMITED = re.compile("rate limit", re.IGNORECASE)
#: Parts of messages about failures that have no status.
_TRANSIENT = re.compile(
    "high demand|overloaded|at capacity|timed out|disconnected|connection|fetch failed"
    "|socket hang up|econnreset|network",
    re.IGNORECASE,
)


class Event:
    """A JSON object of a stream. A field of another type than the expected one counts as
    missing. `arrived` is the time at which its line arrived, in milliseconds of a clock that never
    runs backwards; None if it is unknown."""

    def __init__(self, data: Any = None, arrived: float | None = None) -> None:
        self._data = json_values.as_object(data)
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
        return json_values.as_count(self.value(name))

    def amount(self, name: str) -> float | None:
        """A finite number of at least 0."""
        return json_values.as_amount(self.value(name))

    def usage(self, name: str) -> Usage:
        """The tokens of a call, or of a model."""
        return read_usage(self.value(name))

    def object(self, name: str) -> "Event":
        """An object; empty if it is missing."""
        return Event(self.value(name))

    def objects(self, name: str) -> list["Event"]:
        """The objects in a list, or in an object's values."""
        value = self.value(name)
        items = list(value.values()) if isinstance(value, Mapping) else value
        items = items if isinstance(items, list) else []
        return [Event(item) for item in items if isinstance(item, Mapping)]


class Stream:
    """A stream that is read as it arrives: one JSON object with a `type` a line (`events`), or
    lines of text of the program. `broken` describes the first line that begins like an object and
    is not valid JSON."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.text: list[str] = []
        self.broken = ""
        self._numbered = 0
        self._partial = bytearray()

    def add(self, data: bytes) -> Sequence[Event]:
        """Takes the next bytes; the events that they complete."""
        count = len(self.events)
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = bytes(self._partial) + complete[0]
            self._partial.clear()
        self._partial += rest
        for line in complete:
            self._add_line(line)
        return self.events[count:]

    def _add_line(self, data: bytes) -> None:
        self._numbered += 1
        line = redact(data.decode("utf-8", "replace"))
        if not line.lstrip().startswith("{"):
            self.text += [line] if line.strip() else []
            return
        try:
            event = Event(parse_json(line), time.monotonic() * 1000)
        except ValueError:
            shown = cut_line(line, _LINE_SHOWN)
            problem = f"line {self._numbered} of its stream is not valid JSON: {shown}"
            self.broken = self.broken or problem
            return
        if event.type:
            self.events.append(event)


def last(events: Sequence[Event], *types: str) -> Event:
    """The last event of one of these types; an empty one if there is none."""
    return next((event for event in reversed(events) if event.type in types), Event())


def failure(message: str, status: int | None = None, code: str = "") -> AttemptError:
    """The error for a message of an agent, by its code, what it says, and an HTTP status of the
    vendor: the given one, else that in the message."""
    if _NO_CREDIT.search(message):
        return NoCredit(message)
    if code in _BY_CODE:
        return _BY_CODE[code](message)
    if status is None and (match := _STATUS.search(message)):
        status = int(match[1])
    if status in (401, 403, 404) or NO_LOGIN.search(message) or _NO_MODEL.search(message):
        return TargetDead(message)
    if status == 429 or _LIMITED.search(message):
        return _rate_limit(message)
    is_transient = _TRANSIENT.search(message) if status is None else status >= 500
    if is_transient or status in (408, 409):
        return TransientError(message)
    return AttemptError("target", message)


def milliseconds(start: Any, end: Any) -> float | None:
    """The time between two timestamps (ISO 8601); None if one is invalid or they run backwards."""
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):  # not a text, not a timestamp, or one of them without a zone
        return None
    return round(passed * 1000, 3) if passed >= 0 else None


def milliseconds_between(start: Event, end: Event) -> float | None:
    """The time between the arrivals of two events; None if one is unknown."""
    if start.arrived is None or end.arrived is None:
        return None
    return round(end.arrived - start.arrived, 3)


def add_results(messages: Iterable[Message], results: Iterable[ToolResult]) -> tuple[Message, ...]:
    """The messages with the results of their tool calls; the last one of a call counts."""
    last_of = {result.call_id: result for result in results}
    return tuple(
        replace(message, tool_calls=blocks.add_results(message.tool_calls, last_of))
        for message in messages
    )


def common_call(
    name: str,
    arguments: Any,
    call_id: str,
    names: Mapping[str, str],
    fields: Mapping[str, Mapping[str, str]],
) -> ToolCall:
    """A tool call with its common name (`names`), and the common names of its arguments (`fields`,
    by the name of the tool)."""
    name = names.get(name, name)
    if isinstance(arguments, Mapping):
        common = fields.get(name, {})
        arguments = {common.get(field, field): value for field, value in arguments.items()}
    return ToolCall(name, arguments, id=call_id or None)


def known_calls(
    messages: Sequence[Message], reported: int | None = None
) -> tuple[ToolCall, ...] | None:
    """The tool calls of an agent whose stream does not contain those of its sub-agents: None if it
    called one, or if it `reported` more calls."""
    calls = list_calls(messages)
    has_more = (reported or 0) > len(calls) or any(call.name == "Agent" for call in calls)
    return None if has_more else calls
