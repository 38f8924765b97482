"""What `run --record` stores answers a later run without a key and without a network, and nothing
else does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.gate import opened
from tests.support.job import Finished
from tests.support.openai_server import OpenAIServer
from tests.support.payloads import pull_request_event
from tests.support.repositories import Files, Repository

KEY = "sk-not-for-anybody-123456"
FOLDER = "evals/replies"
SUITE = """\
name: greeter
tests:
  - id: greets
    input: [{role: system, content: Be kind.}, {role: user, content: Greet Ada}]
    criteria: greets by name
    assert:
      - {name: judge, type: llm_judge}
  - id: short
    input: Greet Bob
    assert: [{type: contains, value: Good day}]
"""
TARGETS = """\
targets:
  - {name: default, provider: openai, model: m, base_url: "${{ MODEL_URL }}", api_key: "${{ MODEL_KEY }}"}
"""
ANSWER = "Good day!\n\n- Tea?\n- Milk?\n"
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": TARGETS,
    ".gitignore": "/agentevals-report/\n",
}


def model(answer: str = ANSWER) -> OpenAIServer:
    """A model that is agent and judge."""
    return OpenAIServer({"You grade": '{"score": 0.9}', "Greet": answer}, key=KEY)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with model() as running:
        yield running


def record(folder: Path, server: OpenAIServer, *options: str) -> command.Done:
    environ = {"MODEL_KEY": KEY, "MODEL_URL": server.url}
    return command.run(folder, "run", "--record", FOLDER, *options, env=environ)


def replay(folder: Path, *options: str) -> command.Done:
    return command.run(folder, "run", "--cache", "replay", "--cache-dir", FOLDER, *options)


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "agentevals-report/results.jsonl").read_text().splitlines()
    return {row["evalId"]: row for row in map(json.loads, lines)}


def message(folder: Path, test: str) -> str:
    return str(rows(folder)[test]["error"]["message"])


def texts(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted((folder / FOLDER).rglob("*.json"))]


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def first_recorded(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repository = Repository.create(tmp_path_factory.mktemp("recorded") / "work", FILES)
    with model() as server:
        done = record(repository.path, server, "--samples", "2")
    assert done.code == 0, done.out + done.err
    return repository


@pytest.fixture
def recorded(tmp_path: Path, first_recorded: Repository) -> Repository:
    """A repository with the replies of two samples."""
    return first_recorded.copy(tmp_path / "work")


def test_replay__gives_the_same_scores_without_a_key(
    recorded: Repository, server: OpenAIServer
) -> None:
    before = rows(recorded.path)
    done = replay(recorded.path, "--samples", "2")
    assert done.code == 0, done.out + done.err
    assert not server.requests
    after = rows(recorded.path)
    for name in ("greets", "short"):
        assert after[name]["score"] == before[name]["score"]
        assert after[name]["candidateAnswer"] == ANSWER
        assert after[name]["traceSummary"] == before[name]["traceSummary"]
    assert [row["spent"]["cachedReplies"] for row in after.values()] == [4, 2]
    assert "This run cost nothing; 6 of 6 replies came from the cache." in done.out


def test_record__a_secret_is_not_written_and_the_judge_is_replayed(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    with model(f"Good day, {KEY}") as server:
        assert record(repository.path, server).code == 0
    stored = texts(repository.path)
    assert len(stored) == 3
    assert not any(KEY in text or "api_key" in text for text in stored)
    assert sum("Good day, ***" in text for text in stored) == 3
    done = replay(repository.path)
    assert done.code == 0, done.out + done.err


def test_replay__a_request_that_is_not_stored_is_an_error_with_the_difference(
    recorded: Repository,
) -> None:
    replace_in(recorded.path / "evals/EVAL.yaml", "Greet Ada", "Greet Adam")
    done = replay(recorded.path)
    assert done.code == 3, done.out
    difference = '`messages[1].content` is "Greet Adam" instead of "Greet Ada"'
    expected = f"a request to `default` is not stored in {FOLDER}: {difference}"
    assert expected in message(recorded.path, "greets")


def test_replay__a_damaged_reply_is_an_error_of_its_test(recorded: Repository) -> None:
    for file in (recorded.path / FOLDER).rglob("*.json"):
        if "Greet Bob" in file.read_text():
            file.write_text("{")
    done = replay(recorded.path)
    assert done.code == 3
    assert "is not stored in" in message(recorded.path, "short")
    assert ".json is damaged and is not used" in done.err
    assert rows(recorded.path)["greets"]["verdict"] == "pass"


JUDGE = """\
import json, os, urllib.request
address = os.environ["AGENTV_TARGET_PROXY_URL"] + "/invoke"
headers = {"Authorization": "Bearer " + os.environ["AGENTV_TARGET_PROXY_TOKEN"]}
body = json.dumps({"question": "You grade this"}).encode()
try:
    urllib.request.urlopen(urllib.request.Request(address, body, headers)).read()
except OSError:
    pass
