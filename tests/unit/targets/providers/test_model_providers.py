"""Behaviour that all providers of models share."""

from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Message
from agentevals_action.targets.providers import PROVIDERS
from tests.support import targets
from tests.support.cases import file_block
from tests.support.model_targets import ANTHROPIC, AZURE, GEMINI, OPENAI, ModelTarget
from tests.support.openai_server import Reply
from tests.support.stand_in import Sent

MODELS = {"anthropic": ANTHROPIC, "azure": AZURE, "gemini": GEMINI, "openai": OPENAI}
pytestmark = pytest.mark.parametrize("name", MODELS)


def hold(model: ModelTarget) -> Sent:
    return Reply(hold=True) if model in (AZURE, OPENAI) else Sent(hold=True)


def test_complete__the_given_key_or_the_usual_variable(name: str) -> None:
    model, variable = MODELS[name], PROVIDERS[name].key_variable
    with model.server(otherwise="hi", key="sk-2") as server:
        assert model.ask(server.url, variables={variable: "sk-2"}).output == "hi"
        assert model.ask(server.url, variables={variable: "no"}, api_key="sk-2\n").output == "hi"
        with pytest.raises(TargetDead) as caught:
            model.ask(server.url, api_key="wrong-key-0123")
    assert variable in caught.value.hint
    assert "wrong-key-0123" not in caught.value.sentence


def test_complete__the_temperature_of_a_request_replaces_that_of_the_target(name: str) -> None:
    model = MODELS[name]
    request = targets.request(Path("/"), "hello", temperature=0.25)
    with model.server(otherwise="hi") as server:
        for config in ({}, {"temperature": 1}):
            model.call(
                server.url, lambda provider: provider.complete(request), api_key="k", config=config
            )
        bodies = [received.body for received in server.requests]
    inside = [body["generationConfig"] if name == "gemini" else body for body in bodies]
    assert [one["temperature"] for one in inside] == [0.25, 0.25]


def test_complete__an_error_names_the_host_and_never_the_key(name: str) -> None:
    model = MODELS[name]
    error = model.refused(
        model.failure(403, "the key sk-0123456789 is wrong"), api_key="sk-0123456789"
    )
    assert str(error).startswith("127.0.0.1:")
    assert "the key *** is wrong" in str(error)
    assert "sk-0123456789" not in error.sentence


@pytest.mark.parametrize(("status", "limited"), [(429, True), (500, False)])
def test_complete__a_temporary_error(name: str, status: int, limited: bool) -> None:
    model = MODELS[name]
    error = model.refused(model.failure(status, "try later"), api_key="k")
    assert isinstance(error, TransientError)
    assert error.limited == limited
    assert f"answered {status}: try later" in str(error)


def test_complete__a_reply_that_is_not_json(name: str) -> None:
    model = MODELS[name]
    body = Reply(body=b"<html>") if model in (AZURE, OPENAI) else Sent(b"<html>")
    error = model.refused(body, api_key="k")
    assert (type(error), error.kind) == (AttemptError, "target")
    assert "the reply is not valid JSON" in str(error)


def test_complete__a_file_that_cannot_be_sent(name: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    message = Message("user", (file_block("file", "binary", tmp_path / "binary"),))
    model = MODELS[name]
    with (
        model.server(otherwise="hi") as server,
        pytest.raises(AttemptError, match="the file binary is no UTF-8 text") as caught,
    ):
        model.ask(server.url, message, api_key="k")
    assert (caught.value.kind, server.requests) == ("configuration", [])


def test_complete__the_time_limit(name: str) -> None:
    model = MODELS[name]
    with (
        model.server(script=[hold(model)]) as server,
        pytest.raises(AttemptError, match=r"no answer within 0\.3 s") as caught,
    ):
        model.ask(server.url, timeout=0.3, api_key="k")
    assert caught.value.kind == "timeout"


def test_options__the_key_is_needed_unless_it_is_given(name: str) -> None:
    model, variable = MODELS[name], PROVIDERS[name].key_variable
    definition = dict(model.definition)
    if name == "azure":
        definition["endpoint"] = "resource"
    assert targets.options(definition).variables() == (variable,)
    assert targets.options({**definition, "api_key": "${{ K }}"}).variables() == ()
    with_url = targets.options({**definition, model.url_field: "${{ URL }}"})
    assert with_url.variables() == ((variable,) if name == "azure" else ())
    assert (with_url.is_model, with_url.is_defined) == (True, True)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("URL", "localhost:8000", "write a URL"),
        ("URL", "file:///etc/passwd", "write a URL"),
        ("URL", "https://host/v1?api-version=1", "end the URL before"),
        ("config", {"model": "n"}, "`model` cannot be set in `config`; use the field"),
    ],
)
def test_options__an_invalid_field(name: str, field: str, value: object, problem: str) -> None:
    model = MODELS[name]
    definition = {**model.definition, model.url_field: "https://host"}
    definition[model.url_field if field == "URL" else field] = value
    with pytest.raises(ValueError, match=problem):
        targets.options(definition)


def test_options__without_a_required_field(name: str) -> None:
    with pytest.raises(ValueError, match="it is missing"):
        targets.options({"provider": name})
    text = "deployment" if name == "azure" else "model"
    with pytest.raises(ValueError, match="a text that is not empty"):
        targets.options({**MODELS[name].definition, text: ""})
