import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.client import TargetClient, missing_variables
from agentevals_action.targets.variables import read_variables
from tests.support import targets
from tests.support.openai_server import OpenAIServer, Reply, failure

ENVIRONMENT = {"PATH": os.environ["PATH"]}
ROOT = Path("/")


def model(url: str, **fields: Any) -> Target:
    definition = {
        "provider": "openai",
        "model": "m",
        "base_url": url,
        **fields.pop("definition", {}),
    }
    return targets.target(definition, **fields)


def cli(command: Any, **fields: Any) -> Target:
    return targets.target(
        {"provider": "cli", "command": command, **fields.pop("definition", {})}, **fields
    )


def complete(
    target: Target,
    request: Request | None = None,
    variables: Mapping[str, str] | None = None,
    **fields: Any,
) -> Trace:
    async def completed() -> Trace:
        calls = targets.calls(ENVIRONMENT, variables, **fields)
        try:
            return await calls.complete(target, request or targets.request(ROOT, "hello"))
        finally:
            await calls.close()

    return asyncio.run(completed())


def all_of(
    target: Target, count: int, variables: Mapping[str, str] | None = None
) -> list[Trace | BaseException]:
    async def gathered() -> list[Trace | BaseException]:
        calls = targets.calls(ENVIRONMENT, variables)
        try:
            return await asyncio.gather(
                *(calls.complete(target, targets.request(ROOT, "hello")) for _ in range(count)),
                return_exceptions=True,
            )
        finally:
            await calls.close()

    return asyncio.run(gathered())


def test_complete__transient_failures_are_repeated() -> None:
    script = [failure(500, "oops"), Reply(drop=True)]
    with OpenAIServer(otherwise="hi", script=script) as server:
        assert complete(model(server.url)).output == "hi"
    assert len(server.requests) == 3


@pytest.mark.parametrize("answer", ['{"output": "", "cost_usd": 2}', '{"messages": []}', " "])
def test_complete__an_empty_answer_is_an_error(answer: str, tmp_path: Path) -> None:
    target = cli(["sh", "-c", 'printf %s "$1"', "sh", answer])
    with pytest.raises(AttemptError, match=r"empty|without an answer") as caught:
        complete(target, targets.request(tmp_path, "hello"))
    assert caught.value.kind == "target"


def test_complete__an_empty_answer_is_paid_for(tmp_path: Path) -> None:
    target = cli(["printf", "%s", '{"output": "", "cost_usd": 2}'])
    budget = Budget(1)
    with pytest.raises(AttemptError, match="the answer is empty"):
        complete(target, targets.request(tmp_path, "hello"), budget=budget)
    with pytest.raises(AttemptError) as caught:
        budget.check()
    assert caught.value.kind == "budget"


def test_complete__no_more_often_than_the_target_says() -> None:
    with (
        OpenAIServer(otherwise=failure(503, "busy")) as server,
        pytest.raises(AttemptError, match=r"503: busy \(after 4 calls\)") as caught,
    ):
        complete(model(server.url, retries=3))
    assert (len(server.requests), caught.value.kind) == (4, "target")
    with (
        OpenAIServer(otherwise=failure(503, "busy")) as server,
        pytest.raises(AttemptError, match=r"503: busy$"),
    ):
        complete(model(server.url, retries=0))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [failure(400, "too long"), Reply(body=b"junk"), Reply(text="", finish_reason="content_filter")],
)
def test_complete__an_error_of_the_test_is_not_repeated(reply: Reply) -> None:
    with OpenAIServer({"first": reply}, otherwise="hi") as server:
        with pytest.raises(AttemptError):
            complete(model(server.url), targets.request(ROOT, "first"))
        assert len(server.requests) == 1
        assert complete(model(server.url)).output == "hi"


def test_complete__the_wait_that_the_server_asks_for_is_kept() -> None:
    async def timed(server: OpenAIServer) -> float:
        calls, loop = targets.calls(ENVIRONMENT), asyncio.get_running_loop()
        started = loop.time()
        await calls.complete(model(server.url), targets.request(ROOT, "hello"))
        await calls.close()
        return loop.time() - started

    with OpenAIServer(
        otherwise="hi", script=[failure(429, "slow down", headers={"retry-after-ms": "300"})]
    ) as server:
        assert asyncio.run(timed(server)) >= 0.3


def test_complete__a_target_that_asks_for_too_much_patience_is_given_up() -> None:
    script = [failure(429, "slow down", headers={"Retry-After": "3600"})]
    with OpenAIServer(otherwise="hi", script=script) as server:
        gone = all_of(model(server.url, max_concurrency=1), 3)
    assert len(server.requests) == 1
    assert [str(error) for error in gone] == [
        f"the target default cannot be used: {server.url.removeprefix('http://').removesuffix('/v1')} answered 429: slow down; "
        "the wait would exceed 300 s"
    ] * 3


