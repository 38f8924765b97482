"""The providers of models: what they send and where, and what errors of the vendors mean."""

from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, NoCredit, TargetDead, TransientError
from agentevals_action.model.messages import Message
from agentevals_action.targets.registry import PROVIDERS
from tests.support import targets
from tests.support.cases import file_block
from tests.support.model_targets import MODELS, generated
from tests.support.stand_in import Sent

SYSTEM = Message("system", "brief")
CHAT = {
    "messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}],
}
RESPONSES = {"instructions": "brief", "input": [{"role": "user", "content": "hello"}]}
ANTHROPIC = {
    "model": "m",
    "max_tokens": 8192,
    "system": "brief",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "brief"}]},
    "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
}
TOOLS = [{"name": "look"}]
THINKING = {"type": "enabled", "budget_tokens": 2000}
DATE = "2024-10-21"
DEPLOYMENTS = "/openai/deployments/my%20gpt/chat/completions"
#: The fields of a target, and the path, the headers and the body of its request.
REQUESTS: list[tuple[str, dict[str, Any], str, dict[str, str], dict[str, Any]]] = [
    (
        "openai",
        {"config": {"temperature": 0, "stop": ["x"]}},
        "/v1/chat/completions",
        {"authorization": "Bearer sk-1"},
        {"temperature": 0, "stop": ["x"], "model": "m", **CHAT},
    ),
    (
        "openai",
        {"api_format": "responses", "config": {"tools": TOOLS}},
        "/v1/responses",
        {},
        {"tools": TOOLS, "model": "m", **RESPONSES},
    ),
    (
        "azure",
        {"config": {"temperature": 0}},
        "/openai/v1/chat/completions",
        {"api-key": "sk-1"},
        {"temperature": 0, "model": "my gpt", **CHAT},
    ),
    (
        "azure",
        {"api_version": DATE},
        f"{DEPLOYMENTS}?api-version={DATE}",
        {},
        {"model": "my gpt", **CHAT},
    ),
    (
        "anthropic",
        {"config": {"stop_sequences": ["x"]}},
        "/v1/messages",
        {"x-api-key": "sk-1", "anthropic-version": "2023-06-01"},
        {"stop_sequences": ["x"], **ANTHROPIC},
    ),
    (
        "anthropic",
        {"config": {"thinking": THINKING}},
        "/v1/messages",
        {},
        {**ANTHROPIC, "thinking": THINKING, "max_tokens": 10_192},
    ),
    (
        "anthropic",
        {"config": {"max_tokens": 5}},
        "/v1/messages",
        {},
        {**ANTHROPIC, "max_tokens": 5},
    ),
    ("gemini", {}, "/v1beta/models/m:generateContent", {"x-goog-api-key": "sk-1"}, GEMINI),
    (
        "gemini",
        {
            "model": "tunedModels/m",
            "config": {"temperature": 0, "safety_settings": [1], "tools": TOOLS},
        },
        "/v1beta/tunedModels/m:generateContent",
        {},
        {
            "generationConfig": {"temperature": 0},
            "safetySettings": [1],
            "tools": TOOLS,
            **GEMINI,
        },
    ),
]


@pytest.mark.parametrize(("name", "fields", "path", "headers", "body"), REQUESTS)
def test_complete__the_request(
    name: str, fields: dict[str, Any], path: str, headers: dict[str, str], body: dict[str, Any]
) -> None:
    model = MODELS[name]
    reply = {"output": [{"type": "message", "content": "hi"}]}
    script = [Sent(reply)] if "responses" in fields.values() else []
    with model.server(otherwise="hi", script=script, key="sk-1") as server:
        trace = model.ask(server, SYSTEM, "hello", api_key="sk-1\n", **fields)
    (received,) = server.requests
    assert (trace.output, trace.llm_call_count) == ("hi", 1)
    assert (received.path, received.body) == (path, body)
    assert received.headers.items() >= headers.items()


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


def test_complete__a_file_that_cannot_be_sent(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    question = Message("user", (file_block("file", "binary", tmp_path / "binary"),))
    with (
        MODELS["openai"].server(otherwise="hi") as server,
        pytest.raises(AttemptError, match="the file binary is no UTF-8 text") as caught,
    ):
        MODELS["openai"].ask(server, question)
    assert (caught.value.kind, server.requests) == ("configuration", [])


def test_complete__a_number_that_json_does_not_have() -> None:
    with (
        MODELS["openai"].server(otherwise="hi") as server,
        pytest.raises(AttemptError, match="the prompt cannot be sent") as caught,
    ):
        MODELS["openai"].ask(server, config={"top_p": float("nan")})
    assert (caught.value.kind, server.requests) == ("configuration", [])


def openai(status: int, text: str, code: str | None = None) -> Sent:
    error = {"message": text, "type": "invalid_request_error", "param": None, "code": code}
    return Sent({"error": error}, status)


def azure(status: int, text: str, code: str, **fields: Any) -> Sent:
    return Sent({"error": {"code": code, "message": text, **fields}}, status)


def anthropic(status: int, text: str, type_: str, **fields: Any) -> Sent:
    error = {"type": type_, "message": text, **fields}
    return Sent({"type": "error", "error": error, "request_id": "req_011"}, status)


def google(status: int, text: str, type_: str, **detail: Any) -> Sent:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}, detail]
    error = {"code": status, "message": text, "status": type_, "details": details}
    return Sent({"error": error}, status)


