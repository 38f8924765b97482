from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.providers.anthropic import Anthropic
from agentevals_action.targets.replies.envelope import read_reply
from tests.support import targets
from tests.support.anthropic_server import AnthropicServer, failure, message
from tests.support.cases import file_block
from tests.support.model_targets import ANTHROPIC
from tests.support.stand_in import Sent

if TYPE_CHECKING:
    # over a second's import, which each worker would do: the tests that need it have it imported
    import anthropic

ask, refused = ANTHROPIC.ask, ANTHROPIC.refused

LOOK = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}},
}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"x": 1}}


def test_complete__what_is_sent_and_what_comes_back() -> None:
    with AnthropicServer({"hello": "hi"}, key="sk-1") as server:
        trace = ask(
            server.url,
            Message("system", "brief"),
            "hello",
            api_key="sk-1",
            config={"temperature": 0, "stop_sequences": ["x"]},
        )
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == ("hi", (), 1)
    assert (trace.input_tokens, trace.output_tokens, trace.cached_tokens, trace.cost_usd) == (
        328,
        7,
        300,
        None,
    )
    (received,) = server.requests
    assert (received.path, received.headers["anthropic-version"]) == ("/v1/messages", "2023-06-01")
    assert received.body == {
        "max_tokens": 8192,
        "temperature": 0,
        "stop_sequences": ["x"],
        "model": "m",
        "system": "brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    }


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({}, 8192),
        ({"max_tokens": 5}, 5),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, 10_192),
        ({"thinking": {"type": "adaptive"}}, 8192),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 3000}, 3000),
    ],
)
def test_complete__the_most_tokens_leave_room_beside_thinking(
    config: dict[str, Any], most: int
) -> None:
    with AnthropicServer(otherwise="hi") as server:
        ask(server.url, config=config)
    assert server.requests[0].body["max_tokens"] == most


def test_complete__tools_both_ways() -> None:
    asked = Message("assistant", "looking", tool_calls=(ToolCall("look", {"x": 0}),))
    with AnthropicServer(otherwise=message("again", USE, stop_reason="tool_use")) as server:
        trace = ask(
            server.url,
            "see",
            asked,
            Message("tool", "nothing"),
            "look again",
            config={"tools": [LOOK]},
        )
    assert (trace.output, trace.tool_calls) == (
        "again",
        (ToolCall("look", {"x": 1}, id="toolu_1"),),
    )
    assert server.requests[0].body["tools"] == [LOOK]
    assert server.requests[0].body["messages"][2]["content"][0]["content"] == [
        {"type": "text", "text": "nothing"}
    ]


def test_complete__a_picture_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    picture = base64.b64encode(b"GIF89a").decode()
    with AnthropicServer({"see": "seen"}) as server:
        ask(
            server.url,
            Message(
                "user",
                (
                    Block("text", "see"),
                    Block("image", picture),
                    file_block("file", "n.txt", tmp_path / "n.txt"),
                ),
            ),
        )
    assert server.requests[0].body["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": picture}},
        {"type": "text", "text": '<file path="n.txt">\nnotes\n</file>'},
    ]


def test_complete__the_key_and_the_address_in_every_form() -> None:
    with AnthropicServer(otherwise="hi", key="sk-2") as server:
        assert ask(server.url, variables={"ANTHROPIC_API_KEY": "sk-2"}).output == "hi"
        assert (
            ask(
                server.url + "/v1", variables={"ANTHROPIC_API_KEY": "other"}, api_key="sk-2\n"
            ).output
            == "hi"
        )
        assert ask(server.url + "/v1/", api_key="sk-2").output == "hi"
    with AnthropicServer(otherwise="hi") as server:
        assert ask(server.url + "/").output == "hi"
    assert "x-api-key" not in server.requests[0].headers


def test_complete__the_version_of_the_api() -> None:
    with AnthropicServer(otherwise="hi") as server:
        assert ask(server.url, config={"temperature": 0}).output == "hi"
        assert ask(server.url, api_version="2026-10-21").output == "hi"
        with pytest.raises(AttemptError, match="temperature: Extra inputs are not permitted"):
            ask(server.url, api_version="2026-10-21", config={"temperature": 0})
    assert [received.headers["anthropic-version"] for received in server.requests] == [
        "2023-06-01",
        "2026-10-21",
        "2026-10-21",
    ]


@pytest.mark.parametrize(
    ("status", "limited"), [(429, True), (500, False), (504, False), (529, False)]
)
def test_complete__what_is_worth_repeating(status: int, limited: bool) -> None:
    error = refused(failure(status, "try later", {"retry-after": "7"}))
    assert isinstance(error, TransientError)
    assert (error.limited, error.retry_after) == (limited, 7)
    assert f"answered {status}: try later" in str(error)


