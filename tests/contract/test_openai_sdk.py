"""The stand-in for OpenAI and Azure satisfies the vendor's own client, and what we send is what
that client may send."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.replies.envelope import read_reply
from tests.support import targets
from tests.support.openai_server import (
    AzureServer,
    OpenAIServer,
    Reply,
    azure_failure,
    failure,
    function_call,
    output_message,
)

if TYPE_CHECKING:
    # half a second's import, which each worker would do: the tests that need it have it imported
    import openai

GIF = base64.b64encode(b"GIF89a").decode()
TOOL: Any = {
    "name": "look",
    "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
}
CALLS = Reply(
    message={
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}
        ],
    },
    items=[
        {"id": "rs_1", "type": "reasoning", "summary": []},
        output_message("I look."),
        function_call("look", '{"x": 1}', "c1"),
    ],
    finish_reason="tool_calls",
)


def vendor(server: OpenAIServer, key: str = "k") -> openai.OpenAI:
    import openai

    # Strict: a reply that is not what the vendor's types say is an error.
    return openai.OpenAI(
        base_url=server.url,
        api_key=key,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        _strict_response_validation=True,
    )


def azure(server: AzureServer, key: str = "k") -> openai.AzureOpenAI:
    import openai

    return openai.AzureOpenAI(
        azure_endpoint=server.url,
        api_version="2024-10-21",
        api_key=key,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        _strict_response_validation=True,
    )


def chat(client: openai.OpenAI, model: str = "m") -> Any:
    return client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "see"}],
        tools=[{"type": "function", "function": TOOL}],
    )


def respond(client: openai.OpenAI, model: str = "m") -> Any:
    tool: Any = {"type": "function", "strict": False, **TOOL}
    return client.responses.create(model=model, input="see", tools=[tool])


def test_chat__tools_and_usage() -> None:
    with OpenAIServer({"see": CALLS}, key="k", model="m") as server, vendor(server) as client:
        completion = chat(client)
    (choice,) = completion.choices
    assert [
        (call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls
    ] == [("c1", "look", '{"x": 1}')]
    usage = completion.usage
    assert (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.prompt_tokens_details.cached_tokens,
    ) == (11, 7, 3)


def test_responses__items_and_usage() -> None:
    with OpenAIServer({"see": CALLS}, key="k", model="m") as server, vendor(server) as client:
        response = respond(client)
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert (response.status, response.output_text, response.output[2].call_id) == (
        "completed",
        "I look.",
        "c1",
    )
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens) == (
        11,
        7,
        3,
    )


def test_azure__chat_and_responses() -> None:
    with AzureServer({"see": CALLS}, key="k", model="my gpt") as server, azure(server) as client:
        assert chat(client, "my gpt").choices[0].message.tool_calls[0].function.name == "look"
        assert respond(client, "my gpt").output_text == "I look."
    assert [received.path for received in server.requests] == [
        "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        "/openai/responses?api-version=2024-10-21",
    ]


def test_azure__the_version_without_a_date() -> None:
    import openai

    with AzureServer({"see": CALLS}, key="k", model="d") as server:
        url = f"{server.url}/openai/v1/"
        with openai.OpenAI(
            base_url=url,
            api_key="k",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False),
        ) as client:
            assert chat(client, "d").choices[0].finish_reason == "tool_calls"
            assert respond(client, "d").output_text == "I look."


def test_errors__of_openai() -> None:
    import openai

    with OpenAIServer({"see": CALLS}, key="k", model="m") as server:
        with vendor(server, "other") as client, pytest.raises(openai.AuthenticationError) as wrong:
            chat(client)
        with vendor(server) as client, pytest.raises(openai.NotFoundError) as missing:
            respond(client, "n")
    assert (wrong.value.code, missing.value.code) == ("invalid_api_key", "model_not_found")


def test_errors__of_azure() -> None:
    import openai

    with AzureServer({"see": CALLS}, key="k", model="d") as server:
        with azure(server, "other") as client, pytest.raises(openai.AuthenticationError) as wrong:
            chat(client, "d")
        with azure(server) as client, pytest.raises(openai.NotFoundError) as missing:
            chat(client, "e")
    assert (wrong.value.code, missing.value.code) == ("401", "DeploymentNotFound")


def test_errors__of_a_rate_limit_that_passes() -> None:
    import openai

    refusals = [
        failure(429, "Rate limit reached", "rate_limit_exceeded", {"Retry-After": "0.01"}),
        azure_failure(
            429, "Please retry after 1 second.", "429", {"retry-after-ms": "10", "Retry-After": "1"}
        ),
    ]
    with OpenAIServer({"see": CALLS}, script=refusals) as server, vendor(server) as client:
        with pytest.raises(openai.RateLimitError) as limited:
            chat(client)
        assert (limited.value.code, limited.value.response.headers["retry-after"]) == (
            "rate_limit_exceeded",
            "0.01",
        )
        assert chat(client.with_options(max_retries=1)).choices[0].finish_reason == "tool_calls"
    assert len(server.requests) == 3


MESSAGES = (
    Message("system", "brief"),
    Message("user", (Block("text", "see"), Block("image", GIF))),
    Message(
        "assistant",
        "so",
        tool_calls=(ToolCall("look", {"x": 1}), ToolCall("look", output={"seen": 2})),
    ),
    Message("tool", "one"),
    Message("user", "and?"),
)


def sent(api_format: str) -> Any:
    async def asked(url: str) -> None:
        definition = {
            "provider": "openai",
            "model": "m",
            "base_url": url,
            "api_format": api_format,
            "config": {"temperature": 0.5},
        }
        provider = targets.options(definition).connect(targets.context({}))
        await provider.complete(targets.request(Path("/"), *MESSAGES))
        await provider.close()

    with OpenAIServer(otherwise="hi") as server:
        asyncio.run(asked(server.url))
    return server.requests[0].body


def whole(value: Any) -> Any:
    """What validation gives, its lazy parts read to their end, which is where they are
    validated."""
    if isinstance(value, Mapping):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [whole(part) for part in value]
    return value


@pytest.mark.parametrize("api_format", ["chat", "responses"])
def test_what_we_send__is_of_the_vendors_types(api_format: str) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    types: dict[str, Any] = {
        "chat": CompletionCreateParamsNonStreaming,
        "responses": ResponseCreateParamsNonStreaming,
    }
    body, adapter = sent(api_format), TypeAdapter(types[api_format])
    assert whole(adapter.validate_python(body)) == body


def test_chat__the_history_of_an_agent_is_read() -> None:
    """Replies as the library dumps them."""
    question = {"role": "user", "content": "look"}
    with OpenAIServer(script=[CALLS, Reply(text="It is seen.")]) as server, vendor(server) as own:
        replies = [chat(own, "look").choices[0].message.model_dump() for _ in range(2)]
    result = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
    history = [question, replies[0], result, replies[1]]
    trace = read_reply(json.dumps(history), [Message("user", "look")])
    assert trace.output == "It is seen."
    assert trace.tool_calls == (ToolCall("look", {"x": 1}, "seen", "c1"),)
    assert (trace.llm_call_count, trace.input_tokens) == (2, None)
