"""The cache through the command line: what an unchanged suite costs the second time, and what head
must never be served."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.openai_server import OpenAIServer, Reply, failure
from tests.support.repositories import Repository

KEY = "sk-not-for-anybody-123456"
SUITE = """\
name: greeter
tests:
  - id: greets
    input: Say good day to Ada
    criteria: greets by name
    assert:
      - {name: judge, type: llm_judge}
      - {name: quality, type: rubric, rubrics: [is polite]}
  - id: short
    input: Say good day to Bob
    assert: [{type: contains, value: Good day}]
"""
MODEL = """\
targets:
  - {name: default, provider: openai, model: m, base_url: %s, api_key: "${{ MODEL_KEY }}"}
"""
#: It counts its calls in a file outside of the repository.
AGENT = 'read name; echo "$name" >> %s; echo "Good day, $name."\n'
SHORT = """\
name: greeter
input: [{role: system, content: Be polite.}]
tests:
  - {id: ada, input: Say good day to Ada, assert: [{type: contains, value: Good day}]}
  - {id: bob, input: Say good day to Bob, assert: [{type: contains, value: Good day}]}
"""


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A model that is agent and judge; what it is asked for is told apart by what its system or
    first line says."""
    judged = '{"score": 0.9, "checks": [{"id": "rubric-1", "satisfied": true}]}'
    with OpenAIServer({"You ": judged, "Say good day": "Good day to you"}, key=KEY) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: OpenAIServer) -> Path:
    return Repository.create(
        tmp_path / "work", {".agentv/targets.yaml": MODEL % server.url, "EVAL.yaml": SUITE}
    ).path


def run(folder: Path, *options: str, cache: str = ".cache") -> command.Done:
    return command.run(folder, "run", "--cache-dir", cache, *options, env={"MODEL_KEY": KEY})


def rows(folder: Path, name: str = "results.jsonl") -> dict[str, dict[str, Any]]:
    lines = (folder / "agentevals-report" / name).read_text().splitlines()
    return {row["evalId"]: row for row in map(json.loads, lines)}


def files(folder: Path) -> dict[str, bytes]:
    """The contents of the stored replies, by name."""
    return {path.name: path.read_bytes() for path in (folder / ".cache").rglob("*.json")}


def scores(folder: Path) -> dict[str, object]:
    return {name: row["score"] for name, row in rows(folder).items()}


def asked(server: OpenAIServer) -> int:
    """How many requests have come since it was last asked."""
    number = len(server.requests)
    server.requests.clear()
    return number


def test_cache__an_unchanged_suite_makes_no_call_the_second_time(
    folder: Path, server: OpenAIServer
) -> None:
    first = run(folder)
    assert first.code == 0, first.out + first.err
    assert asked(server) == 4
    before = scores(folder)
    second = run(folder)
    assert second.code == 0, second.err
    assert asked(server) == 0
    assert scores(folder) == before
    found = rows(folder)
    assert [row["spent"]["cachedReplies"] for row in found.values()] == [3, 1]
    assert [row["spent"]["costUsd"] for row in found.values()] == [0, 0]
    assert all(
        row["samples"][0]["cached"] and row["traceSummary"]["inputTokens"] == 11
        for row in found.values()
    )
    assert len(files(folder)) == 4


def test_cache__when_only_evaluators_changed_the_agent_is_not_called_again(
    folder: Path, server: OpenAIServer
) -> None:
    run(folder)
    asked(server)
    (folder / "EVAL.yaml").write_text(
        SUITE.replace("greets by name", "greets by the right name").replace(
            "value: Good", "value: good"
        )
    )
    assert run(folder).code == 1
    assert all("Say good day" not in request.prompt.splitlines()[0] for request in server.requests)
    assert 1 <= asked(server) <= 2


def test_cache__each_sample_is_a_call_of_its_own(folder: Path, server: OpenAIServer) -> None:
    run(folder, "--samples", "2")
    assert asked(server) == 8
    run(folder, "--samples", "3")
    assert asked(server) == 4


