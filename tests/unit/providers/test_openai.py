import asyncio
import base64
import email.utils
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.providers.openai import OpenAI
from tests.support import targets
from tests.support.openai_server import OpenAIServer, Reply, failure


def ask(url: str, *messages: Message | str, timeout: float = 30, variables: Mapping[str, str] | None = None, **fields: Any) -> Trace:
    definition = {"provider": "openai", "model": "m", "base_url": url, **fields}

    async def asked() -> Trace:
        provider = targets.options(definition).connect(targets.surroundings({}, variables=variables))
        try:
            return await provider.complete(targets.request(Path("/"), *(messages or ("hello",)), timeout=timeout))
        finally:
            await provider.close()

    return asyncio.run(asked())


def refused(reply: Reply | bytes, **fields: Any) -> AttemptError:
    with OpenAIServer(otherwise=Reply(body=reply) if isinstance(reply, bytes) else reply) as server, pytest.raises(AttemptError) as caught:
        ask(server.url, **fields)
    return caught.value


def test_complete__what_is_sent_and_what_comes_back() -> None:
    with OpenAIServer({"hello": "hi"}, key="sk-1") as server:
        trace = ask(
            server.url, Message("system", "brief"), "hello", api_key="sk-1", config={"temperature": 0, "max_tokens": 5, "stop": ["x"]}
        )
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == ("hi", (), 1)
    assert (trace.input_tokens, trace.output_tokens, trace.cached_tokens, trace.cost_usd) == (11, 7, 3, None)
    (received,) = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.body == {
        "temperature": 0,
        "max_tokens": 5,
        "stop": ["x"],
        "model": "m",
        "messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}],
    }


def test_complete__the_usual_variable_is_the_key_where_none_is_given() -> None:
    with OpenAIServer(otherwise="hi", key="sk-2") as server:
        assert ask(server.url, variables={"OPENAI_API_KEY": "sk-2"}).output == "hi"
        assert ask(server.url, variables={"OPENAI_API_KEY": "other"}, api_key="sk-2\n").output == "hi"


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
    assert server.requests[0].body["messages"][0]["content"][1]["image_url"]["url"] == f"data:image/gif;base64,{picture}"


