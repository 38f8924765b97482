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
AGENT_SUITE = """\
name: greeter
tests:
  - {id: ada, input: Ada, assert: [{type: contains, value: Good day}]}
  - {id: bob, input: Bob, assert: [{type: contains, value: Good day}]}
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


def agents(tmp_path: Path, cache_key: str) -> Repository:
    """A greeter on `main` behind a command that counts its calls, and a branch for its change."""
    targets = f"targets:\n  - {{name: default, provider: cli, command: [sh, /agent/run.sh], cwd: /{cache_key}}}\n"
    files = {
        "evals/EVAL.yaml": AGENT_SUITE,
        ".agentv/targets.yaml": targets.replace("/agent/run.sh", "agent/run.sh"),
        "agent/run.sh": AGENT % (tmp_path / "calls"),
        ".gitignore": "/agentevals-report/\n/.cache/\n",
    }
    made = Repository.create(tmp_path / "repository", files)
    made.git("checkout", "--quiet", "-b", "change")
    return made


def reviewed(repository: Repository, tmp_path: Path) -> tuple[command.Done, int]:
    """A review, and how often the agent was called for it."""
    (tmp_path / "calls").write_text("")
    done = command.run(
        repository.path,
        "review",
        "--base",
        "main",
        "--watch",
        "agent/**",
        "--cache-dir",
        ".cache",
        "--confirm",
        "0",
    )
    return done, len((tmp_path / "calls").read_text().splitlines())


def test_cache__head_is_never_served_what_base_answered(tmp_path: Path) -> None:
    repository = agents(tmp_path, ", cache_key: [agent/**]")
    changed = (AGENT % (tmp_path / "calls")).replace("Good day", "Yo")
    repository.commit("impolite", {"agent/run.sh": changed})
    done, calls = reviewed(repository, tmp_path)
    assert done.code == 1, done.out + done.err
    assert calls == 4
    again, calls = reviewed(repository, tmp_path)
    assert again.code == 1
    assert calls == 0
    assert {row["verdict"] for row in rows(repository.path).values()} == {"fail"}


def test_cache__what_is_the_same_on_both_sides_is_asked_for_once(tmp_path: Path) -> None:
    repository = agents(tmp_path, ", cache_key: [agent/**]")
    repository.commit(
        "more", {"evals/EVAL.yaml": AGENT_SUITE.replace("value: Good day", "value: Good")}
    )
    done, calls = reviewed(repository, tmp_path)
    assert done.code == 0, done.out + done.err
    assert calls == 2


@pytest.mark.parametrize(
    ("cache_key", "notice"),
    [("", ""), (", cache_key: [prompts/**]", "no file matches `prompts/**` of its `cache_key`")],
)
def test_cache__an_agent_whose_files_are_not_known_is_called_each_time(
    tmp_path: Path, cache_key: str, notice: str
) -> None:
    repository = agents(tmp_path, cache_key)
    repository.commit(
        "more", {"evals/EVAL.yaml": AGENT_SUITE.replace("value: Good day", "value: Good")}
    )
    for _ in range(2):
        done, calls = reviewed(repository, tmp_path)
        assert done.code == 0, done.out + done.err
        assert calls in (2, 4)
        assert notice in done.out + done.err


def test_cache__that_comes_with_the_change_is_refused(folder: Path, server: OpenAIServer) -> None:
    run(folder)
    asked(server)
    Repository(folder).commit("a cache of one's own")
    done = run(folder)
    assert done.code == 2
    assert "the folder of the stored replies, .cache, is tracked by git" in done.err
    assert asked(server) == 0
