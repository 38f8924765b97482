"""The reply of a service as a stream of server-sent events: texts at a path, or the chunks of
OpenAI's chat format.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import decoded, look_up, shown
from agentevals_action.targets.apis.openai_chat import read_completion
from agentevals_action.targets.replies.formats.base import joined_text
from agentevals_action.targets.reply_model import IfValid, ReplyModel

_LINE_END = re.compile(r"\r\n|\r|\n")
_DONE = "[DONE]"


def read_stream(text: str, path: Sequence[str] | None) -> Trace:
    """The trace of a stream: the texts at a path of its events, joined, or without a path the
    chunks of OpenAI's chat format in it.

    ValueError if it has none, if one is not valid or reports an error, or if chunks ended before
    the answer did. Texts have no end marker: where such a stream ends, the answer ends."""
    events: list[Any] = []
    is_done = False
    for name, data in _events(text):
        if is_done := data.strip() == _DONE:
            break
        value = decoded(data)
        error = value.get("error") if isinstance(value, Mapping) else None
        if name == "error" or error:
            raise ValueError(f"the stream reports an error: {shown(error or value)}")
        events.append(value)
    if path is None:
        chunks = [event for event in events if isinstance(event, Mapping) and "choices" in event]
        if chunks:
            return _completion(chunks, is_done)
    texts = [] if path is None else [look_up(event, path) for event in events]
    answer = "".join(text for text in texts if isinstance(text, str))
    if not answer:
        first = f"; its first event is {shown(events[0])}" if events else ""
        advice = "write the path of the text in an event as `output_path`"
        raise ValueError(f"the stream has no text{first}; {advice}")
    return Trace(messages=(Message("assistant", answer),))


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
    for data in chunks:
        chunk = _Chunk.parse(data, "a valid chunk of a chat completion")
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
    known = {
        name: chunk[name] for chunk in chunks for name in ("model", "usage") if chunk.get(name)
    }
    trace = read_completion(
        {
            **known,
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