def test_complete__a_megabyte_and_odd_characters() -> None:
    with OpenAIServer(otherwise="hi") as server:
        ask(server.url, "ä\u2028\x00" * 350_000)
        ask(server.url, "a\ud800b")
    assert [received.prompt for received in server.requests] == ["ä\u2028\x00" * 350_000, "a?b"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_complete__what_is_worth_repeating(status: int) -> None:
    error = refused(failure(status, "try later"))
    assert isinstance(error, TransientError)
    assert f"answered {status}: try later" in str(error)
    assert error.retry_after is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
    ],
)
def test_complete__the_wait_that_the_server_asks_for(headers: Mapping[str, str], seconds: float | None) -> None:
    error = refused(failure(429, "slow down", headers=headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == seconds


def test_complete__the_wait_until_a_date() -> None:
    error = refused(failure(503, "busy", headers={"Retry-After": email.utils.formatdate(time.time() + 100, usegmt=True)}))
    assert isinstance(error, TransientError)
    assert 50 < (error.retry_after or 0) <= 100


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        (failure(401, "Incorrect API key provided", "invalid_api_key"), "OPENAI_API_KEY"),
        (failure(403, "Country not supported"), "OPENAI_API_KEY"),
        (failure(404, "The model `m` does not exist", "model_not_found"), "knows the model m"),
        (failure(404, "Not found"), "`base_url`"),
        (failure(400, "invalid model", "model_not_found"), "knows the model m"),
        (Reply(status=404, body={"error": "model 'm' not found"}), "knows the model m"),
    ],
)
def test_complete__what_ends_the_target(reply: Reply, hint: str) -> None:
    error = refused(reply)
    assert isinstance(error, TargetDead)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (failure(400, "context length\nexceeded", "context_length_exceeded"), "answered 400: context length exceeded"),
        (failure(422, "x" * 5000), "answered 422: xxx"),
        (Reply(status=400, body={"message": "flat"}), "answered 400: flat"),
        (Reply(status=400, body={"detail": "FastAPI's way"}), "answered 400: FastAPI's way"),
        (Reply(status=400, body=b"<html>bad</html>"), "answered 400: <html>bad</html>"),
        (Reply(status=400, body=b""), "answered 400: Bad Request"),
        (Reply(status=307, headers={"Location": "http://127.0.0.1:1/"}, body=b"moved"), "answered 307: moved"),
        (Reply(body=b"<html>"), "the reply is not JSON"),
        (Reply(body=b"[" * 100_000), "recursion"),
        (Reply(body={"choices": []}), "no chat completion"),
        (Reply("partly", finish_reason="content_filter"), "content filter"),
        (Reply(""), "the reply is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_complete__an_error_of_this_test_alone(reply: Reply, message: str) -> None:
    error = refused(reply)
    assert type(error) is AttemptError
    assert error.kind == "target"
    assert message in str(error)
    assert len(str(error)) < 700


def test_complete__an_error_names_the_host_and_never_the_key() -> None:
    error = refused(failure(401, "the key sk-0123456789 is wrong"), api_key="sk-0123456789")
    assert str(error).startswith("127.0.0.1:")
    assert "sk-0123456789" not in str(error) + error.hint


@pytest.mark.parametrize("key", ["sk-0123\n456789", "sk-0123456789ü", "sk-0123\x00456"])
def test_complete__a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with OpenAIServer(otherwise="hi") as server, pytest.raises(AttemptError, match="no header can carry") as caught:
        ask(server.url, api_key=key)
    assert "sk-" not in str(caught.value)
    assert server.requests == []


def test_complete__a_dropped_connection_and_a_closed_port_are_worth_repeating() -> None:
    assert isinstance(refused(Reply(drop=True)), TransientError)
    with OpenAIServer() as server:
        url = server.url
    with pytest.raises(TransientError, match=r"the connection to 127\.0\.0\.1:\d+ failed: "):
        ask(url)


def test_complete__the_time_limit() -> None:
    with OpenAIServer(otherwise=Reply(hold=True)) as server, pytest.raises(AttemptError, match=r"no answer within 0\.3 s") as caught:
        ask(server.url, timeout=0.3)
    assert caught.value.kind == "timeout"


def test_complete__a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with OpenAIServer(otherwise="hi") as server, pytest.raises(AttemptError, match="the prompt cannot be sent") as caught:
        ask(server.url, Message("user", (Block("file", "x", tmp_path / "x"),)))
    assert (caught.value.kind, server.requests) == ("configuration", [])


def test_options__the_key_is_needed_only_for_the_vendor_itself() -> None:
    assert OpenAI.model_validate({"model": "m"}).variables() == ("OPENAI_API_KEY",)
    assert OpenAI.model_validate({"model": "m", "api_key": "${{ K }}"}).variables() == ()
    assert OpenAI.model_validate({"model": "m", "base_url": "http://localhost:11434/v1"}).variables() == ()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "Field required"),
        ({"model": ""}, "at least 1"),
        ({"model": "m", "base_url": "localhost:8000"}, "write a URL"),
        ({"model": "m", "base_url": "file:///etc/passwd"}, "write a URL"),
        ({"model": "m", "config": {"messages": []}}, "`messages` cannot be set"),
        ({"model": "m", "config": {"stream": True}}, "`stream` cannot be set"),
        ({"model": "m", "config": {"model": "n"}}, "use the field `model`"),
        ({"model": "m", "api_format": "responses"}, "`api_format: responses` is not supported by this version yet"),
        ({"model": "m", "api_format": "chatty"}, "`api_format` is `chat`"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        OpenAI.model_validate(fields)


def test_options__a_url_from_a_variable_is_looked_at_once_it_is_known() -> None:
    assert OpenAI.model_validate({"model": "m", "base_url": "${{ URL }}/v1"}).base_url == "${{ URL }}/v1"
