"""The target proxy of a code judge: real programs and real HTTP on the loopback, with a target that
answers from here."""

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base
from agentevals_action.evaluators.code_judge.target_proxy import (
    MAX_BODY,
    TargetProxy,
    target_proxy,
)
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.system.loopback_server import MAX_HEAD
from agentevals_action.targets.message_texts import prompt_text
from tests.support import cases

CLIENT = """\
import json, os, sys, urllib.error, urllib.request
case = json.load(sys.stdin)
def ask(path, data=None, token=os.environ.get("AGENTV_TARGET_PROXY_TOKEN", "")):
    body = None if data is None else json.dumps(data).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["AGENTV_TARGET_PROXY_URL"] + path, body, headers)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
def say(score, **details):
    print(json.dumps({"score": score, "details": details}))
"""


async def echoing(name: str, messages: Sequence[Message]) -> Trace:
    """A target that says its own name and what it was sent."""
    return Trace((Message("assistant", f"{name}: {prompt_text(messages)}"),), usage=Usage(3, 2))


def judges(ask: Callable[[str, Sequence[Message]], Awaitable[Trace]] = echoing) -> base.Judges:
    return base.Judges("judge", ("default", "judge", "other"), ask)


def judged(
    code: str,
    tmp_path: Path,
    target: Any = True,
    ask: Callable[[str, Sequence[Message]], Awaitable[Trace]] = echoing,
) -> EvaluatorResult:
    """What comes of a judge written in Python that may use `ask` and `say`."""
    fields = {"script": [sys.executable, "-c", CLIENT + code], "target": target}
    return cases.run(
        "code_judge", fields, cases.case("sunny", root=tmp_path, judges=lambda _: judges(ask))
    )


def test_judge__asks_the_judge_target(tmp_path: Path) -> None:
    code = """
status, reply = ask("/invoke", {"question": "Is this kind? " + case["answer"], "systemPrompt": "Be strict."})
say(1, status=status, reply=reply)
"""
    result = judged(code, tmp_path)
    assert result.error is None, result.error
    text = "judge: @[System]:\nBe strict.\n\n@[User]:\nIs this kind? sunny"
    assert result.details == {
        "status": 200,
        "reply": {
            "rawText": text,
            "output": [{"role": "assistant", "content": text}],
            "tokenUsage": {"input": 3, "output": 2},
        },
    }


def test_judge__asks_another_target_by_name_and_in_a_batch(tmp_path: Path) -> None:
    code = """
requests = [{"question": "a"}, {"question": "b", "target": "other"}, {"question": "c", "target": "judge"}]
status, reply = ask("/invokeBatch", {"requests": requests})
say(1, status=status, texts=[one["rawText"] for one in reply["responses"]], info=ask("/info")[1])
"""
    result = judged(code, tmp_path, {"max_calls": 7})
    assert result.details == {
        "status": 200,
        "texts": ["judge: a", "other: b", "judge: c"],
        "info": {
            "targetName": "judge",
            "maxCalls": 7,
            "callCount": 3,
            "availableTargets": ["default", "judge", "other"],
        },
    }


def test_judge__has_a_limit_of_calls(tmp_path: Path) -> None:
    code = """
said = [ask("/invoke", {"question": str(number)})[0] for number in range(4)]
status, reply = ask("/invoke", {"question": "once more"})
say(1, said=said, told=reply["error"])
"""
    result = judged(code, tmp_path, {"max_calls": 2})
    assert result.details["said"] == [200, 200, 429, 429]
    assert "the limit of 2 calls is reached" in result.details["told"]


@pytest.mark.parametrize(
    ("target", "most"), [(True, 50), ({}, 50), ({"max_calls": 3}, 3), ({"max_calls": 0}, 0)]
)
def test_judge__limit_as_written(tmp_path: Path, target: Any, most: int) -> None:
    assert judged('say(1, most=ask("/info")[1]["maxCalls"])', tmp_path, target).details == {
        "most": most
    }


def test_judge__batch_over_the_limit_makes_no_call(tmp_path: Path) -> None:
    code = """
status, _ = ask("/invokeBatch", {"requests": [{"question": "a"}] * 3})
say(1, status=status, calls=ask("/info")[1]["callCount"])
"""
    assert judged(code, tmp_path, {"max_calls": 2}).details == {"status": 429, "calls": 0}


def test_judge__without_a_target_has_no_proxy(tmp_path: Path) -> None:
    code = 'import os; print(any(name.startswith("AGENTV_") for name in os.environ), end=""); raise SystemExit(1)'
    for fields in ({}, {"target": False}):
        result = cases.run(
            "code_judge",
            {"script": [sys.executable, "-c", code], **fields},
            cases.case(root=tmp_path),
        )
        assert result.misses == ("False",)


def test_judge__that_fails_over_a_refusal_says_which(tmp_path: Path) -> None:
    async def failing(name: str, messages: Sequence[Message]) -> Trace:
        raise AttemptError("judge", f"the judge `{name}` could not be asked: out of order")

    result = judged(
        'status, reply = ask("/invoke", {"question": "a"})\nsys.exit(str(status))',
        tmp_path,
        ask=failing,
    )
    assert result.score is None
    assert result.error is not None
    assert result.error.message.startswith("the judge ended with exit code 1: 502")
    assert "the judge `judge` could not be asked: out of order" in result.error.message


def test_judge__that_has_no_judge_target_is_an_error(tmp_path: Path) -> None:
    def none(_: object) -> base.Judges:
        raise AttemptError("configuration", "there is no judge for this test")

    result = cases.run(
        "code_judge", {"script": ["true"], "target": True}, cases.case(root=tmp_path, judges=none)
    )
    assert (result.score, result.error and result.error.kind) == (None, "configuration")