@pytest.mark.parametrize(
    ("reply", "hint"),
    [
        (failure(401, "invalid x-api-key"), "ANTHROPIC_API_KEY"),
        (
            failure(403, "Your API key does not have permission to use the specified resource."),
            "ANTHROPIC_API_KEY",
        ),
        (failure(404, "model: m"), "knows the model m"),
        (failure(402, "There is an issue with your billing."), "no credit"),
        (
            failure(
                429, "Spend limit reached.", details={"error_code": "enforced_spend_limit_reached"}
            ),
            "no credit",
        ),
    ],
)
def test_complete__what_ends_the_target(reply: Sent, hint: str) -> None:
    error = refused(reply)
    assert isinstance(error, TargetDead)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (failure(400, "prompt is too long"), "answered 400: prompt is too long"),
        (failure(413, "Request exceeds the maximum size"), "answered 413: Request exceeds"),
        (Sent({"type": "error"}), "the reply is not a message"),
        (Sent(message("partly", stop_reason="refusal")), "refused to answer"),
        (Sent(message(stop_reason="max_tokens")), "raise `max_tokens`"),
    ],
)
def test_complete__an_error_of_this_test_alone(reply: Sent, told: str) -> None:
    error = refused(reply)
    assert (type(error), error.kind) == (AttemptError, "target")
    assert told in str(error)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": "m", "api_version": "latest"}, "write a date as 2023-06-01"),
        ({"model": "m", "config": {"messages": []}}, "`messages` cannot be set"),
        ({"model": "m", "config": {"system": "x"}}, "write a system message"),
        ({"model": "m", "config": {"stream": True}}, "`stream` cannot be set"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(Anthropic, fields)


#: The import of Anthropic's library alone takes over two seconds.
with_library = pytest.mark.slow


@contextmanager
def sdk(server: AnthropicServer, key: str = "sk-1") -> Iterator[anthropic.Anthropic]:
    import anthropic

    with anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0) as client:
        yield client


@with_library
def test_sdk__a_message_with_usage() -> None:
    from anthropic.types import TextBlock

    with AnthropicServer({"hello": "hi"}, key="sk-1") as server, sdk(server) as client:
        reply = client.messages.create(
            model="m", max_tokens=5, system="brief", messages=[{"role": "user", "content": "hello"}]
        )
    assert [block.text for block in reply.content if isinstance(block, TextBlock)] == ["hi"]
    usage = reply.usage
    assert (
        usage.input_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.output_tokens,
    ) == (8, 20, 300, 7)


@with_library
def test_sdk__tool_use_and_our_conversation_is_what_it_sends() -> None:
    from anthropic.types import ToolUseBlock

    with (
        AnthropicServer(otherwise=message(USE, stop_reason="tool_use")) as server,
        sdk(server) as client,
    ):
        reply = client.messages.create(
            model="m",
            max_tokens=8192,
            tools=[{"name": "look", "input_schema": {"type": "object"}}],
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "see"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {"x": 0}}],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "1",
                            "content": [{"type": "text", "text": "nothing"}],
                        }
                    ],
                },
            ],
        )
        asked = Message("assistant", "", tool_calls=(ToolCall("look", {"x": 0}, id="1"),))
        tools = [{"name": "look", "input_schema": {"type": "object"}}]
        ask(server.url, "see", asked, Message("tool", "nothing"), config={"tools": tools})
    (use,) = reply.content
    assert isinstance(use, ToolUseBlock)
    assert (use.name, use.input, reply.stop_reason) == ("look", {"x": 1}, "tool_use")
    theirs, ours = server.requests
    assert ours.body == theirs.body


@with_library
def test_sdk__errors_are_of_the_vendors_kind() -> None:
    import anthropic

    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hello"}]
    limit = failure(429, "This request would exceed your rate limit.", {"retry-after": "7"})
    with AnthropicServer(otherwise="hi", key="sk-1", model="m") as server:
        with (
            sdk(server, "wrong") as client,
            pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"),
        ):
            client.messages.create(model="m", max_tokens=5, messages=messages)
        with sdk(server) as client, pytest.raises(anthropic.NotFoundError, match="model: gone"):
            client.messages.create(model="gone", max_tokens=5, messages=messages)
    with (
        AnthropicServer(script=[limit, failure(529, "Overloaded")]) as server,
        sdk(server) as client,
    ):
        with pytest.raises(anthropic.RateLimitError) as caught:
            client.messages.create(model="m", max_tokens=5, messages=messages)
        assert caught.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            client.messages.create(model="m", max_tokens=5, messages=messages)


@with_library
def test_sdk__the_history_of_an_agent_is_read_with_its_tokens() -> None:
    """It keeps the replies as the library dumps them."""
    question: Any = {"role": "user", "content": "hello"}
    result = {"type": "tool_result", "tool_use_id": USE["id"], "content": "seen"}
    answer: Any = {"role": "user", "content": [result]}
    script = [Sent(message(USE, stop_reason="tool_use")), Sent(message("It is seen."))]
    with AnthropicServer(script=script) as server, sdk(server) as client:
        first = client.messages.create(model="m", max_tokens=8192, messages=[question])
        turn: Any = {"role": "assistant", "content": first.content}
        sent = [question, turn, answer]
        second = client.messages.create(model="m", max_tokens=8192, messages=sent)
    kept = [question, first.model_dump(mode="json"), answer, second.model_dump(mode="json")]
    trace = read_reply(json.dumps(kept), [Message("user", "hello")])
    assert trace.output == "It is seen."
    assert trace.tool_calls == (ToolCall("look", {"x": 1}, "seen", "toolu_1"),)
    assert (trace.llm_call_count, trace.input_tokens, trace.output_tokens) == (2, 656, 14)
    assert (trace.cached_tokens, trace.cache_write_tokens) == (600, 40)
