import base64
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.providers.azure import Azure
from tests.support import targets
from tests.support.model_targets import AZURE
from tests.support.openai_server import AzureServer, Reply, azure_failure, function_call

ask, refused = AZURE.ask, AZURE.refused

DATE = "2024-10-21"


def test_complete__what_is_sent_and_what_comes_back() -> None:
    with AzureServer({"hello": "hi"}, key="k1", model="my gpt") as server:
        trace = ask(
            server.url, Message("system", "brief"), "hello", api_key="k1", config={"temperature": 0}
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
    assert received.path == "/openai/v1/chat/completions"
    assert "authorization" not in received.headers
    assert received.body == {
        "temperature": 0,
        "model": "my gpt",
        "messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}],
    }


@pytest.mark.parametrize("suffix", ["", "/", "/openai", "/openai/", "/openai/v1", "/openai/v1/"])
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "/openai/v1/chat/completions"),
        ({"api_version": "v1", "api_format": "responses"}, "/openai/v1/responses"),
        (
            {"api_version": "preview", "api_format": "responses"},
            "/openai/v1/responses?api-version=preview",
        ),
        (
            {"api_version": DATE},
            f"/openai/deployments/my%20gpt/chat/completions?api-version={DATE}",
        ),
        ({"api_version": DATE, "api_format": "responses"}, f"/openai/responses?api-version={DATE}"),
    ],
    ids=str,
)
def test_complete__where_it_is_asked(suffix: str, fields: dict[str, Any], path: str) -> None:
    with AzureServer(otherwise="hi", model="my gpt") as server:
        assert ask(server.url + suffix, **fields).output == "hi"
    assert server.requests[0].path == path


def test_complete__tools_and_pictures_both_ways() -> None:
    gif = base64.b64encode(b"GIF89a").decode()
    call = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"x": 2}'}}
    messages = (
        Message("user", (Block("text", "see"), Block("image", gif))),
        Message("assistant", "", tool_calls=(ToolCall("look", {"x": 1}),)),
        Message("tool", "seen"),
    )
    reply = Reply(
        message={"content": None, "tool_calls": [call]},
        finish_reason="tool_calls",
        items=[function_call("look", '{"x": 2}', "c2")],
    )
    with AzureServer({"see": reply}) as server:
        traces = [ask(server.url, *messages, api_format=name) for name in ("chat", "responses")]
    assert [trace.tool_calls for trace in traces] == [(ToolCall("look", {"x": 2}, id="c2"),)] * 2
    chat, responses = (received.body for received in server.requests)
    uri = f"data:image/gif;base64,{gif}"
    assert chat["messages"][0]["content"][1] == {"type": "image_url", "image_url": {"url": uri}}
    assert chat["messages"][2] == {"role": "tool", "content": "seen", "tool_call_id": "call_1_0"}
    assert responses["input"][0]["content"][1] == {
        "type": "input_image",
        "detail": "auto",
        "image_url": uri,
    }
    assert responses["input"][2] == {
        "type": "function_call_output",
        "call_id": "call_1_0",
        "output": "seen",
    }


def test_complete__a_rate_limit_says_when_to_come_again() -> None:
    told = "Requests to the ChatCompletions_Create Operation have exceeded call rate limit. Please retry after 2 seconds."
    error = refused(azure_failure(429, told, "429", {"retry-after-ms": "1500", "Retry-After": "2"}))
    assert isinstance(error, TransientError)
    assert (error.limited, error.retry_after) == (True, 1.5)


def test_complete__a_filtered_prompt_or_answer_is_an_error_of_the_test() -> None:
    found = {
        "hate": {"filtered": True, "severity": "high"},
        "violence": {"filtered": False, "severity": "safe"},
    }
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
    told = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    error = refused(
        azure_failure(
            400, told, "content_filter", type=None, param="prompt", status=400, innererror=inner
        )
    )
    assert (type(error), error.kind) == (AttemptError, "target")
    assert "content management policy" in str(error)
    answer = refused(Reply(text="", finish_reason="content_filter"))
    assert type(answer) is AttemptError
    assert "content filter" in str(answer)


def test_options__the_key_is_needed_and_other_spellings_are_known() -> None:
    assert targets.read_options(Azure, {"endpoint": "res", "deployment": "d"}).variables() == (
        "AZURE_OPENAI_API_KEY",
    )
    assert (
        targets.read_options(
            Azure, {"endpoint": "res", "deployment": "d", "api_key": "${{ K }}"}
        ).variables()
        == ()
    )
    assert Azure.spellings == {"deployment": ("model",), "api_version": ("version",)}


def test_options__a_name_is_the_resource_of_azure_itself() -> None:
    assert (
        targets.read_options(Azure, {"endpoint": "my-res", "deployment": "d"}).url
        == "https://my-res.openai.azure.com/openai/"
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"endpoint": "x"}, "it is missing"),
        ({"deployment": "d"}, "it is missing"),
        ({"endpoint": "x", "deployment": ""}, "a text that is not empty"),
        ({"endpoint": "my.resource", "deployment": "d"}, "write a URL"),
        ({"endpoint": "ftp://host", "deployment": "d"}, "write a URL"),
        (
            {"endpoint": "https://h/openai/deployments/d/chat/completions", "deployment": "d"},
            "end the URL before /openai",
        ),
        ({"endpoint": "https://h/?api-version=1", "deployment": "d"}, "end the URL before /openai"),
        ({"endpoint": "x", "deployment": "d", "api_version": "a&b"}, "write `v1`, or a date"),
        (
            {"endpoint": "x", "deployment": "d", "api_format": "chatty"},
            "write `chat` or `responses`",
        ),
        (
            {"endpoint": "x", "deployment": "d", "config": {"model": "m"}},
            "use the field `deployment`",
        ),
        (
            {"endpoint": "x", "deployment": "d", "config": {"messages": []}},
            "`messages` cannot be set",
        ),
        (
            {
                "endpoint": "x",
                "deployment": "d",
                "api_format": "responses",
                "config": {"input": ""},
            },
            "`input` cannot be set",
        ),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(Azure, fields)


def test_options__what_comes_from_variables_is_looked_at_once_it_is_known() -> None:
    fields = {"endpoint": "${{ AT }}", "deployment": "${{ D }}", "api_version": "${{ V }}"}
    assert targets.read_options(Azure, fields).endpoint == "${{ AT }}"