def test_complete__rate_limits_cost_no_test_its_tries() -> None:
    script = [failure(429, "slow down", headers={"retry-after-ms": "20"})] * 6
    with OpenAIServer(otherwise="hi", script=script) as server:
        answers = all_of(model(server.url, retries=0), 4)
    assert [answer.output if isinstance(answer, Trace) else answer for answer in answers] == [
        "hi"
    ] * 4
    assert len(server.requests) == 10


@pytest.mark.slow
def test_complete__a_rate_limit_slows_the_target_as_a_whole() -> None:
    async def one_then_others(url: str) -> float:
        calls, loop = targets.calls(ENVIRONMENT), asyncio.get_running_loop()
        target = model(url, retries=0)
        started = loop.time()
        first = asyncio.create_task(
            calls.complete(target, targets.request(ROOT, "hello", timeout=1.5))
        )
        while not server.requests:
            await asyncio.wait([first], timeout=0.01)
        await asyncio.wait([first], timeout=0.3)  # refused by now, and waiting
        await asyncio.gather(
            *(calls.complete(target, targets.request(ROOT, "hello", timeout=1.5)) for _ in range(3))
        )
        took = loop.time() - started
        await first
        await calls.close()
        return took

    with OpenAIServer(
        otherwise="hi", script=[failure(429, "slow down", headers={"retry-after-ms": "2000"})]
    ) as server:
        assert asyncio.run(one_then_others(server.url)) >= 1.95
    assert len(server.requests) == 5


def test_complete__nothing_is_called_once_the_budget_is_spent() -> None:
    async def spent(url: str) -> tuple[list[str], tuple[str, ...]]:
        budget = Budget(limit=0.0000249)  # two calls of 11 and 7 tokens
        calls = targets.calls(ENVIRONMENT, budget=budget)
        target = model(url, price=Price(0.5, 1.0))
        told = []
        for _ in range(4):
            try:
                told.append((await calls.complete(target, targets.request(ROOT, "hello"))).output)
            except AttemptError as error:
                told.append(error.kind)
        await calls.close()
        return told, budget.notices()

    with OpenAIServer(otherwise="hi") as server:
        told, notices = asyncio.run(spent(server.url))
    assert (told, len(server.requests)) == (["hi", "hi", "budget", "budget"], 2)
    assert notices == (
        "`max-cost-usd` ($0.0000249) was reached after <$0.0001; 2 calls were not made.",
    )


class Failing(ProviderOptions):
    """Fails after it has done its work."""

    provider: ClassVar[str] = "failing"

    def connect(self, context: ProviderContext) -> Provider:
        return self

    def load(self, folder: Folder) -> None:
        """Nothing to read."""

    async def complete(self, request: Request) -> Trace:
        error = AttemptError("target", "too many turns")
        error.spent = Trace((), usage=Usage(1_000_000, 0))
        raise error

    async def check(self, request: Request) -> str:
        return ""

    async def close(self) -> None: ...


def test_complete__what_failed_is_paid_for_all_the_same() -> None:
    async def kinds() -> list[str]:
        calls = targets.calls(ENVIRONMENT, budget=Budget(limit=6))
        target = Target(
            name="agent",
            provider="failing",
            options=Failing(),
            location=Location(".agentv/targets.yaml"),
            price=Price(5.0, 5.0),
        )
        told = []
        for _ in range(4):
            with pytest.raises(AttemptError) as caught:
                await calls.complete(target, targets.request(ROOT, "hello"))
            told.append(caught.value.kind)
        return told

    assert asyncio.run(kinds()) == ["target", "target", "budget", "budget"]


def test_check__asks_for_the_least() -> None:
    async def checked(url: str) -> None:
        calls = targets.calls(ENVIRONMENT)
        await calls.check(model(url), targets.request(ROOT, "hello"))
        await calls.close()

    with OpenAIServer(otherwise="hi") as server:
        asyncio.run(checked(server.url))
    assert len(server.requests) == 1
    with (
        OpenAIServer(otherwise=failure(401, "no such key")) as server,
        pytest.raises(TargetDead, match="401: no such key"),
    ):
        asyncio.run(checked(server.url))


def test_complete__the_time_limit_covers_all_tries() -> None:
    with (
        OpenAIServer(script=[failure(500, "oops")], otherwise=Reply(hold=True)) as server,
        pytest.raises(AttemptError) as caught,
    ):
        complete(model(server.url), targets.request(ROOT, "hello", timeout=0.5))
    assert (caught.value.kind, len(server.requests)) == ("timeout", 2)