SPENT = {"error_code": "enforced_spend_limit_reached"}
FILTERED = {"innererror": {"code": "ResponsibleAIPolicyViolation"}, "param": "prompt"}
#: The errors of the vendors, the class of the error that they are, and a part of its sentence.
ERRORS: list[tuple[str, Sent, type[AttemptError], str]] = [
    ("openai", openai(401, "Incorrect key", "invalid_api_key"), TargetDead, "OPENAI_API_KEY"),
    ("openai", openai(400, "invalid model", "model_not_found"), TargetDead, "knows the model m"),
    ("openai", openai(429, "over your quota", "insufficient_quota"), NoCredit, "no credit"),
    ("openai", openai(400, "context length\nexceeded"), AttemptError, "context length exceeded"),
    ("azure", azure(401, "invalid key", "401"), TargetDead, "AZURE_OPENAI_API_KEY"),
    ("azure", azure(404, "gone", "DeploymentNotFound"), TargetDead, "a deployment named my gpt"),
    ("azure", azure(400, "policy", "content_filter", **FILTERED), AttemptError, "policy"),
    ("anthropic", anthropic(403, "no", "permission_error"), TargetDead, "ANTHROPIC_API_KEY"),
    ("anthropic", anthropic(404, "model: m", "not_found_error"), TargetDead, "knows the model m"),
    ("anthropic", anthropic(402, "billing", "billing_error"), NoCredit, "no credit"),
    ("anthropic", anthropic(429, "spent", "rate_limit_error", details=SPENT), NoCredit, "credit"),
    ("anthropic", anthropic(529, "Overloaded", "overloaded_error"), TransientError, "Overloaded"),
    ("gemini", google(400, "bad", "X", reason="API_KEY_INVALID"), TargetDead, "GEMINI_API_KEY"),
    ("gemini", google(404, "models/m", "NOT_FOUND"), TargetDead, "knows the model m"),
    ("gemini", google(429, "slow", "EXHAUSTED", retryDelay="17s"), TransientError, "429: slow"),
    ("gemini", Sent(generated("", "SAFETY")), AttemptError, "stopped the reply (SAFETY)"),
]


@pytest.mark.parametrize(("name", "reply", "kind", "words"), ERRORS)
def test_complete__what_an_error_of_the_vendor_means(
    name: str, reply: Sent, kind: type[AttemptError], words: str
) -> None:
    error = MODELS[name].refused(reply, api_key="sk-1")
    assert (type(error), error.kind) == (kind, "target")
    assert words in error.sentence
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


URLS = [(name, model.url_field) for name, model in MODELS.items()]
CONFIGS = [(name, "config") for name in MODELS]
INVALID: list[tuple[str, str, Any, str]] = [
    *((*field, "localhost:8000", "write a URL") for field in URLS),
    *((*field, "file:///etc/passwd", "write a URL") for field in URLS),
    *((*field, "https://host/v1?api-version=1", "end the URL before") for field in URLS),
    *((*field, {"model": "n"}, "`model` cannot be set in `config`; use the") for field in CONFIGS),
    ("openai", "config", {"messages": []}, "`messages` cannot be set"),
    ("openai", "config", {"stream": True}, "`stream` cannot be set"),
    ("openai", "model", "", "a text that is not empty"),
    ("openai", "api_format", "chatty", "write `chat` or `responses`"),
    ("azure", "deployment", "", "a text that is not empty"),
    ("azure", "endpoint", "https://h/openai/deployments/d/chat", "end the URL before /openai"),
    ("azure", "api_version", "preview", "write `v1`, or a date"),
    ("anthropic", "config", {"system": "x"}, "write a system message"),
    ("gemini", "config", {"contents": []}, "`contents` cannot be set"),
    ("gemini", "config", {"system_instruction": "x"}, "write a system message"),
    ("gemini", "config", {"generationConfig": {}}, "write its fields into `config` itself"),
]


@pytest.mark.parametrize(("name", "field", "value", "problem"), INVALID)
def test_options__an_invalid_field(name: str, field: str, value: Any, problem: str) -> None:
    model = MODELS[name]
    definition = {**model.definition, model.url_field: "https://host", field: value}
    with pytest.raises(ValueError, match=problem):
        targets.target(definition)
