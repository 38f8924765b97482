import base64
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import TransientError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.providers.openai import OpenAI
from tests.support import targets
from tests.support.model_targets import OPENAI
from tests.support.openai_server import OpenAIServer, Reply, function_call

ask, refused = OPENAI.ask, OPENAI.refused


def test_complete__what_is_sent_and_what_comes_back() -> None:
    with OpenAIServer({"hello": "hi"}, key="sk-1") as server:
        trace = ask(
            server.url,
            Message("system", "brief"),
            "hello",
            api_key="sk-1",
            config={"temperature": 0, "max_tokens": 5, "stop": ["x"]},
        )
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == ("hi", (), 1)
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
        trace.usage.cost_usd,
    ) == (
        11,
        7,
        3,
        None,
    )
    (received,) = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.body == {
        "temperature": 0,
        "max_tokens": 5,
        "stop": ["x"],
        "model": "m",
        "messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}],
    }


def test_complete__a_server_of_ones_own_needs_no_key() -> None:
    with OpenAIServer(otherwise="hi") as server:
        assert ask(server.url + "/").output == "hi"
    assert "authorization" not in server.requests[0].headers


def test_complete__tool_calls_and_pictures(tmp_path: Path) -> None:
    picture = base64.b64encode(b"GIF89a").decode()
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}
    reply = Reply(message={"content": None, "tool_calls": [call]}, finish_reason="tool_calls")
    with OpenAIServer({"see": reply}) as server:
        trace = ask(server.url, Message("user", (Block("text", "see"), Block("image", picture))))
    assert trace.tool_calls == (ToolCall("look", {"x": 1}, id="1"),)
    assert (
        server.requests[0].body["messages"][0]["content"][1]["image_url"]["url"]
        == f"data:image/gif;base64,{picture}"
    )


def test_complete__a_megabyte_and_odd_characters() -> None:
    with OpenAIServer(otherwise="hi") as server:
        ask(server.url, "ä\u2028\x00" * 350_000)
        ask(server.url, "a\ud800b")
    assert [received.prompt for received in server.requests] == ["ä\u2028\x00" * 350_000, "a?b"]


def test_complete__a_conversation_with_tools_and_pictures_as_responses() -> None:
    look = ToolCall("look", {"x": 1}, id="c1")
    messages = (
        Message("system", "brief"),
        "see",
        Message("assistant", "", tool_calls=(look,)),
        Message("tool", "seen", tool_call_id="c1"),
    )
    reply = Reply(items=[function_call("look", '{"x": 2}', "c2")])
    with OpenAIServer({"see": reply}, key="sk-1") as server:
        trace = ask(
            server.url,
            *messages,
            api_key="sk-1",
            api_format="responses",
            config={"reasoning": {"effort": "low"}},
        )
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == (
        "",
        (ToolCall("look", {"x": 2}, id="c2"),),
        1,
    )
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
        trace.usage.cost_usd,
    ) == (
        11,
        7,
        3,
        None,
    )
    (received,) = server.requests
    assert received.path == "/v1/responses"
    assert received.body == {
        "reasoning": {"effort": "low"},
        "model": "m",
        "instructions": "brief",
        "input": [
            {"role": "user", "content": "see"},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"x": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "seen"},
        ],
    }


@pytest.mark.parametrize(
    ("code", "limited"),
    [("rate_limit_exceeded", True), ("server_error", False), ("invalid_prompt", None)],
    ids=str,
)
def test_complete__a_response_that_failed(code: str, limited: bool | None) -> None:
    failed = {
        "status": "failed",
        "error": {"code": code, "message": "it went wrong with sk-0123456789"},
    }
    error = refused(Reply(items=[], fields=failed), api_format="responses", api_key="sk-0123456789")
    assert f"{code}: it went wrong with ***" in str(error)
    assert str(error).startswith("127.0.0.1:")
    assert (error.limited if isinstance(error, TransientError) else None) == limited


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": "m", "config": {"messages": []}}, "`messages` cannot be set"),
        ({"model": "m", "config": {"stream": True}}, "`stream` cannot be set"),
        (
            {"model": "m", "api_format": "responses", "config": {"input": []}},
            "`input` cannot be set",
        ),
        (
            {"model": "m", "api_format": "responses", "config": {"instructions": "x"}},
            "write a system message",
        ),
        (
            {"model": "m", "api_format": "responses", "config": {"background": True}},
            "`background` cannot be set",
        ),
        ({"model": "m", "api_format": "chatty"}, "write `chat` or `responses`"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(OpenAI, fields)


def test_options__a_url_from_a_variable_is_looked_at_once_it_is_known() -> None:
    assert (
        targets.read_options(OpenAI, {"model": "m", "base_url": "${{ URL }}/v1"}).base_url
        == "${{ URL }}/v1"
    )
