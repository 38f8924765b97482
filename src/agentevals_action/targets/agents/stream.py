"""Pure: what the JSON streams of agents have in common: lines, times, how they say that something
failed."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from agentevals_action.model import json_values
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace

#: What a failure means for the next call: the target refuses everybody, asks for patience, may do
#: better, or this call alone failed.
Weight = Literal["dead", "limited", "transient", "own"]
Event = Mapping[str, Any]

_PASSING = frozenset({408, 409})
_STATUS = re.compile(r"(?:\bstatus(?: code)?:?|\berror:?|\bHTTP)\s*\(?([45]\d\d)\b", re.IGNORECASE)
_SHOWN = 500  # characters of a message that an error quotes
_LINE_SHOWN = 80


@dataclass(frozen=True)
class Failure:
    """A failure as the stream tells it."""

    message: str
    weight: Weight = "own"


@dataclass(frozen=True)
class Outcome:
    """What a stream told: `ended` says that the agent's own last word on the run is in it."""

    trace: Trace
    ended: bool
    failure: Failure | None = None


@dataclass(frozen=True)
class Lines:
    """A stream's lines: its events, the other text in it, and the first line that is neither whole
    JSON nor text, in words."""

    events: tuple[Event, ...]
    text: str = ""
    broken: str = ""


def read_lines(stream: str) -> Lines:
    """The events of a stream, one JSON object with a `type` a line. Text between them is what a
    program says beside its stream; a line that begins as an object and is none is broken."""
    events: list[Event] = []
    text: list[str] = []
    broken = ""
    for number, line in enumerate(stream.split("\n"), 1):
        if not line.lstrip().startswith("{"):
            text += [line] if line.strip() else []
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            broken = (
                broken
                or f"line {number} of its stream is no whole JSON: {quoted(line, _LINE_SHOWN)}"
            )
            continue
        if isinstance(data.get("type"), str):
            events.append(data)
    return Lines(tuple(events), "\n".join(text), broken)


def quoted(text: str, most: int = _SHOWN) -> str:
    """A text on one line, cut to a number of characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def failure(message: str, status: int | None = None, weight: Weight | None = None) -> Failure:
    """A failure with what it means: as given, else by the HTTP status that the vendor answered,
    else by one that the message names."""
    message = quoted(message) or "the agent did not say why"
    if weight is None:
        found = _STATUS.search(message)
        weight = _weight(status if status is not None else int(found[1]) if found else None)
    return Failure(message, weight)


def _weight(status: int | None) -> Weight:
    if status in (401, 403, 404):
        return "dead"
    if status == 429:
        return "limited"
    return "transient" if status in _PASSING or (status is not None and status >= 500) else "own"


def amount(value: Any) -> float | None:
    """A number from 0, None in place of anything else."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < 0
    ):
        return None
    return float(value)


def total(values: Sequence[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def text(value: Any) -> str:
    """A string as it is, an empty one in place of anything else."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none in place of anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def milliseconds(start: Any, end: Any) -> float | None:
    """What lies between two timestamps (ISO 8601), None when either is none or they run
    backwards."""
    begun, done = moment(start), moment(end)
    if begun is None or done is None or (begun.tzinfo is None) is not (done.tzinfo is None):
        return None
    passed = (done - begun).total_seconds() * 1000
    return round(passed, 3) if passed >= 0 else None


def moment(value: Any) -> datetime | None:
    """A timestamp (ISO 8601); None when it is none."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Finished:
    """How a tool call ended: what it gave, and how long it took in milliseconds, None where that is
    not known."""

    output: Any = None
    duration_ms: float | None = None


def with_ends(messages: Sequence[Message], ends: Mapping[str, Finished]) -> tuple[Message, ...]:
    """The messages, their tool calls with how each ended, by the call's id."""
    return tuple(
        replace(message, tool_calls=tuple(_ended(call, ends) for call in message.tool_calls))
        for message in messages
    )


def _ended(call: ToolCall, ends: Mapping[str, Finished]) -> ToolCall:
    end = ends.get(call.id or "")
    return replace(call, output=end.output, duration_ms=end.duration_ms) if end else call


def calls_of(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Every tool call of these messages, in order."""
    return tuple(call for message in messages for call in message.tool_calls)


def with_answer(messages: Sequence[Message], answer: str) -> tuple[Message, ...]:
    """The messages, the last of which says the answer that the agent reports; one more where none
    does."""
    last = next(
        (message.content for message in reversed(messages) if message.role == "assistant"), ""
    )
    if not answer.strip() or (isinstance(last, str) and last.strip().endswith(answer.strip())):
        return tuple(messages)
    return (*messages, Message("assistant", answer))


def member(event: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The object at the end of these names, an empty one where there is none."""
    found: Any = event
    for name in names:
        found = json_values.members(found).get(name)
    return json_values.members(found)
