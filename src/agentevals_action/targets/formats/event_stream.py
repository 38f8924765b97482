"""The reply of a service as a stream of server-sent events: texts at a path, or the chunks of
OpenAI's chat format.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import decoded, look_up, shown
from agentevals_action.targets.formats.openai_chat import read_chunks

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
            return read_chunks(chunks, is_done)
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
