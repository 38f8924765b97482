"""Calls of targets: retries, limits, prices, variables, and what ends a target."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.target import Price, Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace, Usage
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.variables import read_variables
from tests.support import targets
from tests.support.openai_server import OpenAIServer, Reply, failure

Result = TypeVar("Result")
ROOT = Path("/")
SLOW_DOWN = {"retry-after-ms": "300"}


def hello(root: Path = ROOT, **fields: Any) -> Request:
    return targets.request(root, "hello", **fields)


def model(url: str, definition: Mapping[str, Any] | None = None, **fields: Any) -> Target:
    shortest = {"provider": "openai", "model": "m", "base_url": url}
    return targets.target({**shortest, **(definition or {})}, **fields)


def cli(command: Any, **fields: Any) -> Target:
    return targets.target({"provider": "cli", "command": command}, **fields)


def during(use: Callable[[TargetClient], Awaitable[Result]], **fields: Any) -> Result:
    """The result of calls of one client."""

    async def used() -> Result:
        client = targets.calls(**fields)
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(used())


def complete(target: Target, request: Request | None = None, **fields: Any) -> Trace:
    return during(lambda client: client.complete(target, request or hello()), **fields)


def refused(target: Target, request: Request | None = None, **fields: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        complete(target, request, **fields)
    return caught.value


def together(target: Target, count: int) -> list[str]:
    """The answers, or errors, of calls at once."""

    async def gathered(client: TargetClient) -> list[Trace | BaseException]:
        calls = (client.complete(target, hello()) for _ in range(count))
        return await asyncio.gather(*calls, return_exceptions=True)

    found = during(gathered)
    return [each.output if isinstance(each, Trace) else str(each) for each in found]


def one_by_one(target: Target, count: int, budget: Budget) -> list[str]:
    """The answers, or the kinds of the errors, of calls one after another."""

    async def outcomes(client: TargetClient) -> list[str]:
        found = []
        for _ in range(count):
            try:
                found.append((await client.complete(target, hello())).output)
            except AttemptError as error:
                found.append(error.kind)
        return found

    return during(outcomes, budget=budget)


# Retries and rate limits


def test_complete__transient_failures_are_repeated() -> None:
    script = [failure(500, "oops"), Reply(drop=True)]
    with OpenAIServer(otherwise="hi", script=script) as server:
        assert complete(model(server.url)).output == "hi"
    assert len(server.requests) == 3


@pytest.mark.parametrize(("retries", "calls"), [(3, "after 4 calls, "), (0, "")])
def test_complete__no_more_often_than_the_target_allows(retries: int, calls: str) -> None:
    with OpenAIServer(otherwise=failure(503, "busy")) as server:
        error = refused(model(server.url, retries=retries))
    assert (len(server.requests), error.kind) == (retries + 1, "target")
    assert str(error).startswith(f"{calls}127.0.0.1:")
    assert str(error).endswith(" answered 503: busy")


@pytest.mark.parametrize(
    "reply",
    [failure(400, "too long"), Reply(body=b"junk"), Reply(text="", finish_reason="content_filter")],
)
def test_complete__an_error_of_the_test_is_not_repeated(reply: Reply) -> None:
    with OpenAIServer(script=[reply], otherwise="hi") as server:
        assert refused(model(server.url)).kind == "target"
        assert len(server.requests) == 1


def test_complete__a_rate_limit_delays_all_calls_and_uses_neither_retries_nor_time() -> None:
    script = [failure(429, "slow down", headers=SLOW_DOWN)] * 4

    async def timed(client: TargetClient) -> tuple[list[str], float]:
        loop, target = asyncio.get_running_loop(), model(server.url, retries=0)
        started = loop.time()
        calls = (client.complete(target, hello(timeout=20)) for _ in range(4))
        answers = [trace.output for trace in await asyncio.gather(*calls)]
        return answers, loop.time() - started

    with OpenAIServer(otherwise="hi", script=script) as server:
        answers, seconds = during(timed)
    assert (answers, len(server.requests)) == (["hi"] * 4, 8)
    assert seconds >= 0.3


def test_complete__a_target_that_asks_for_too_long_a_wait_is_given_up() -> None:
    script = [failure(429, "slow down", headers={"Retry-After": "3600"})]
    with OpenAIServer(otherwise="hi", script=script) as server:
        (error,) = set(together(model(server.url, max_concurrency=1), 3))
    assert len(server.requests) == 1
    assert error.startswith("the target default cannot be used: 127.0.0.1:")
    assert error.endswith("answered 429: slow down; the wait would exceed 300 s")


@pytest.mark.parametrize("status", [401, 403, 404])
def test_complete__a_dead_target_is_not_called_again(status: int) -> None:
    with OpenAIServer(otherwise=failure(status, "no")) as server:
        errors = together(model(server.url, max_concurrency=1), 20)
    assert len(server.requests) == len(set(errors)) == 1
    assert errors[0].startswith("the target default cannot be used: ")


def test_complete__a_dead_target_is_not_one_with_another_key() -> None:
    async def both(client: TargetClient) -> Trace:
        with pytest.raises(TargetDead):
            await client.complete(model(server.url, {"api_key": "bad"}), hello())
        return await client.complete(model(server.url, {"api_key": "good"}), hello())

    with OpenAIServer(otherwise="hi", key="good") as server:
        assert during(both).output == "hi"


# Limits


def test_complete__the_time_limit_covers_all_retries() -> None:
    script = [failure(500, "oops")]
    with OpenAIServer(script=script, otherwise=Reply(hold=True)) as server:
        error = refused(model(server.url), hello(timeout=0.5))
    assert (error.kind, len(server.requests)) == ("timeout", 2)


@pytest.mark.parametrize(("own", "of_test"), [(0.3, 60), (60, 0.3)])
def test_complete__the_smaller_time_limit_counts(own: float, of_test: float) -> None:
    error = refused(cli("sleep 300", timeout_seconds=own), hello(timeout=of_test))
    assert (error.kind, "did not end within 0." in str(error)) == ("timeout", True)


@pytest.mark.parametrize(("limit", "busiest"), [(3, 3), (None, 6)])
def test_complete__calls_at_once(limit: int | None, busiest: int) -> None:
    with OpenAIServer(otherwise="hi", gather=busiest) as server:
        assert together(model(server.url, max_concurrency=limit), 6) == ["hi"] * 6
    assert server.busiest == busiest


def test_complete__the_limit_holds_over_the_folders_of_suites(tmp_path: Path) -> None:
    async def everywhere(client: TargetClient) -> None:
        target = model(server.url, max_concurrency=2)
        folders = [tmp_path / name for name in ("a", "b", "c", "d")]
        await asyncio.gather(
            *(client.complete(target, hello(tmp_path, folder=folder)) for folder in folders)
        )

    with OpenAIServer(otherwise="hi", gather=2) as server:
        during(everywhere)
    assert server.busiest == 2


def test_complete__cancellation_ends_the_call_and_frees_the_slot(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    script = "cat | grep -q slow && { echo > started; sleep 300; }; echo done"
    target = cli(script, max_concurrency=1)

    async def cancelled(client: TargetClient) -> str:
        request = targets.request(tmp_path, "slow", timeout=300)
        slow = asyncio.create_task(client.complete(target, request))
        await asyncio.to_thread(fifo.read_text)
        waiting = asyncio.create_task(client.complete(target, hello(tmp_path)))
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return (await waiting).output

    assert during(cancelled) == "done"


def test_close__can_be_followed_by_another_call() -> None:
    async def twice(client: TargetClient) -> list[str]:
        found = []
        for _ in range(2):
            found.append((await client.complete(model(server.url), hello())).output)
            await client.close()
        return found

    with OpenAIServer(otherwise="hi") as server:
        assert during(twice) == ["hi", "hi"]


# Cost and time


class OutOfTurns(Provider):
    """Fails after it has used a million tokens."""

    async def complete(self, request: Request) -> Trace:
        error = AttemptError("target", "too many turns")
        error.spent = Trace((), usage=Usage(1_000_000, 0))
        raise error


class Failing(Target):
    """Its provider fails."""

    provider: ClassVar[str] = "failing"

    def connect(self, context: ProviderContext) -> Provider:
        return OutOfTurns()


def test_complete__nothing_is_called_once_the_budget_is_spent() -> None:
    budget = Budget(limit=0.0000249)  # two calls of 11 and 7 tokens
    with OpenAIServer(otherwise="hi") as server:
        found = one_by_one(model(server.url, price=Price(input=0.5, output=1.0)), 4, budget)
    assert (found, len(server.requests)) == (["hi", "hi", "budget", "budget"], 2)
    (notice,) = budget.notices()
    assert notice.endswith("was reached after <$0.0001; 2 calls were not made.")


@pytest.mark.parametrize("answer", ['{"output": "", "cost_usd": 2}', '{"messages": []}', " "])
def test_complete__an_empty_answer_is_an_error(answer: str) -> None:
    error = refused(cli(["printf", "%s", answer]))
    assert error.kind == "target"
    assert "empty" in str(error) or "without an answer" in str(error)


def test_complete__what_failed_is_paid_for() -> None:
    failing = Failing(
        name="agent",
        written_provider="failing",
        price=Price(input=5.0, output=5.0),
    )
    empty = cli(["printf", "%s", '{"output": "", "cost_usd": 5}'])
    for target in (failing, empty):
        found = one_by_one(target, 4, Budget(limit=6))
        assert found == ["target", "target", "budget", "budget"]


def test_complete__the_price_gives_the_cost_where_none_is_reported() -> None:
    price = Price(input=2, output=10)
    with OpenAIServer(otherwise="hi") as server:
        trace = complete(model(server.url, price=price))
        assert trace.usage.cost_usd == pytest.approx((11 * 2 + 7 * 10) / 1e6)
        assert complete(model(server.url)).usage.cost_usd is None
    envelope = '{"text": "x", "cost_usd": 0.5, "token_usage": {"input": 1, "output": 1}}'
    assert complete(cli(["echo", envelope], price=price)).usage.cost_usd == 0.5


def test_complete__the_duration_is_measured_unless_reported() -> None:
    assert complete(cli(["echo", '{"text": "x", "duration_ms": 1500}'])).duration_ms == 1500
    assert 0 < (complete(cli(["cat"])).duration_ms or 0) < 30_000


# Variables


def test_complete__variables_are_resolved_in_every_field() -> None:
    definition = {
        "api_key": "${{ KEY }}",
        "model": "${{ MODEL }}-mini",
        "config": {"user": "${{ KEY }}"},
    }
    with OpenAIServer(otherwise="hi", key="sk-1") as server:
        known = {"KEY": "sk-1", "MODEL": "big", "URL": server.url.removesuffix("/v1")}
        complete(model("${{ URL }}/v1", definition), variables=known)
    body = server.requests[0].body
    assert (body["model"], body["user"]) == ("big-mini", "sk-1")
    assert complete(cli(["echo", "${{ WORD }}"]), variables={"WORD": "a  b"}).output == "a  b"


def test_complete__a_missing_variable_is_named_before_any_call() -> None:
    with OpenAIServer(otherwise="hi") as server:
        error = refused(model(server.url, {"api_key": "${{ KEY }}"}))
        assert (error.kind, server.requests) == ("configuration", [])
    assert "the variable KEY is not set" in str(error)
    definition = {"provider": "openai", "model": "${{ MODEL }}", "config": {"user": "${{ U }}"}}
    error = refused(targets.target(definition), variables={"MODEL": "m"})
    assert "the variables U, OPENAI_API_KEY are not set" in str(error)


def test_complete__bytes_that_are_no_text_are_a_word_and_no_model() -> None:
    known = {"WORD": os.fsdecode(b"m\xff")}
    error = refused(model("http://agent.test", {"model": "${{ WORD }}"}), variables=known)
    assert "`model`: write a text in UTF-8" in str(error)
    code = "import os, sys; print(list(os.fsencode(sys.argv[1])))"
    word = complete(cli(["python3", "-c", code, "${{ WORD }}"]), variables=known)
    assert word.output == "[109, 255]"


def test_complete__a_variable_that_makes_a_field_wrong_is_not_quoted() -> None:
    error = refused(model("${{ URL }}"), variables={"URL": "s3cr3t"})
    assert "not valid with its variables filled in: `base_url`: write a URL" in str(error)
    assert "s3cr3t" not in error.sentence


def test_complete__variables_differ_by_the_folder_of_the_suite(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        (folder / ".env").write_text(f"WORD={folder.name}\n")

    async def both() -> list[str]:
        client = TargetClient(
            lambda root, folder: read_variables({}, root, folder),
            targets.context(),
        )
        requests = [hello(tmp_path, folder=folder) for folder in folders]
        target = cli("echo ${{ WORD }}; pwd")
        return [(await client.complete(target, request)).output for request in requests]

    assert asyncio.run(both()) == [f"a\n{tmp_path}/a", f"b\n{tmp_path}/b"]


# `check`


def test_check__is_one_call_without_retries() -> None:
    async def checked(client: TargetClient) -> str:
        return await client.check(model(server.url), hello())

    with OpenAIServer(otherwise="hi") as server:
        assert during(checked) == ""
    with (
        OpenAIServer(otherwise=failure(503, "busy")) as server,
        pytest.raises(AttemptError, match="503: busy"),
    ):
        during(checked)
    assert len(server.requests) == 1