def test_complete__the_smaller_limit_counts() -> None:
    with pytest.raises(AttemptError, match=r"did not end within 0\.\d+ s") as caught:
        complete(cli("sleep 300", timeout_seconds=0.3), targets.request(ROOT, "hello", timeout=60))
    assert caught.value.kind == "timeout"
    with pytest.raises(AttemptError, match=r"did not end within 0\.\d+ s"):
        complete(cli("sleep 300", timeout_seconds=60), targets.request(ROOT, "hello", timeout=0.3))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_complete__a_dead_target_is_left_alone(status: int) -> None:
    with OpenAIServer(otherwise=failure(status, "no")) as server:
        errors = all_of(model(server.url, max_concurrency=1), 20)
        assert len(server.requests) == 1
    assert {type(error) for error in errors} == {TargetDead}
    assert len({str(error) for error in errors}) == 1
    assert str(errors[0]).startswith("the target default cannot be used: ")


def test_complete__a_dead_target_does_not_take_another_with_it() -> None:
    async def both(server: OpenAIServer) -> Trace:
        calls = targets.calls(ENVIRONMENT)
        with pytest.raises(TargetDead):
            await calls.complete(
                model(server.url, definition={"api_key": "bad"}), targets.request(ROOT, "hello")
            )
        trace = await calls.complete(
            model(server.url, definition={"api_key": "good"}), targets.request(ROOT, "hello")
        )
        await calls.close()
        return trace

    with OpenAIServer(otherwise="hi", key="good") as server:
        assert asyncio.run(both(server)).output == "hi"


def test_complete__calls_at_once_are_limited_by_target() -> None:
    with OpenAIServer(otherwise="hi", gather=3) as server:
        assert [
            trace.output
            for trace in all_of(model(server.url, max_concurrency=3), 12)
            if isinstance(trace, Trace)
        ] == ["hi"] * 12
    assert server.busiest == 3


def test_complete__without_a_limit_all_go_at_once() -> None:
    with OpenAIServer(otherwise="hi", gather=6) as server:
        all_of(model(server.url), 6)
    assert server.busiest == 6


def test_complete__the_limit_holds_over_suite_folders(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]

    async def everywhere(server: OpenAIServer) -> None:
        calls = targets.calls(ENVIRONMENT)
        target = model(server.url, max_concurrency=2)
        await asyncio.gather(
            *(
                calls.complete(target, targets.request(tmp_path, "hello", folder=folder))
                for folder in folders
            )
        )
        await calls.close()

    with OpenAIServer(otherwise="hi", gather=2) as server:
        asyncio.run(everywhere(server))
    assert server.busiest == 2


def test_complete__the_price_gives_the_cost_where_none_is_reported() -> None:
    with OpenAIServer(otherwise="hi") as server:
        assert complete(
            model(server.url, price=Price(input=2, output=10))
        ).usage.cost_usd == pytest.approx((11 * 2 + 7 * 10) / 1e6)
        assert complete(model(server.url)).usage.cost_usd is None
    with OpenAIServer(otherwise=Reply(text="hi", usage=None)) as server:
        assert complete(model(server.url, price=Price(input=2, output=10))).usage.cost_usd is None
    envelope = targets.request(
        ROOT, '{"text": "x", "cost_usd": 0.5, "token_usage": {"input": 1, "output": 1}}'
    )
    assert complete(cli(["cat"], price=Price(input=2, output=10)), envelope).usage.cost_usd == 0.5


def test_complete__the_duration_is_measured_unless_reported() -> None:
    assert (
        complete(
            cli(["cat"]), targets.request(ROOT, '{"text": "x", "duration_ms": 1500}')
        ).duration_ms
        == 1500
    )
    assert 0 < (complete(cli(["cat"])).duration_ms or 0) < 30_000


def test_complete__variables_are_resolved_in_every_field() -> None:
    definition = {
        "api_key": "${{ KEY }}",
        "model": "${{ MODEL }}-mini",
        "config": {"user": "${{ KEY }}"},
    }
    with OpenAIServer(otherwise="hi", key="sk-1") as server:
        target = model("${{ URL }}/v1", definition=definition)
        complete(
            target, variables={"KEY": "sk-1", "MODEL": "big", "URL": server.url.removesuffix("/v1")}
        )
    assert (server.requests[0].body["model"], server.requests[0].body["user"]) == (
        "big-mini",
        "sk-1",
    )
    assert complete(cli("echo ${{ WORD }}"), variables={"WORD": "said"}).output == "said"
    assert complete(cli(["echo", "${{ WORD }}"]), variables={"WORD": "a  b"}).output == "a  b"


