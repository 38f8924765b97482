"""`http` with `start`: services that run as long as the run."""

import asyncio
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.model.target import Provider, ProviderContext, Target
from agentevals_action.model.trace import Trace
from agentevals_action.system.services import StartedServices
from tests.support import targets
from tests.support.agent_service import SERVICE
from tests.support.processes import gone

START = [sys.executable, "-S", "service.py", "{PORT}"]
URL = "http://127.0.0.1:{PORT}/ask?x=1"


def started(root: Path, service: str = SERVICE, **fields: Any) -> Target:
    """A target that starts this service."""
    (root / "service.py").write_text(service)
    return targets.target({"provider": "http", "url": URL, "start": START, **fields})


def ask(
    root: Path, *prompts: str, around: ProviderContext | None = None, **fields: Any
) -> list[str | AttemptError]:
    """The answers and errors of a service, whose calls are made one after another."""
    requests = [targets.request(root, prompt) for prompt in prompts]
    found = targets.outcomes(started(root, **fields), *requests, around=around)
    return [each.output if isinstance(each, Trace) else each for each in found]


def fail(root: Path, around: ProviderContext | None = None, **fields: Any) -> AttemptError:
    return targets.refused(started(root, **fields), root, "hi", around=around)


def test_complete__one_service_answers_all_calls_and_ends_with_its_processes(
    tmp_path: Path,
) -> None:
    answer, pid, again, child, folder = ask(tmp_path, "hi", "pid", "pid", "child", "folder")
    assert (answer, pid, folder) == ("Hello hi", again, str(tmp_path))
    assert gone(int(str(pid)))
    assert gone(int(str(child)))


def test_complete__one_service_for_each_target_and_tree_also_in_parallel(tmp_path: Path) -> None:
    trees = [tmp_path / "head", tmp_path / "base"]
    around = targets.context()

    async def ask_all(first: Provider) -> set[str]:
        requests = [targets.request(tree, "pid") for tree in trees]
        providers = (first, target.model_copy(update={"name": "other"}).connect(around))
        calls = [targets.answer(provider, each) for provider in providers for each in requests * 3]
        return {trace.output for trace in await asyncio.gather(*calls)}

    for tree in trees:
        tree.mkdir()
        target = started(tree)
    pids = targets.use(target, ask_all, around)
    assert len(pids) == 4
    assert all(gone(int(pid)) for pid in pids)


def test_complete__the_time_until_it_is_ready_is_not_that_of_the_answer(tmp_path: Path) -> None:
    """A service may need longer than the time-out of a test."""

    async def run() -> Trace:
        calls, request = targets.calls(), targets.request(tmp_path, "hi", timeout=2)
        try:
            return await calls.complete(started(tmp_path, ready=2.1), request)
        finally:
            await calls.close()

    trace = asyncio.run(run())
    assert trace.output == "Hello hi"
    assert trace.duration_ms is not None
    assert trace.duration_ms <= 2000


@pytest.mark.parametrize("ready", ["/health", None, 0.01])
def test_complete__a_service_is_asked_once_it_is_ready(
    tmp_path: Path, ready: str | float | None
) -> None:
    slow = f"import time; time.sleep(0.2)\n{SERVICE}"
    fields: dict[str, Any] = {} if ready is None else {"ready": ready}
    (checks,) = ask(tmp_path, "checks", service=slow, **fields)
    assert checks == ("3" if isinstance(ready, str) else "0")


def test_complete__a_proxy_is_not_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert ask(tmp_path, "hi", ready="/health") == ["Hello hi"]


@pytest.mark.parametrize("status", [400, 401, 500])
def test_complete__its_last_lines_are_in_an_error(tmp_path: Path, status: int) -> None:
    _, error = ask(tmp_path, "log no database", f"status {status}")
    assert isinstance(error, AttemptError)
    assert f"answered {status}" in str(error)
    assert str(error).endswith("; its service wrote: no database")
    # A retry may help; and one that refuses every call is not that of the other side.
    assert type(error) is (TransientError if status == 500 else AttemptError)


def test_complete__one_that_ends_is_an_error_of_every_later_call(tmp_path: Path) -> None:
    answer, lost, after = map(str, ask(tmp_path, "hi", "exit 3", "hi"))
    assert answer == "Hello hi"
    assert lost.endswith("; its service wrote: out of order")
    assert after == "its service ended with exit code 3; its service wrote: out of order"


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (
            ["sh", "-c", "echo no module >&2; exit 4", "{PORT}"],
            "its service ended with exit code 4; its service wrote: no module",
        ),
        (
            ": {PORT}; sleep 600 >/dev/null 2>&1 &",
            "its service ended with exit code 0, and must stay in the foreground",
        ),
        (["nothing-like-it", "{PORT}"], "its service cannot be started: there is no command"),
    ],
)
def test_complete__one_that_does_not_start(tmp_path: Path, start: Any, problem: str) -> None:
    error = fail(tmp_path, start=start)
    assert str(error).startswith(problem)
    assert error.kind == "target"


def test_complete__of_what_it_wrote_whole_lines_are_shown(tmp_path: Path) -> None:
    start = ["sh", "-c", "seq 100000 120000; exit 1", "{PORT}"]
    _, *lines = str(fail(tmp_path, start=start)).splitlines()
    assert lines[-1] == "120000"
    assert {len(line) for line in lines if line.isdecimal()} == {6}


NEVER_READY = "echo $$; exec sleep 600 {PORT}"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, r"nothing listens on its port \d+"),
        ({"ready": "/health"}, r"the connection to .* failed: .*"),
    ],
)
def test_complete__one_that_never_gets_ready_is_ended(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    around = replace(targets.context(), services=StartedServices(limit=0.5))
    outcomes = ask(tmp_path, "hi", "hi", start=NEVER_READY, around=around, **fields)
    first, second = map(str, outcomes)
    not_ready = "its service was not ready within 0.5 s"
    assert re.fullmatch(rf"{not_ready}: {problem}; its service wrote: \d+", first)
    assert second == first  # it is not started again
    assert gone(int(first.split()[-1]))


def test_complete__it_sees_the_variables_in_env(tmp_path: Path) -> None:
    around = targets.context({"TOKEN": "t-1", "OTHER": "o-1"})
    prompts, headers = ("variable TOKEN", "variable OTHER"), {"X-Key": "${{ TOKEN }}"}
    assert ask(tmp_path, *prompts, around=around, env=["TOKEN"], headers=headers) == ["t-1", "None"]


@pytest.mark.parametrize("fields", [{}, {"env": ["OTHER"]}])
def test_complete__a_key_that_it_does_not_see_is_not_sent_to_it(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    around = targets.context({"TOKEN": "t-1", "OTHER": "o-1"} if fields else {})
    error = fail(tmp_path, around, headers={"X-Key": "${{ TOKEN }}"}, **fields)
    assert str(error) == "the service that `start` runs does not see TOKEN"
    assert error.kind == "configuration"


def test_port__no_system_gives_it_to_others(tmp_path: Path) -> None:
    (answer,) = ask(tmp_path, "hi", start=["sh", "-c", "echo {PORT} >&2; exit 1"])
    port = int(str(answer).split()[-1])
    lowest, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert 1024 < port < int(lowest)