print(json.dumps({"score": 1}))
"""


@pytest.mark.slow
def test_replay__a_judge_that_ignores_a_missing_reply_is_an_error(
    recorded: Repository, server: OpenAIServer
) -> None:
    suite = "name: greeter\ntests:\n  - id: greets\n    input: Greet Ada\n    assert:\n"
    suite += "      - {type: code_judge, script: [python3, judge.py], target: {}}\n"
    recorded.write({"evals/EVAL.yaml": suite, "evals/judge.py": JUDGE})
    assert record(recorded.path, server).code == 0
    assert replay(recorded.path).code == 0
    replace_in(recorded.path / "evals/judge.py", "grade this", "grade that")
    done = replay(recorded.path)
    assert done.code == 3, done.out
    assert "the judge `default` could not be asked" in message(recorded.path, "greets")


def test_replay__the_reply_of_an_agent_is_not_recorded(tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": "name: echo\ntests: [{id: one, input: hi, assert: [{type: equals, value: hi}]}]\n",
        ".agentv/targets.yaml": "- {name: default, provider: cli, command: cat}\n",
    }
    repository = Repository.create(tmp_path / "work", files)
    done = command.run(repository.path, "run", "--record", FOLDER)
    assert done.code == 0, done.err
    problem = "its definition does not contain its code"
    assert f"Replies of the target `default` are not stored: {problem}." in done.out + done.err
    (repository.path / FOLDER).mkdir(parents=True)
    assert replay(repository.path).code == 3
    expected = f"a request to `default` cannot be replayed: {problem}"
    assert expected in message(repository.path, "one")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--cache", "replay", "--record", "c"), "`--record` cannot be used with `--cache`"),
        (("--record", "../out"), "write a path relative to the workspace, without `..`"),
    ],
)
def test_options__that_contradict_each_other_are_refused(
    tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    done = command.run(repository.path, "run", *options, env={"MODEL_KEY": KEY})
    assert (done.code, problem in done.err) == (2, True), done.err


# Pull requests


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The files of a repository with its stored replies."""
    repository = Repository.create(tmp_path_factory.mktemp("recorded") / "work", FILES)
    with model() as server:
        assert record(repository.path, server).code == 0
    found = (repository.path / FOLDER).rglob("*.json")
    stored = {path.relative_to(repository.path).as_posix(): path.read_text() for path in found}
    return {**FILES, **stored}


def short_reply(files: Files) -> tuple[str, str]:
    """The file of the reply to the test `short`, and another reply in it."""
    path = next(path for path, text in files.items() if "Greet Bob" in str(text) and FOLDER in path)
    text = str(files[path])
    assert "Good day!" in text
    return path, text.replace("Good day!", "What?")


def review_pull(tmp_path: Path, base: Files, change: Files, *, fork: bool) -> tuple[Finished, str]:
    """The action's run of a pull request, and its comment."""
    inputs = {"cache": "replay", "cache-dir": FOLDER}
    with opened(tmp_path, base, change, inputs=inputs) as gate:
        event = pull_request_event(gate.pull.head, gate.pull.main, fork=fork)
        done = gate.job(event=event).finish()
        (body,) = gate.comments()
        return done, body


@pytest.mark.slow
def test_fork__a_changed_prompt_is_inconclusive_and_the_rest_is_replayed(
    tmp_path: Path, replies: Files
) -> None:
    suite = SUITE.replace("Be kind.", "Be curt.")
    done, body = review_pull(tmp_path, replies, {"evals/EVAL.yaml": suite}, fork=True)
    assert done.code == 3, done.log
    assert (done.outputs["passed"], done.outputs["errored"]) == ("1", "1")
    assert "replies came from the cache" in body


@pytest.mark.slow
def test_pull_request__a_changed_reply_is_named_runs_its_suite_and_can_block(
    tmp_path: Path, replies: Files
) -> None:
    path, worse = short_reply(replies)
    done, body = review_pull(tmp_path, replies, {path: worse}, fork=False)
    assert done.code == 1, done.log
    assert (done.outputs["regressions"], done.outputs["errored"]) == ("1", "0")
    assert "(stored reply)" in body
    assert f"the change edits stored replies, which decide about the outcome: `{path}`" in body


@pytest.mark.slow
def test_review__a_reply_that_prepare_writes_does_not_answer(
    tmp_path: Path, replies: Files
) -> None:
    """Attack: `npm ci` runs a script of the change that writes the replies that pass."""
    path, worse = short_reply(replies)
    made = Repository.create(tmp_path / "work", {**replies, path: worse, "good": replies[path]})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"evals/EVAL.yaml": SUITE + "# changed\n"})
    options = ("--base", "main", "--cache", "replay", "--cache-dir", FOLDER)
    prepare = f"test -d .git || exit 0; cp good {path}"
    command.run(made.path, "review", *options, "--prepare", prepare)
    assert rows(made.path)["short"]["candidateAnswer"].startswith("What?")


def test_replay__a_rise_of_the_recorded_cost_blocks_without_fresh_samples(
    tmp_path: Path, server: OpenAIServer
) -> None:
    tests = [{"id": name, "input": f"Greet {name}"} for name in "abcdef"]
    check = [{"type": "contains", "value": "Good day"}]
    priced = TARGETS.replace("model: m", "model: m, price: {input: 1, output: 1}")
    suite = {"name": "greeter", "assert": check, "tests": tests}
    files = {"evals/EVAL.yaml": json.dumps(suite), ".agentv/targets.yaml": priced}
    repository = Repository.create(tmp_path / "work", {**FILES, **files})
    assert record(repository.path, server).code == 0
    repository.commit("replies")
    dearer = priced.replace("input: 1, output: 1", "input: 2, output: 2")
    repository.commit("dearer", {".agentv/targets.yaml": dearer})

    options = ("--cache", "replay", "--cache-dir", FOLDER, "--max-cost-increase", "20%")
    done = command.run(repository.path, "review", "--base", "HEAD~1", *options)

    assert done.code == 1, done.out + done.err
    assert "costs 100% more than on base, over the `max-cost-increase` of 20%" in done.out
