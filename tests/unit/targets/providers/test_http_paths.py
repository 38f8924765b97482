"""`http`: replies that are streams of events."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from tests.support import targets
from tests.support.agent_server import AgentServer, Answer
from tests.support.raw_server import RawServer, replies

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 8},
}


def ask(url: str, timeout: float = 30, **fields: Any) -> Trace:
    async def asked() -> Trace:
        definition = {"provider": "http", "url": url, **fields}
        provider = targets.options(definition).connect(targets.context({}))
        try:
            return await provider.complete(targets.request(Path("/"), "hello", timeout=timeout))
        finally:
            await provider.close()

    return asyncio.run(asked())


def answer(body: Any, headers: Mapping[str, str] | None = None, **fields: Any) -> Trace:
    with AgentServer(Answer(body, headers=headers or {})) as server:
        return ask(server.url, **fields)


def streamed(*events: Any, end: str = "data: [DONE]\n\n", **fields: Any) -> Trace:
    lines = (one if isinstance(one, str) else json.dumps(one) for one in events)
    body = "".join(f"data: {line}\n\n" for line in lines) + end
    return answer(body, STREAM, **fields)


def failed(*events: Any, **fields: Any) -> str:
    with pytest.raises(AttemptError) as caught:
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
        ({"tool_calls": 5}, "`choices[0].delta.tool_calls` is not a list"),
        ({"tool_calls": [5]}, "`choices[0].delta.tool_calls[0]` is not an object"),
        ({"tool_calls": [{"index": 0}]}, "`choices[0].delta.tool_calls[0].function` is missing"),
        ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, ".function.arguments` is not"),
        ({"tool_calls": [{"function": {"name": 5}}]}, ".function.name` is not"),
        ({"content": 5}, "`choices[0].delta.content` is not"),
        ("hi", "`choices[0].delta` is not an object"),
    ],
)
def test_stream__a_chunk_that_is_not_valid_is_an_error(delta: Any, problem: str) -> None:
    message = failed(chunk({"content": "hi"}), chunk(delta, "stop"))
    assert "the reply is not a valid chunk of a chat completion" in message
    assert problem in message


def test_stream__a_chunk_with_parts_of_text() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "hi"}]
    assert streamed(chunk({"content": parts, "tool_calls": None}, "stop")).output == "hi"


def test_stream__the_texts_at_the_output_path() -> None:
    trace = streamed(
        {"type": "text", "value": {"text": "Hel"}},
        {"type": "thought", "value": {}},
        {"type": "text", "value": {"text": "lo  42"}},
        output_path="value.text",
    )
    assert (trace.output, trace.tool_calls) == ("Hello  42", None)


def test_stream__every_line_end_comments_and_an_unfinished_last_event() -> None:
    body = ': ping\r\rdata:{"t": "a"}\revent: x\n\ndata: {"t":\ndata: "b"}\r\nid: 1\r\n\r\ndata: {"t": "c"}'
    assert answer(body, STREAM, output_path="t").output == "abc"


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


def test_stream__that_stays_open_ends_with_done() -> None:
    """A server may keep the connection for later events; the answer is complete."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    data = json.dumps(chunk({"content": "hi"}, "stop")).encode()
    with RawServer(replies(head + b"data: " + data + b"\n\ndata: [DONE]\n\n")) as server:
        assert ask(server.url, timeout=20).output == "hi"
