import base64
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import TransientError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.providers.gemini import Gemini
from tests.support import targets
from tests.support.cases import file_block
from tests.support.gemini_server import GeminiServer, content, exhausted, failure
from tests.support.model_targets import GEMINI
from tests.support.stand_in import Sent

ask, refused = GEMINI.ask, GEMINI.refused

LOOK = {"functionDeclarations": [{"name": "look", "description": "Looks."}]}
CALL = {"functionCall": {"name": "look", "args": {"x": 1}, "id": "1"}, "thoughtSignature": "c2ln"}


def test_complete__what_is_sent_and_what_comes_back() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    config = {"temperature": 0, "maxOutputTokens": 5, "safety_settings": safety, "tools": [LOOK]}
    with GeminiServer({"hello": "hi"}, key="AIza-1") as server:
        trace = ask(
            server.url,
            Message("system", "brief"),
            "hello",
            api_key="AIza-1",
            model="gemini-test",
            config=config,
        )
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == ("hi", (), 1)
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
        trace.usage.cost_usd,
    ) == (
        328,
        47,
        300,
        None,
    )
    (received,) = server.requests
    assert received.path == "/v1beta/models/gemini-test:generateContent"
    assert received.body == {
        "generationConfig": {"temperature": 0, "maxOutputTokens": 5},
        "safetySettings": safety,
        "tools": [LOOK],
        "systemInstruction": {"parts": [{"text": "brief"}]},
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
    }


def test_complete__without_config_nothing_is_set() -> None:
    with GeminiServer(otherwise="hi") as server:
        ask(server.url)
    assert server.requests[0].body.keys() == {"contents"}


def test_complete__tools_both_ways() -> None:
    asked = Message("assistant", "looking", tool_calls=(ToolCall("look", {"x": 0}),))
    with GeminiServer(otherwise=content("again", CALL)) as server:
        trace = ask(
            server.url,
            "see",
            asked,
            Message("tool", "nothing"),
            "look again",
            model="gemini-3-pro",
            config={"tools": [LOOK]},
        )
    assert (trace.output, trace.tool_calls) == ("again", (ToolCall("look", {"x": 1}, id="1"),))
    answered = server.requests[0].body["contents"][2]["parts"]
    assert answered[0]["functionResponse"] == {
        "id": "call_1_0",
        "name": "look",
        "response": {"output": "nothing"},
    }


def test_complete__a_picture_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    with GeminiServer({"see": "seen"}) as server:
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
    assert server.requests[0].body["contents"][0]["parts"] == [
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": picture}},
        {"text": '<file path="n.txt">\nnotes\n</file>'},
    ]


def test_complete__the_key_and_the_address_in_every_form() -> None:
    with GeminiServer(otherwise="hi", key="AIza-2", model="m") as server:
        assert ask(server.url, variables={"GEMINI_API_KEY": "AIza-2"}).output == "hi"
        assert (
            ask(
                server.url + "/v1beta/", variables={"GEMINI_API_KEY": "other"}, api_key="AIza-2\n"
            ).output
            == "hi"
        )
        assert ask(server.url + "/v1", api_key="AIza-2", model="models/m").output == "hi"
    assert [received.path.partition("/models/")[0] for received in server.requests] == [
        "/v1beta",
        "/v1beta",
        "/v1",
    ]
    with GeminiServer(otherwise="hi") as server:
        assert ask(server.url + "/").output == "hi"
    assert "x-goog-api-key" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("reply", "limited", "seconds"),
    [
        (exhausted("17s"), True, 17),
        (exhausted("0.5s"), True, 0.5),
        (failure(429, "Resource has been exhausted (e.g. check quota)."), True, None),
        (
            failure(
                503,
                "The model is overloaded. Please try again later.",
                headers={"retry-after": "3"},
            ),
            False,
            3,
        ),
        (failure(500, "An internal error has occurred."), False, None),
    ],
)
def test_complete__what_is_worth_repeating(
    reply: Sent, limited: bool, seconds: float | None
) -> None:
    error = refused(reply)
    assert isinstance(error, TransientError)
    assert (error.limited, error.retry_after) == (limited, seconds)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": "m", "config": {"contents": []}}, "`contents` cannot be set"),
        ({"model": "m", "config": {"system_instruction": "x"}}, "write a system message"),
        ({"model": "m", "config": {"candidateCount": 2}}, "`candidateCount` cannot be set"),
        (
            {"model": "m", "config": {"generationConfig": {}}},
            "write its fields into `config` itself",
        ),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(Gemini, fields)