def test_complete__a_missing_variable_is_named_before_any_call() -> None:
    with (
        OpenAIServer(otherwise="hi") as server,
        pytest.raises(AttemptError, match="the variable KEY is not set") as caught,
    ):
        complete(model(server.url, definition={"api_key": "${{ KEY }}"}))
    assert (caught.value.kind, server.requests) == ("configuration", [])
    with pytest.raises(AttemptError, match="the variable OPENAI_API_KEY is not set"):
        complete(targets.target({"provider": "openai", "model": "m"}))


def test_complete__a_variable_with_bytes_that_are_no_text_makes_no_name_of_a_model() -> None:
    with (
        OpenAIServer(otherwise="hi") as server,
        pytest.raises(AttemptError, match="`model`: write a text in UTF-8") as caught,
    ):
        complete(
            model(server.url, definition={"model": "${{ MODEL }}"}),
            variables={"MODEL": os.fsdecode(b"m\xff")},
        )
    assert (caught.value.kind, server.requests) == ("configuration", [])


def test_complete__a_word_of_a_command_is_passed_on_with_all_its_bytes() -> None:
    command = [
        "python3",
        "-c",
        "import os, sys; print(list(os.fsencode(sys.argv[1])))",
        "${{ WORD }}",
    ]
    assert complete(cli(command), variables={"WORD": os.fsdecode(b"m\xff")}).output == "[109, 255]"


def test_complete__what_a_variable_makes_wrong_is_said_without_its_value() -> None:
    with pytest.raises(
        AttemptError, match=r"not valid with its variables filled in: `base_url`: .*write a URL"
    ) as caught:
        complete(model("${{ URL }}"), variables={"URL": "s3cr3t"})
    assert "s3cr3t" not in str(caught.value)


def test_complete__variables_differ_by_the_suites_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(f"WORD={name}\n")

    async def both() -> list[str]:
        calls = TargetClient(
            lambda root, folder: read_variables({}, root, folder),
            ProviderContext({}, ChildContext(ENVIRONMENT)),
        )
        target = cli("echo ${{ WORD }}; pwd")
        return [
            (
                await calls.complete(target, targets.request(tmp_path, "x", folder=tmp_path / name))
            ).output
            for name in ("a", "b")
        ]

    assert asyncio.run(both()) == [f"a\n{tmp_path}/a", f"b\n{tmp_path}/b"]


def test_complete__children_get_what_is_allowed() -> None:
    target = cli('echo "<$AGENT_KEY>"')
    assert complete(target, allowed={"AGENT_KEY": "k"}).output == "<k>"
    assert complete(target, variables={"AGENT_KEY": "k"}).output == "<>"


def test_complete__a_failing_child_names_what_was_withheld() -> None:
    with pytest.raises(AttemptError) as caught:
        complete(cli("exit 1"), withheld=("OPENAI_API_KEY",))
    assert "OPENAI_API_KEY" in caught.value.hint


def test_complete__cancellation_ends_the_call_and_frees_the_slot(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)

    async def cancelled() -> str:
        calls = targets.calls(ENVIRONMENT)
        target = cli(
            "cat | grep -q slow && { echo > started; sleep 300; }; echo done", max_concurrency=1
        )
        slow = asyncio.create_task(
            calls.complete(target, targets.request(tmp_path, "slow", timeout=300))
        )
        await asyncio.to_thread(fifo.read_text)
        waiting = asyncio.create_task(calls.complete(target, targets.request(tmp_path, "quick")))
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return (await waiting).output

    assert asyncio.run(cancelled()) == "done"


def test_close__can_be_followed_by_another_call() -> None:
    async def twice(server: OpenAIServer) -> list[str]:
        calls, target, said = targets.calls(ENVIRONMENT), model(server.url), []
        for _ in range(2):
            said.append((await calls.complete(target, targets.request(ROOT, "hello"))).output)
            await calls.close()
        return said

    with OpenAIServer(otherwise="hi") as server:
        assert asyncio.run(twice(server)) == ["hi", "hi"]


def test_missing_variables__those_of_the_definition_and_the_providers_own() -> None:
    target = targets.target(
        {"provider": "openai", "model": "${{ MODEL }}", "config": {"user": "${{ USER_ID }}"}}
    )
    assert missing_variables(target, {"MODEL": "m"}) == ("USER_ID", "OPENAI_API_KEY")
    assert missing_variables(target, {"MODEL": "m", "USER_ID": "u", "OPENAI_API_KEY": "k"}) == ()