def test_judge__that_ends_while_it_is_answered_cancels_the_call(tmp_path: Path) -> None:
    ended: list[str] = []

    async def never(name: str, messages: Sequence[Message]) -> Trace:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        raise AssertionError

    code = """
import http.client, threading, time
host = os.environ["AGENTV_TARGET_PROXY_URL"].removeprefix("http://")
connection = http.client.HTTPConnection(host)
connection.request("POST", "/invoke", json.dumps({"question": "a"}), {"Authorization": "Bearer " + os.environ["AGENTV_TARGET_PROXY_TOKEN"]})
while ask("/info")[1]["callCount"] == 0:
    time.sleep(0.01)
say(0.5)
"""
    result = judged(code, tmp_path, ask=never)
    assert result.score == 0.5
    assert ended == ["cancelled"]


async def _exchange(proxy: TargetProxy, sent: bytes) -> tuple[int, dict[str, Any]]:
    """Status and body of what the proxy says to raw bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(proxy.url).port)
    writer.write(sent)
    await writer.drain()
    said = await reader.read()
    writer.close()
    head, _, body = said.rpartition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def raw(
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    token: str = "",
) -> bytes:
    own = {
        "Host": "x",
        "Authorization": f"Bearer {token}",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    return (
        f"{method} {path} HTTP/1.1\r\n{''.join(f'{name}: {value}' + chr(13) + chr(10) for name, value in own.items())}\r\n".encode()
        + body
    )


def chunked(token: str, body: bytes) -> bytes:
    head = f"POST /invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body


def exchange(make: Callable[[str], bytes]) -> tuple[int, dict[str, Any]]:
    """Status and body of what a proxy says to bytes made with its token."""

    async def talk() -> tuple[int, dict[str, Any]]:
        async with target_proxy(judges(), 5) as proxy:
            return await _exchange(proxy, make(proxy.token))

    return asyncio.run(talk())


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/invoke", b"", "not valid JSON"),
        ("/invoke", b"\xff", "not valid JSON"),
        ("/invoke", b"[" * 100_000, "not valid JSON"),
        ("/invoke", b"[]", "a JSON object"),
        ("/invoke", b"{}", "`question`"),
        ("/invoke", b'{"question": ""}', "`question`"),
        ("/invoke", b'{"question": 3}', "`question`"),
        ("/invoke", b'{"question": "a", "systemPrompt": []}', "write a text"),
        (
            "/invoke",
            b'{"question": "a", "target": "gone"}',
            "there is no target 'gone'; known are default, judge, other",
        ),
        ("/invokeBatch", b'{"question": "a"}', "`requests`: it is missing"),
        ("/invokeBatch", b'{"requests": [{"question": "a"}, 3]}', "`requests[1]`: write an object"),
    ],
)
def test_proxy__bad_input_is_400_and_says_why(path: str, body: bytes, told: str) -> None:
    status, said = exchange(lambda token: raw("POST", path, body, token=token))
    assert status == 400
    assert told in said["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer ünkown"},
        {},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/info"), ("POST", "/invoke"), ("GET", "/unknown")]
)
def test_proxy__without_its_token_is_401(
    method: str, path: str, headers: Mapping[str, str]
) -> None:
    assert exchange(lambda _: raw(method, path, b'{"question": "a"}', headers))[0] == 401


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda token: raw("GET", "/", token=token), 404),
        (lambda token: raw("GET", "/invoke", token=token), 405),
        (lambda token: raw("POST", "/info", token=token), 405),
        (lambda token: chunked(token, b'11\r\n{"question": "a"}\r\n0\r\n\r\n'), 200),
        (lambda token: chunked(token, b"-1\r\n"), 400),
        (lambda token: raw("POST", "/invoke", b"x" * (MAX_BODY + 1), token=token), 413),
        (lambda token: raw("GET", "/info", token=token, headers={"X": "x" * 3 * MAX_HEAD}), 431),
        (lambda token: b"hello\r\n\r\n", 400),
        (lambda token: raw("GET", "/info?x=1", token=token), 200),
        (
            lambda token: raw(
                "POST", "/invoke", b'{"question": "a"}', {"Expect": "100-continue"}, token
            ),
            100,
        ),
    ],
)
def test_proxy__other_requests(make: Callable[[str], bytes], status: int) -> None:
    assert exchange(make)[0] == status


def test_proxy__listens_on_the_loopback_alone_and_is_gone_afterwards() -> None:
    with socket.socket() as silent:

        async def talk() -> tuple[str, int]:
            async with target_proxy(judges(), 1) as proxy:
                place = urlsplit(proxy.url)
                # A client that connects and says nothing does not hold it up.
                silent.connect((place.hostname, place.port))
                await _exchange(proxy, raw("GET", "/info", token=proxy.token))
                return place.hostname or "", place.port or 0

        host, port = asyncio.run(talk())
        assert host == "127.0.0.1"
        assert silent.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port))


def test_proxy__calls_side_by_side_do_not_pass_the_limit_together() -> None:
    async def talk() -> list[int]:
        async with target_proxy(judges(), 3) as proxy:
            sent = raw("POST", "/invoke", b'{"question": "a"}', token=proxy.token)
            return sorted(
                status
                for status, _ in await asyncio.gather(*(_exchange(proxy, sent) for _ in range(8)))
            )

    assert asyncio.run(talk()) == [200] * 3 + [429] * 5


def test_proxy__each_has_a_token_of_its_own() -> None:
    async def talk() -> int:
        async with target_proxy(judges(), 3) as one, target_proxy(judges(), 3) as other:
            return (await _exchange(one, raw("GET", "/info", token=other.token)))[0]

    assert asyncio.run(talk()) == 401
