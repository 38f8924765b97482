import base64
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.providers.anthropic import Anthropic
from tests.support import targets
from tests.support.anthropic_server import AnthropicServer, message
from tests.support.cases import file_block
from tests.support.model_targets import ANTHROPIC

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
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
        trace.usage.cost_usd,
    ) == (
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
