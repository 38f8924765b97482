"""The reply of a service as a stream of server-sent events: deltas of a text, or the chunks of
OpenAI's chat format.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.json_values import MISSING, look_up, parse_json, shown
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis.openai_chat import read_completion

_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"
#: The fields of an event without a `type` that are a delta of the text.
_DELTAS = ("delta", "text")


@dataclass(frozen=True)
class Stream:
    """The data of the events before `[DONE]`: JSON, or text. `is_done`: there was a `[DONE]`."""

    events: tuple[Any, ...]
    is_done: bool

    def last(self, path: Sequence[str]) -> Any:
        """The value at a path in the last event that has one; MISSING if none has."""
        found = (look_up(event, path) for event in reversed(self.events))
        return next((value for value in found if value not in (MISSING, None)), MISSING)


def read_stream(text: str) -> Stream:
    """The events of a stream. ValueError if one of them reports an error."""
    events: list[Any] = []
    for name, data in _events(text):
        if data.strip() == _DONE:
            return Stream(tuple(events), is_done=True)
        value: Any = data
        with contextlib.suppress(ValueError):  # a delta of plain text
            parsed = parse_json(data)
            value = parsed if isinstance(parsed, Mapping | list | str) else data
        error = value.get("error") if isinstance(value, Mapping) else None
        if name == "error" or error:
            raise ValueError(f"the stream reports an error: {shown(error or value)}")
        events.append(value)
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
    chunks of OpenAI's format, or the deltas. ValueError if there are none, or it ended early."""
    chunks = [one for one in stream.events if isinstance(one, Mapping) and "choices" in one]
    if path is None and chunks:
        return _completion(chunks, stream.is_done)
    found = [_delta(event) if path is None else look_up(event, path) for event in stream.events]
    answer = "".join(text for text in found if isinstance(text, str))
    if not answer:
        first = next(iter(stream.events), None)
        fields = f"; its first event is {shown(first)}" if stream.events else ""
        raise ValueError(
            f"the stream has no text{fields}; write the path of the text in an event as "
            "`output_path`"
        )
    return Trace(messages=(Message("assistant", answer),))


def _delta(event: Any) -> Any:
    if isinstance(event, Mapping) and "type" not in event:
        return next((event[name] for name in _DELTAS if isinstance(event.get(name), str)), None)
    return event


def _completion(chunks: Sequence[Mapping[str, Any]], is_done: bool) -> Trace:
    """The trace of the chunks of a completion. The calls of the service's own model and, if it
    shows none, those of tools are unknown."""
    texts, refusals, calls = list[str](), list[str](), dict[int, dict[str, Any]]()
    finish = None
    for chunk in chunks:
        choice = look_up(chunk, ("choices", "0"))
        choice = choice if isinstance(choice, Mapping) else {}
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        delta = delta if isinstance(delta, Mapping) else {}
        for name, parts in (("content", texts), ("refusal", refusals)):
            parts += [part] if isinstance(part := delta.get(name), str) else []
        for part in delta.get("tool_calls") or ():
            _add_call(calls, part)
    if not is_done and finish is None:
        raise ValueError("the stream ended before the answer did")
    message = {
        "content": "".join(texts),
        "refusal": "".join(refusals),
        "tool_calls": [calls[index] for index in sorted(calls)],
    }
    stream = Stream(tuple(chunks), is_done)
    known = {name: stream.last((name,)) for name in ("model", "usage")}
    trace = read_completion(
        {
            **{name: value for name, value in known.items() if value is not MISSING},
            "choices": [{"message": message, "finish_reason": finish}],
        }
    )
    return replace(trace, llm_call_count=None, tool_calls=trace.tool_calls or None)


def _add_call(calls: dict[int, dict[str, Any]], part: Any) -> None:
    """Adds a piece of a tool call, whose arguments arrive in pieces."""
    index = part.get("index", len(calls)) if isinstance(part, Mapping) else None
    function = part.get("function") if isinstance(part, Mapping) else None
    if not isinstance(index, int) or not isinstance(function, Mapping):
        raise ValueError("the stream has a tool call without a function")
    empty = {"id": part.get("id"), "function": {"name": "", "arguments": ""}}
    call = calls.setdefault(index, empty)
    for name in ("name", "arguments"):
        call["function"][name] += function.get(name) or ""
