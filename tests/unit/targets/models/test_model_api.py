"""The providers of models: what they send and where, and what errors of the vendors mean."""

from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.messages import Message
from agentevals_action.targets.registry import PROVIDERS
from tests.support import data, targets
from tests.support.model_targets import MODELS
from tests.support.stand_in import Sent

SYSTEM = Message("system", "brief")
CALLS = data.read("formats/model_calls.yaml")


@pytest.mark.parametrize("case", CALLS["requests"], ids=lambda case: case["path"])
def test_complete__the_request(case: dict[str, Any]) -> None:
    model, fields = MODELS[case["model"]], case["fields"]
    reply = {"output": [{"type": "message", "content": "hi"}]}
    script = [Sent(reply)] if "responses" in fields.values() else []
    with model.server(otherwise="hi", script=script, key="sk-1") as server:
        trace = model.ask(server, SYSTEM, "hello", api_key="sk-1\n", **fields)
    (received,) = server.requests
    assert (trace.output, trace.llm_call_count) == ("hi", 1)
    assert (received.path, received.body) == (case["path"], case["body"])
    assert received.headers.items() >= case.get("headers", {}).items()


@pytest.mark.parametrize(
    ("name", "suffix", "path"),
    [
        ("anthropic", "/v1/", "/v1/messages"),
        ("gemini", "/v1", "/v1/models/m:generateContent"),
        ("openai", "/", "/v1/chat/completions"),
        *(("azure", suffix, "/openai/v1/chat/completions") for suffix in ("/", "/openai/v1/")),
    ],
)
def test_complete__the_address_in_another_form(name: str, suffix: str, path: str) -> None:
    model = MODELS[name]
    with model.server(otherwise="hi") as server:
        fields: dict[str, Any] = {model.url_field: server.url + model.path + suffix}
        model.ask(server, **fields)
    (received,) = server.requests
    assert received.path == path
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & received.headers.keys()


@pytest.mark.parametrize("name", MODELS)
def test_complete__the_key_of_the_usual_variable(name: str) -> None:
    model, variable = MODELS[name], PROVIDERS[name].key_variable
    with model.server(otherwise="hi", key="sk-2") as server:
        assert model.ask(server, variables={variable: "sk-2"}).output == "hi"
        with pytest.raises(TargetDead) as caught:
            model.ask(server, variables={variable: "sk-2"}, api_key="wrong-key-0123")
    assert variable in caught.value.hint


@pytest.mark.parametrize("name", MODELS)
def test_complete__the_temperature_of_a_request_replaces_that_of_the_target(name: str) -> None:
    model = MODELS[name]
    with model.server(otherwise="hi") as server:
        for config in ({}, {"temperature": 1}):
            model.ask(server, request={"temperature": 0.25}, config=config)
    bodies = [received.body for received in server.requests]
    inside = [body["generationConfig"] if name == "gemini" else body for body in bodies]
    assert [body["temperature"] for body in inside] == [0.25, 0.25]


def test_complete__a_number_that_json_does_not_have() -> None:
    with (
        MODELS["openai"].server(otherwise="hi") as server,
        pytest.raises(AttemptError, match="the prompt cannot be sent") as caught,
    ):
        MODELS["openai"].ask(server, config={"top_p": float("nan")})
    assert (caught.value.kind, server.requests) == ("configuration", [])


@pytest.mark.parametrize("case", CALLS["errors"])
def test_complete__what_an_error_of_the_vendor_means(case: dict[str, Any]) -> None:
    reply = Sent(case["reply"], case["status"])
    error = MODELS[case["model"]].refused(reply, api_key="sk-1")
    assert (type(error).__name__, error.kind) == (case["error"], "target")
    assert case["words"] in error.sentence
    assert str(error).startswith("127.0.0.1:")
    if isinstance(error, TransientError):
        assert error.limited is (reply.status == 429)


def test_complete__a_response_that_failed_is_quoted_without_the_key() -> None:
    failed = {"code": "server_error", "message": "it went wrong with sk-0123456789"}
    reply = Sent({"output": [], "status": "failed", "error": failed})
    error = MODELS["openai"].refused(reply, api_format="responses", api_key="sk-0123456789")
    assert "server_error: it went wrong with ***" in str(error)


@pytest.mark.parametrize("name", MODELS)
def test_options__the_key_is_needed_unless_it_is_given(name: str) -> None:
    model, variable = MODELS[name], PROVIDERS[name].key_variable
    definition = {**model.definition, **({"endpoint": "https://x"} if name == "azure" else {})}
    assert targets.target(definition).other_variables() == (variable,)
    assert targets.target({**definition, "api_key": "${{ K }}"}).other_variables() == ()
    with_url = targets.target({**definition, model.url_field: "${{ URL }}"})
    assert with_url.other_variables() == ((variable,) if name == "azure" else ())