def test_cache__off_and_read(folder: Path, server: OpenAIServer) -> None:
    assert run(folder, "--cache", "off").code == 0
    assert run(folder, "--cache", "read").code == 0
    assert asked(server) == 8
    assert not (folder / ".cache").exists()
    run(folder)
    before = files(folder)
    asked(server)
    assert run(folder, "--cache", "read", "--samples", "2").code == 0
    assert asked(server) == 4
    assert files(folder) == before


def test_cache__errors_are_asked_for_again(tmp_path: Path) -> None:
    with OpenAIServer(otherwise="Good day", script=[failure(400, "no")], key=KEY) as server:
        suite = "name: greeter\ntests:\n  - {id: one, input: Say good day, assert: [{type: contains, value: Good day}]}\n"
        place = Repository.create(
            tmp_path / "work", {".agentv/targets.yaml": MODEL % server.url, "EVAL.yaml": suite}
        ).path
        assert run(place).code == 3
        assert run(place).code == 0
        assert asked(server) == 2


def test_cache__a_run_that_is_stopped_keeps_what_it_paid_for(tmp_path: Path) -> None:
    suite = "name: greeter\ntests:\n" + "".join(
        f"  - {{id: {name}, input: Say {name}, assert: [{{type: contains, value: Good}}]}}\n"
        for name in ("one", "two")
    )
    with OpenAIServer({"one": "Good day", "two": Reply(hold=True)}, key=KEY) as server:
        place = Repository.create(
            tmp_path / "work", {".agentv/targets.yaml": MODEL % server.url, "EVAL.yaml": suite}
        ).path
        process = command.start(
            place, "run", "--cache-dir", ".cache", "--max-concurrency", "1", env={"MODEL_KEY": KEY}
        )
        with process:
            deadline = time.monotonic() + 60
            while len(server.requests) < 2:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert len(files(place)) == 1
        asked(server)
        assert run(place, "--test", "one").code == 0
        assert asked(server) == 0


def changed(tmp_path: Path, target: str, old: str, new: str) -> Repository:
    """A greeter on `main`, and a branch on which a text of its suite is another one."""
    targets = f"targets:\n  - {{name: default, {target}}}\n"
    files = {
        "EVAL.yaml": SHORT,
        ".agentv/targets.yaml": targets,
        ".gitignore": "/agentevals-report/\n/.cache/\n",
    }
    made = Repository.create(tmp_path / "repository", files)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"EVAL.yaml": SHORT.replace(old, new)})
    return made


def review(repository: Repository) -> command.Done:
    options = ("--base", "main", "--cache-dir", ".cache", "--confirm", "0")
    return command.run(repository.path, "review", *options)


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        pytest.param("Be polite", "Be brief", 4, id="head is not served what base answered"),
        pytest.param("value: Good day", "value: Good", 2, id="what is the same is asked once"),
    ],
)
def test_cache__head_and_base_share_the_reply_to_the_same_request(
    tmp_path: Path, old: str, new: str, calls: int
) -> None:
    with OpenAIServer(otherwise="Good day") as server:
        target = f"provider: openai, model: m, base_url: '{server.url}'"
        repository = changed(tmp_path, target, old, new)
        for wanted in (calls, 0):
            done = review(repository)
            assert done.code == 0, done.out + done.err
            assert asked(server) == wanted


def test_cache__an_agent_whose_code_is_not_in_the_request_is_called_each_time(
    tmp_path: Path,
) -> None:
    calls = tmp_path / "calls"
    (tmp_path / "agent.sh").write_text(AGENT % calls)
    target = f"provider: cli, command: [sh, {tmp_path / 'agent.sh'}]"
    repository = changed(tmp_path, target, "value: Good day", "value: Good")
    for number in (1, 2):
        done = review(repository)
        assert done.code == 0, done.out + done.err
        assert len(calls.read_text().splitlines()) >= 2 * number
    assert not (repository.path / ".cache").exists()


def test_cache__that_comes_with_the_change_is_refused(folder: Path, server: OpenAIServer) -> None:
    run(folder)
    asked(server)
    Repository(folder).commit("a cache of one's own")
    done = run(folder)
    assert done.code == 2
    assert "the folder of the stored replies, .cache, is tracked by git" in done.err
    assert asked(server) == 0
