"""`http`: the messages and tokens at paths of a reply, and replies that are streams of events."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.apis.http_client import REPLY_LIMIT
from tests.support import targets
from tests.support.agent_server import AgentServer, Answer
from tests.support.raw_server import RawServer, replies

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 8},
}
SEARCHED = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "two"},
    {"role": "assistant", "content": "there are two"},
]


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


def test_complete__messages_and_tokens_at_their_paths() -> None:
    body = {"model": "gpt-5", "state": {"log": SEARCHED}, "meta": {"used": USAGE}}
    trace = answer(body, messages_path="state.log", usage_path="meta.used")
    assert trace.output == "there are two"
    assert trace.tool_calls == (ToolCall("find", {}, "two", "c1"),)
    assert (trace.input_tokens, trace.output_tokens, trace.cached_tokens) == (20, 5, 8)
    assert (trace.model, trace.warnings) == ("gpt-5", ())


def test_complete__an_output_path_beside_messages_is_the_answer_after_them() -> None:
    body = {"log": SEARCHED, "final": {"text": "two"}}
    trace = answer(body, messages_path="log", output_path="final.text")
    assert trace.output == "two"
    assert trace.tool_calls is not None
    assert len(trace.tool_calls) == 1


def test_complete__tokens_beside_an_answer() -> None:
    trace = answer({"answer": "hi", "usage": USAGE}, output_path="answer", usage_path="usage")
    assert (trace.output, trace.input_tokens, trace.tool_calls) == ("hi", 20, None)
    envelope = answer({"text": "hi", "usage": {**USAGE, "cost": 0.5}}, usage_path="usage")
    assert (envelope.output, envelope.output_tokens, envelope.cost_usd) == ("hi", 5, 0.5)


def test_complete__the_cost_with_an_own_key_is_more_than_the_fee() -> None:
    upstream = {"upstream_inference_cost": 3.5}
    usage = {**USAGE, "cost": 0.0, "is_byok": True, "cost_details": upstream}
    trace = answer({"answer": "hi", "used": usage}, output_path="answer", usage_path="used")
    assert trace.cost_usd == 3.5
    assert streamed(chunk({"content": "hi"}), chunk(usage=usage)).cost_usd == 3.5


def test_complete__missing_tokens_are_unknown_and_a_warning() -> None:
    for body in ({"answer": "hi"}, {"answer": "hi", "used": "many"}):
        trace = answer(body, output_path="answer", usage_path="used")
        assert (trace.input_tokens, trace.cost_usd) == (None, None)
        assert trace.warnings == ("the reply has no tokens in a known format at `used`",)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"other": 1}, "the reply has no `log`"),
        ({"log": "hi"}, "the reply has no list of messages at `log`"),
        ({"log": [{"role": "robot"}]}, "a message is an object with a role"),
    ],
)
def test_complete__messages_that_are_missing_are_an_error(body: Any, problem: str) -> None:
    with AgentServer(body) as server, pytest.raises(AttemptError, match=problem):
        ask(server.url, messages_path="log")


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
    assert (trace.input_tokens, trace.output_tokens, trace.model) == (20, 5, "gpt-5")


def test_stream__tool_calls_that_it_does_not_show_are_unknown() -> None:
    assert streamed(chunk({"content": "hi"}, "stop"), end="").tool_calls is None


def test_stream__chunks_that_end_early_are_an_error() -> None:
    assert "ended before the answer did" in failed(chunk({"content": "I lo"}), end="")
    assert "content filter" in failed(chunk({"content": "I lo"}, "content_filter"))


@pytest.mark.parametrize(
    "events",
    [
        ("Hel", "lo\ndata: you"),
        ('"Hel"', '"lo\\nyou"'),
        ({"delta": "Hel"}, {"delta": "lo\nyou"}),
        ({"delta": "Hel", "text": None}, {"delta": None}, {"text": "lo\nyou"}),
        ({"text": "Hel"}, {"done": 1}, {"text": "lo\nyou"}),
        ({"type": "start"}, {"text": "Hello\nyou"}),
    ],
)
def test_stream__deltas_of_a_text(events: tuple[Any, ...]) -> None:
    trace = streamed(*events, end="")
    assert (trace.output, trace.tool_calls) == ("Hello\nyou", None)


def test_stream__a_text_keeps_its_spaces_and_numbers() -> None:
    assert streamed("It is", "  42", " 7", "true").output == "It is  42 7true"


def test_stream__every_line_end_comments_and_an_unfinished_last_event() -> None:
    body = ": ping\r\rdata:a\revent: message\n\ndata: b\r\nid: 1\r\n\r\ndata: c"
    assert answer(body, STREAM).output == "abc"


@pytest.mark.parametrize(
    "named", ["keepalive", '{"delta": "no"}', json.dumps(chunk({"content": "no"}))]
)
def test_stream__events_with_other_names_are_not_the_answer(named: str) -> None:
    ping = f"event: ping\ndata: {named}\n\n"
    assert streamed({"delta": "o"}, f"k\n\n{ping}", {"delta": "!"}).output == "ok!"
    chunks = streamed(chunk({"content": "ok"}), end=f"{ping}data: [DONE]\n\n")
    assert chunks.output == "ok"


@pytest.mark.parametrize("name", ["message", "delta", "text"])
def test_stream__events_with_the_name_of_an_answer(name: str) -> None:
    assert answer(f"event: {name}\ndata: hi\n\ndata: !", STREAM).output == "hi!"


def test_stream__an_output_path_and_the_tokens_are_read_in_events_of_every_name() -> None:
    body = 'event: token\ndata: {"part": "hi"}\n\nevent: end\ndata: ' + json.dumps({"used": USAGE})
    trace = answer(body, STREAM, output_path="part", usage_path="used")
    assert (trace.output, trace.input_tokens) == ("hi", 20)


def test_stream__the_paths_are_those_of_an_event() -> None:
    trace = streamed(
        {"type": "text", "value": {"text": "Hel"}},
        {"type": "thought", "value": {}},
        {"type": "text", "value": {"text": "lo"}},
        {"type": "end", "usage": USAGE},
        output_path="value.text",
        usage_path="usage",
    )
    assert (trace.output, trace.input_tokens) == ("Hello", 20)


def test_stream__the_last_event_with_messages_counts() -> None:
    trace = streamed({"log": SEARCHED[:1]}, {"log": SEARCHED}, {"end": 1}, messages_path="log")
    assert (trace.output, len(trace.tool_calls or ())) == ("there are two", 1)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (({"delta": "Hel"}, {"error": {"message": "no credit"}}), "no credit"),
        (("x\nevent: error",), "the stream reports an error"),
        (({"type": "start", "id": 7},), 'its first event is {"type": "start", "id": 7}'),
        ((), "the stream has no text"),
        (("x\nevent: log",), 'its first event is "log" with "x"; write the path'),
        (({"delta": "a"}, {"delta": {"content": "b"}}), "an event whose `delta` is not a text"),
        (({"text": "a"}, {"text": 5}), "an event whose `text` is not a text"),
        (({"delta": ["a"], "text": "a"}, "b"), "an event whose `delta` is not a text"),
    ],
)
def test_stream__what_is_no_answer_is_an_error(events: tuple[Any, ...], problem: str) -> None:
    assert problem in failed(*events)


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


def test_stream__that_stays_open_ends_with_done() -> None:
    """A server may keep the connection for later events; the answer is complete."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with RawServer(replies(head + b"data: hi\n\ndata: [DONE]\n\n")) as server:
        assert ask(server.url, timeout=20).output == "hi"


def test_stream__has_the_limit_of_other_replies() -> None:
    with pytest.raises(AttemptError, match="over 10 MB"):
        answer("data: x\n\n" * (REPLY_LIMIT // 9 + 1), STREAM)
