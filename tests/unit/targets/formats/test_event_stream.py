"""Replies that are streams of events."""

import json
from typing import Any

import pytest

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.formats.event_stream import read_stream

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 8},
}


def streamed(*events: Any, end: str = "data: [DONE]\n\n", path: str = "") -> Trace:
    lines = (event if isinstance(event, str) else json.dumps(event) for event in events)
    text = "".join(f"data: {line}\n\n" for line in lines) + end
    return read_stream(text, path.split(".") if path else None)


def failed(*events: Any, **fields: Any) -> str:
    with pytest.raises(ValueError, match=r"^") as caught:
        streamed(*events, **fields)
    return str(caught.value)


def chunk(delta: Any = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"object": "chat.completion.chunk", "model": "gpt-5", "choices": choices, **fields}


def test_stream__the_chunks_of_openai() -> None:
    part = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": '{"what":'}}
    rest = {"index": 0, "function": {"arguments": ' "eggs"}'}}
    trace = streamed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "I lo"}),
        chunk({"content": "ok"}),
        chunk({"tool_calls": [part]}),
        chunk({"tool_calls": [rest]}),
        chunk({}, "tool_calls"),
        chunk(usage=USAGE),
    )
    call = ToolCall("find", {"what": "eggs"}, id="c1")
    assert trace.messages == (Message("assistant", "I look", tool_calls=(call,)),)
    assert (trace.tool_calls, trace.llm_call_count) == ((call,), None)
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.model) == (20, 5, "gpt-5")


def test_stream__tool_calls_that_it_does_not_show_are_unknown() -> None:
    assert streamed(chunk({"content": "hi"}, "stop"), end="").tool_calls is None


def test_stream__chunks_that_end_early_are_an_error() -> None:
    assert "ended before the answer did" in failed(chunk({"content": "I lo"}), end="")
    assert "content filter" in failed(chunk({"content": "I lo"}, "content_filter"))


@pytest.mark.parametrize(
    ("delta", "problem"),
    [
        ({"tool_calls": 5}, "`tool_calls` is not a list"),
        ({"tool_calls": [5]}, "`tool_calls[0]` is not an object"),
        ({"tool_calls": [{"index": 0}]}, "a tool call that is not valid"),
        ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, "a tool call that is not valid"),
        ({"tool_calls": [{"function": {"name": 5}}]}, "a tool call that is not valid"),
        ({"content": 5}, "a content is not a text"),
        ("hi", "`delta` is not an object"),
    ],
)
def test_stream__a_chunk_that_is_not_valid_is_an_error(delta: Any, problem: str) -> None:
    assert problem in failed(chunk({"content": "hi"}), chunk(delta, "stop"))


def test_stream__a_chunk_with_parts_of_text() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "hi"}]
    assert streamed(chunk({"content": parts, "tool_calls": None}, "stop")).output == "hi"


def test_stream__the_texts_at_the_output_path() -> None:
    trace = streamed(
        {"type": "text", "value": {"text": "Hel"}},
        {"type": "thought", "value": {}},
        {"type": "text", "value": {"text": "lo  42"}},
        path="value.text",
    )
    assert (trace.output, trace.tool_calls) == ("Hello  42", None)


def test_stream__every_line_end_comments_and_an_unfinished_last_event() -> None:
    body = ': ping\r\rdata:{"t": "a"}\revent: x\n\ndata: {"t":\ndata: "b"}\r\nid: 1\r\n\r\ndata: {"t": "c"}'
    assert read_stream(body, ["t"]).output == "abc"


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (({"delta": "Hel"}, {"error": {"message": "no credit"}}), "no credit"),
        (("x\nevent: error",), "the stream reports an error"),
        (({"type": "start", "id": 7},), 'its first event is {"type": "start", "id": 7}'),
        ((), "the stream has no text"),
        (("x",), 'its first event is "x"; write the path of the text in an event'),
    ],
)
def test_stream__without_an_answer_is_an_error(events: tuple[Any, ...], problem: str) -> None:
    assert problem in failed(*events)
