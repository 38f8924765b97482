"""The reply of a service as a stream of server-sent events: deltas of a text, or the chunks of
OpenAI's chat format.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import MISSING, decoded, look_up, shown
from agentevals_action.targets.apis.openai_chat import read_completion
from agentevals_action.targets.replies.formats.base import joined_text
from agentevals_action.targets.reply_model import IfValid, ReplyModel

_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
#: The fields of an event without a `type` that are a delta of the text.
_DELTAS = ("delta", "text")
#: The names of the events that are the answer; others are pings, logs, thoughts.
_ANSWERS = ("", "message", *_DELTAS)


@dataclass(frozen=True)
class ServerSentEvent:
    """The data of an event, JSON or text, and its name, empty without one."""

    data: Any
    name: str = ""


@dataclass(frozen=True)
class Stream:
    """The events before `[DONE]`. `is_done`: there was a `[DONE]`."""

    events: tuple[ServerSentEvent, ...]
    is_done: bool

    def last(self, path: Sequence[str]) -> Any:
        """The value at a path in the last event that has one; MISSING if none has."""
        found = (look_up(event.data, path) for event in reversed(self.events))
        return next((value for value in found if value not in (MISSING, None)), MISSING)


def read_stream(text: str) -> Stream:
    """The events of a stream. ValueError if one of them reports an error."""
    events: list[ServerSentEvent] = []
    for name, data in _events(text):
        if data.strip() == _DONE:
            return Stream(tuple(events), is_done=True)
        value = decoded(data)
        value = value if isinstance(value, Mapping | list | str) else data  # a delta of plain text
        error = value.get("error") if isinstance(value, Mapping) else None
        if name == "error" or error:
            raise ValueError(f"the stream reports an error: {shown(error or value)}")
        events.append(ServerSentEvent(value, name))
    return Stream(tuple(events), is_done=False)


def _events(text: str) -> Iterator[tuple[str, str]]:
    """The name and the data of each event; the last one need not end with an empty line."""
    name, data = "", list[str]()
    for line in (*_LINE_END.split(text), ""):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []


def answer_of(stream: Stream, path: Sequence[str] | None) -> Trace:
    """The trace of a stream: the texts at a path of its events, joined, or without a path the
    chunks of OpenAI's format, or the deltas, of the events with a name of `_ANSWERS`.

    ValueError if there are none, if one is not valid, or if chunks ended before the answer did.
    Texts and deltas have no end marker: where such a stream ends, the answer ends."""
    data = [event.data for event in stream.events if path is not None or event.name in _ANSWERS]
    chunks = [one for one in data if isinstance(one, Mapping) and "choices" in one]
    if path is None and chunks:
        return _completion(chunks, stream.is_done)
    found = [_delta(one) if path is None else look_up(one, path) for one in data]
    answer = "".join(text for text in found if isinstance(text, str))
    if not answer:
        raise ValueError(
            f"the stream has no text{_first(stream)}; write the path of the text in an event as "
            "`output_path`, or send texts in events without a name"
        )
    return Trace(messages=(Message("assistant", answer),))


def _first(stream: Stream) -> str:
    if not stream.events:
        return ""
    first = stream.events[0]
    name = f" {shown(first.name)} with" if first.name else ""
    return f"; its first event is{name} {shown(first.data)}"


def _delta(data: Any) -> Any:
    """The text of an event, if it has one; ValueError if its delta is not a text."""
    if not isinstance(data, Mapping) or "type" in data:
        return data
    name = next((name for name in _DELTAS if data.get(name) is not None), None)
    if name is not None and not isinstance(data[name], str):
        raise ValueError(
            f"the stream has an event whose `{name}` is not a text: {shown(data)}; write the path "
            "of the text in an event as `output_path`"
        )
    return None if name is None else data[name]


class _FunctionPart(ReplyModel):
    name: str | None = None
    arguments: str | None = None


class _CallPart(ReplyModel):
    index: int | None = None
    id: IfValid[str] = None
    function: _FunctionPart


class _Delta(ReplyModel):
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[_CallPart] | None = None


class _Choice(ReplyModel):
    delta: _Delta | None = None
    finish_reason: IfValid[str] = None


class _Chunk(ReplyModel):
    choices: list[_Choice] | None = None


def _completion(chunks: Sequence[Mapping[str, Any]], is_done: bool) -> Trace:
    """The trace of the chunks of a completion. The calls of the service's own model and, if it
    shows none, those of tools are unknown."""
    texts, refusals, calls = list[str](), list[str](), dict[int, dict[str, Any]]()
    finish = None
    for one in chunks:
        chunk = _Chunk.parse(one, "a valid chunk of a chat completion")
        for choice in (chunk.choices or ())[:1]:
            finish = choice.finish_reason or finish
            delta = choice.delta or _Delta()
            texts.append(joined_text(delta.content))
            refusals.append(delta.refusal or "")
            for part in delta.tool_calls or ():
                _add_call(calls, part)
    if not is_done and finish is None:
        raise ValueError("the stream ended before the answer did")
    message = {
        "content": "".join(texts),
        "refusal": "".join(refusals),
        "tool_calls": [calls[index] for index in sorted(calls)],
    }
    stream = Stream(tuple(map(ServerSentEvent, chunks)), is_done)
    known = {name: stream.last((name,)) for name in ("model", "usage")}
    trace = read_completion(
        {
            **{name: value for name, value in known.items() if value is not MISSING},
            "choices": [{"message": message, "finish_reason": finish}],
        }
    )
    return replace(trace, llm_call_count=None, tool_calls=trace.tool_calls or None)


def _add_call(calls: dict[int, dict[str, Any]], part: _CallPart) -> None:
    """Adds a piece of a tool call, whose arguments arrive in pieces."""
    index = len(calls) if part.index is None else part.index
    empty = {"id": part.id, "function": {"name": "", "arguments": ""}}
    function = calls.setdefault(index, empty)["function"]
    function["name"] += part.function.name or ""
    function["arguments"] += part.function.arguments or ""
