"""The target proxy of a code judge: real programs and real HTTP on the loopback, with a target that
answers from here."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.code_judge.target_proxy import MAX_BODY, TargetProxy, target_proxy
from agentevals_action.model.evaluator import Judges
from agentevals_action.model.messages import Message
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace, Usage
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
"""
QUESTION = {"question": "a"}
Ask = Callable[[str, Sequence[Message]], Awaitable[Trace]]


async def echoing(name: str, messages: Sequence[Message]) -> Trace:
    """A target whose answer is its own name and the prompt."""
    return Trace((Message("assistant", f"{name}: {prompt_text(messages)}"),), usage=Usage(3, 2))


def judges(ask: Ask = echoing) -> Judges:
    return Judges("judge", ("default", "judge", "other"), ask)


def judged(code: str, tmp_path: Path, ask: Ask = echoing) -> EvaluatorResult:
    """The result of a judge written in Python, which may use `ask`."""
    fields = {"script": [sys.executable, "-c", CLIENT + code], "target": True}
    return cases.run(
        "code_judge", fields, cases.case("sunny", root=tmp_path, judges=lambda _: judges(ask))
    )


def test_judge__asks_the_judge_target(tmp_path: Path) -> None:
    code = """
status, reply = ask("/invoke", {"question": "Is this kind? " + case["answer"], "systemPrompt": "Be strict."})
print(json.dumps({"score": 1, "details": {"status": status, "reply": reply}}))
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


def test_judge__without_a_target_has_no_proxy(tmp_path: Path) -> None:
    code = 'import os; print("AGENTV_TARGET_PROXY_URL" in os.environ, end=""); raise SystemExit(1)'
    fields = {"script": [sys.executable, "-c", code], "target": False}
    result = cases.run("code_judge", fields, cases.case(root=tmp_path))
    assert result.misses == ("False",)


def test_judge__that_fails_after_a_refusal_names_it(tmp_path: Path) -> None:
    async def failing(name: str, messages: Sequence[Message]) -> Trace:
        raise AttemptError("judge", f"the judge `{name}` could not be asked: out of order")

    code = 'status, reply = ask("/invoke", {"question": "a"})\nsys.exit(str(status))'
    result = judged(code, tmp_path, ask=failing)
    assert result.score is None
    assert result.error is not None
    assert result.error.message.startswith("the judge ended with exit code 1: 502")
    assert "the judge `judge` could not be asked: out of order" in result.error.message


def test_judge__that_has_no_judge_target_is_an_error(tmp_path: Path) -> None:
    def none(_: object) -> Judges:
        raise AttemptError("configuration", "there is no judge for this test")

    result = cases.run(
        "code_judge", {"script": ["true"], "target": True}, cases.case(root=tmp_path, judges=none)
    )
    assert (result.score, result.error and result.error.kind) == (None, "configuration")


@pytest.mark.parametrize(
    ("target", "limit"), [(True, 50), ({}, 50), ({"max_calls": 3}, 3), ({"max_calls": 0}, 0)]
)
def test_limit__is_the_field_or_fifty(target: Any, limit: int) -> None:
    made = cases.evaluator("code_judge", {"script": ["true"], "target": target})
    assert made.model_dump()["target"] == {"max_calls": limit}


def talk(
    *requests: tuple[str, str, Any], limit: int = 5, headers: Mapping[str, str] | None = None
) -> list[tuple[int, Any]]:
    """Status and body of the replies to requests that are sent at the same time; a body of bytes is
    sent unchanged."""

    async def send(proxy: TargetProxy) -> list[tuple[int, Any]]:
        own = {"Authorization": f"Bearer {proxy.token}"} if headers is None else headers
        async with httpx.AsyncClient(base_url=proxy.url, headers=own, trust_env=False) as client:
            replies = await asyncio.gather(*(
                client.request(method, path, **({"content": body} if isinstance(body, bytes) else {"json": body}))
                for method, path, body in requests
            ))  # fmt: skip
        return [(reply.status_code, reply.json()) for reply in replies]

    async def run() -> list[tuple[int, Any]]:
        async with target_proxy(judges(), limit) as proxy:
            return await send(proxy)

    return asyncio.run(run())


def test_proxy__answers_a_batch_in_order_by_target() -> None:
    requests = [QUESTION, {"question": "b", "target": "other"}]
    ((status, reply),) = talk(("POST", "/invokeBatch", {"requests": requests}))
    assert status == 200
    assert [answer["rawText"] for answer in reply["responses"]] == ["judge: a", "other: b"]


def test_proxy__states_its_targets_and_limit() -> None:
    targets = ["default", "judge", "other"]
    info = {"targetName": "judge", "maxCalls": 7, "callCount": 0, "availableTargets": targets}
    assert talk(("GET", "/info", None), limit=7) == [(200, info)]


def test_limit__is_shared_by_requests_at_the_same_time() -> None:
    replies = talk(*[("POST", "/invoke", QUESTION)] * 8, limit=3)
    assert sorted(status for status, _ in replies) == [200] * 3 + [429] * 5
    refused = next(body for status, body in replies if status == 429)
    assert "the limit of 3 calls is reached" in refused["error"]


def test_limit__a_batch_over_it_makes_no_call() -> None:
    ((status, reply),) = talk(("POST", "/invokeBatch", {"requests": [QUESTION] * 3}), limit=2)
    assert (status, "(0 made, 3 asked for)" in reply["error"]) == (429, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "problem"),
    [
        ("POST", "/invoke", b"[" * 100_000, 400, "Invalid JSON"),
        ("POST", "/invoke", [], 400, "should be an object"),
        ("POST", "/invoke", {}, 400, "`question`"),
        ("POST", "/invoke", {"question": ""}, 400, "`question`"),
        ("POST", "/invoke", {**QUESTION, "target": "gone"}, 400, "there is no target 'gone'"),
        ("POST", "/invokeBatch", QUESTION, 400, "`requests`: Field required"),
        ("POST", "/invoke", b"x" * (MAX_BODY + 1), 413, ""),
        ("GET", "/", None, 404, "there is no /"),
        ("GET", "/invoke", None, 405, "needs POST"),
    ],
)
def test_proxy__refuses_with_a_reason(
    method: str, path: str, body: Any, status: int, problem: str
) -> None:
    ((replied, reply),) = talk((method, path, body))
    assert replied == status
    assert problem in reply["error"]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
@pytest.mark.parametrize("request_", [("GET", "/info", None), ("POST", "/invoke", QUESTION)])
def test_proxy__without_its_token_is_401(
    request_: tuple[str, str, Any], headers: Mapping[str, str]
) -> None:
    assert talk(request_, headers=headers)[0][0] == 401


def test_proxy__that_ends_cancels_calls_and_is_gone() -> None:
    ended: list[str] = []
    started = asyncio.Event()

    async def never(name: str, messages: Sequence[Message]) -> Trace:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        raise AssertionError

    async def run() -> str:
        async with target_proxy(judges(never), 5) as proxy, httpx.AsyncClient() as client:
            headers = {"Authorization": f"Bearer {proxy.token}"}
            call = client.post(f"{proxy.url}/invoke", json=QUESTION, headers=headers)
            waiting = asyncio.ensure_future(call)
            await started.wait()
        waiting.cancel()
        return proxy.url

    url = asyncio.run(run())
    assert ended == ["cancelled"]
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)
