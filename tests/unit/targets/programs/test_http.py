import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from tests.support import data, suites, targets
from tests.support.agent_server import AgentServer, Answer

DATA = data.read("formats/http_replies.yaml")
#: What would end a string of JSON, a query or a template, if it could.
NASTY = 'a"},{"admin": true, "x": "\\ {{ id }} {% raw %} ü\u2028\n&b=c#d'


def at(path: str | None) -> dict[str, Any]:
    """The field for the path of the answer in the reply, if there is one."""
    return {} if path is None else {"output_path": path}


def ask(
    url: str, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
) -> Trace:
    definition = {"provider": "http", "url": url, **fields}
    return targets.ask(definition, Path("/"), *messages, **(request or {}))


def refused(reply: Any, path: str = "", **fields: Any) -> AttemptError:
    with AgentServer(reply) as server, pytest.raises(AttemptError) as caught:
        ask(server.url + path, **fields)
    return caught.value


def test_complete__without_a_body_it_is_prompt_messages_and_id() -> None:
    with AgentServer("hi\n") as server:
        messages = Message("system", "brief"), "hello"
        trace = ask(server.url + "/ask?v=1", *messages, request={"conversation_id": "c-1"})
    assert trace == Trace((Message("assistant", "hi"),))  # all figures are unknown
    (asked,) = server.requests
    assert (asked.method, asked.path) == ("POST", "/ask?v=1")
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {
        "prompt": "@[System]:\nbrief\n\n@[User]:\nhello",
        "messages": [{"role": "system", "content": "brief"}, {"role": "user", "content": "hello"}],
        "id": "first",
        "conversation_id": "c-1",
    }


def test_complete__an_object_has_its_strings_filled_in() -> None:
    body = {
        "question": "Q: {{ prompt }}",
        "turns": "{{ input }}",
        "who": {
            "test": "{{ id }}",
            "sample": "{{ sample }}",
            "talk": "{{ conversation_id }}",
            "tier": "{{ metadata.tier | default(3) }}",
        },
        "fixed": [1, 2.5, True, None, "plain", "{% if sample %}again{% else %}first{% endif %}"],
    }
    with AgentServer() as server:
        ask(
            server.url,
            NASTY,
            body=body,
            method="PUT",
            request={"attempt": 0, "metadata": {"tier": "gold"}},
        )
    (asked,) = server.requests
    assert asked.method == "PUT"
    assert asked.body == {
        "question": f"Q: {NASTY}",
        "turns": [{"role": "user", "content": NASTY}],
        "who": {"test": "first", "sample": 0, "talk": None, "tier": "gold"},
        "fixed": [1, 2.5, True, None, "plain", "first"],
    }


def test_complete__headers_and_a_key_with_the_end_of_its_line() -> None:
    with AgentServer("hi", key="sk-1") as server:
        assert (
            ask(server.url, headers={"Authorization": "Bearer sk-1\n", "X-Team": "a b"}).output
            == "hi"
        )
    assert server.requests[0].headers["x-team"] == "a b"


@pytest.mark.parametrize(("reply", "path", "expected"), DATA["answers"])
def test_complete__where_the_answer_is(
    reply: Any, path: str | None, expected: dict[str, Any]
) -> None:
    with AgentServer(reply) as server:
        trace = ask(server.url, **at(path))
    calls = [[call.name, call.arguments] for call in trace.tool_calls or ()]
    roles = [message.role for message in trace.messages]
    found = {"text": trace.output, "calls": calls, "cost": trace.usage.cost_usd, "roles": roles}
    assert {name: found[name] for name in expected} == expected


def test_complete__a_stream_of_events_is_refused() -> None:
    stream = {"Content-Type": "text/event-stream; charset=utf-8"}
    assert "a stream of events" in str(refused(Answer("data: 30 days\n\n", headers=stream)))


@pytest.mark.parametrize(("reply", "path", "message"), DATA["errors"])
def test_complete__a_reply_without_an_answer_is_an_error_of_the_test(
    reply: Any, path: str | None, message: str
) -> None:
    error = refused(reply, **at(path))
    assert type(error) is AttemptError
    assert error.kind == "target"
    assert message in str(error)
    assert str(error).startswith("127.0.0.1:")


def test_complete__a_refused_key_ends_the_target_and_is_not_shown() -> None:
    headers = {"X-API-Key": "a-key-of-ours", "Cookie": "session=of-ours"}
    error = refused(
        Answer({"detail": "a-key-of-ours is no key, session=of-ours neither"}, status=401),
        headers=headers,
    )
    assert isinstance(error, TargetDead)
    assert "*** is no key, *** neither" in str(error)
    assert "`headers`" in error.hint


def test_complete__a_template_that_cannot_be_filled_in() -> None:
    for fields in (
        {"body": {"t": "{{ metadata.tier }}"}},
        {"body": {"t": "a{{ input[7] }}"}},
    ):
        with (
            AgentServer() as server,
            pytest.raises(
                AttemptError, match=r"`body(\.t)?` cannot be rendered: .* has no "
            ) as caught,
        ):
            ask(server.url, **fields)
        assert (caught.value.kind, server.requests) == ("configuration", [])


@pytest.mark.parametrize(
    "template",
    [
        "{{ metadata.__class__.__mro__ }}",
        "{{ ''.format.__globals__ }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_complete__a_template_stays_in_its_sandbox(template: str) -> None:
    error = refused("hi", body={"t": template, "q": "{{ prompt }}"})
    assert error.kind == "configuration"
    assert "root:" not in str(error)


def test_target__variables_are_filled_in_before_the_call() -> None:
    definition = {
        "provider": "http",
        "url": "${{ BASE }}/ask",
        "headers": {"Authorization": "Bearer ${{ AGENT_KEY }}"},
        "body": {"a": "${{ TEAM }}: {{ prompt }}"},
    }

    async def completed(url: str) -> Trace:
        calls = targets.calls({"BASE": url, "AGENT_KEY": "sk-1", "TEAM": "ours"})
        try:
            return await calls.complete(
                targets.target(definition), targets.request(Path("/"), "hello")
            )
        finally:
            await calls.close()

    with AgentServer("hi", key="sk-1") as server:
        assert asyncio.run(completed(server.url)).output == "hi"
    assert server.requests[0].body == {"a": "ours: hello"}


def test_target__a_bad_template_is_a_fault_with_its_place(tmp_path: Path) -> None:
    text = "targets:\n  - name: default\n    provider: http\n    url: http://agent.test\n    body:\n      question: '{{ promt }}'\n"
    suite = "name: suite\ntests: [{id: a, input: q, assert: [{type: is_json}]}]\n"
    suites.write(tmp_path, {".agentv/targets.yaml": text, "EVAL.yaml": suite})

    (diagnostic,) = suites.errors(tmp_path)
    assert diagnostic.startswith(
        ".agentv/targets.yaml:6:7: `body`: in `question`, it names `promt`, which does not exist; write any of `prompt`"
    )
