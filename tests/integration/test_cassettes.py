"""Cassettes: what `run --record` writes answers a later run without a key and without a network, and
nothing else does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.suites.cassette_file import read_cassette
from agentevals_action.suites.files.diagnostics import Findings
from tests.support import command
from tests.support.github_server import GitHubServer
from tests.support.job import Finished, Job
from tests.support.openai_server import OpenAIServer
from tests.support.payloads import pull_request_event
from tests.support.repositories import Files, Repository, pull_request

KEY = "sk-not-for-anybody-123456"
CASSETTES = "evals/cassettes"
GREETS = f"{CASSETTES}/evals/EVAL-yaml/greets.cassette.yaml"
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


def model() -> OpenAIServer:
    """A model that is agent and judge."""
    return OpenAIServer({"You grade": '{"score": 0.9}', "Greet": ANSWER}, key=KEY)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with model() as running:
        yield running


def record(folder: Path, server: OpenAIServer, *options: str) -> command.Done:
    environ = {"MODEL_KEY": KEY, "MODEL_URL": server.url}
    return command.run(folder, "run", "--record", CASSETTES, *options, env=environ)


def replay(folder: Path, *options: str) -> command.Done:
    return command.run(folder, "run", "--cache", "replay", "--cassettes", CASSETTES, *options)


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "agentevals-report/results.jsonl").read_text().splitlines()
    return {row["evalId"]: row for row in map(json.loads, lines)}


def message(folder: Path, test: str) -> str:
    return str(rows(folder)[test]["error"]["message"])


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
    """A repository with cassettes of two samples."""
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
    assert "This run cost nothing; 6 of 6 replies were replayed from cassettes." in done.out
    page = (recorded.path / "agentevals-report/report.html").read_text(encoding="utf-8")
    assert "6 of 6 replies were replayed from cassettes" in page


def test_record__a_test_has_one_file_that_reads_well_in_a_diff(recorded: Repository) -> None:
    files = sorted(path.name for path in (recorded.path / CASSETTES).rglob("*.yaml"))
    assert files == ["greets.cassette.yaml", "short.cassette.yaml"]
    text = (recorded.path / GREETS).read_text(encoding="utf-8")
    assert text.startswith("# Recorded by `agentevals-action run --record`")
    assert "      content: |\n        Good day!\n\n        - Tea?\n        - Milk?\n" in text
    # The samples are in order, the agent before the judge, each request with its reply.
    assert re.findall(r"sample: \d|content: (?:Greet|\|\n +You grade)|  reply:", text) == [
        *("sample: 1", "content: Greet", "  reply:"),
        *("sample: 1", "content: |\n        You grade", "  reply:"),
        *("sample: 2", "content: Greet", "  reply:"),
        *("sample: 2", "content: |\n        You grade", "  reply:"),
    ]


def test_record__again_changes_nothing_but_durations(
    recorded: Repository, server: OpenAIServer
) -> None:
    def texts() -> list[str]:
        files = sorted((recorded.path / CASSETTES).rglob("*.yaml"))
        return [re.sub(r"duration_ms: .*", "", path.read_text()) for path in files]

    before = texts()
    assert record(recorded.path, server, "--samples", "2").code == 0
    assert texts() == before


def test_record__a_test_that_ends_in_an_error_keeps_its_cassette(recorded: Repository) -> None:
    before = (recorded.path / GREETS).read_bytes()
    with OpenAIServer({"You grade": "no score", "Greet": ANSWER}, key=KEY) as broken:
        done = record(recorded.path, broken)
    assert done.code == 3
    assert "A test that ended in an error is not recorded." in done.err
    assert (recorded.path / GREETS).read_bytes() == before


def test_record__a_secret_is_not_written_and_the_judge_is_replayed(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    with OpenAIServer({"You grade": '{"score": 1}', "Greet": f"Good day, {KEY}"}, key=KEY) as model:
        assert record(repository.path, model).code == 0
    texts = [path.read_text() for path in (repository.path / CASSETTES).rglob("*.yaml")]
    assert len(texts) == 2
    assert not any(KEY in text for text in texts)
    assert all("Good day, ***" in text for text in texts)
    assert not any("api_key" in text for text in texts)
    done = replay(repository.path)
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("Greet Ada", "Greet Adam", '`messages[1].content` is "Greet Adam" instead of "Greet Ada"'),
        ("Be kind.", "Be curt.", '`messages[0].content` is "Be curt." instead of "Be kind."'),
    ],
)
def test_replay__a_request_that_is_not_recorded_is_an_error_with_the_difference(
    recorded: Repository, server: OpenAIServer, old: str, new: str, difference: str
) -> None:
    replace_in(recorded.path / "evals/EVAL.yaml", old, new)
    done = replay(recorded.path)
    assert done.code == 3, done.out
    assert f"is not recorded in `{GREETS}`: {difference}" in message(recorded.path, "greets")
    assert rows(recorded.path)["short"]["verdict"] == "pass"
    assert "1 test of `evals/EVAL.yaml` needs a run with keys" in done.err
    assert not server.requests


def test_replay__a_changed_model_is_not_recorded(recorded: Repository) -> None:
    replace_in(recorded.path / ".agentv/targets.yaml", "model: m", "model: n")
    assert replay(recorded.path).code == 3
    assert '`options.model` is "n" instead of "m"' in message(recorded.path, "short")


def test_replay__more_samples_than_recorded_are_an_error(recorded: Repository) -> None:
    assert replay(recorded.path, "--samples", "3").code == 3
    assert "`sample` is 3 instead of" in message(recorded.path, "short")


def test_replay__a_test_without_a_cassette_is_an_error(recorded: Repository) -> None:
    (recorded.path / GREETS).unlink()
    assert replay(recorded.path).code == 3
    assert f"there is no `{GREETS}`; record it with" in message(recorded.path, "greets")


def test_replay__all_tests_that_need_a_run_are_named(recorded: Repository) -> None:
    tests = "".join(
        f"  - {{id: a-test-with-a-long-name-{number}, input: q, criteria: c}}\n"
        for number in range(25)
    )
    recorded.write({"evals/EVAL.yaml": f"name: greeter\ntests:\n{tests}"})
    done = replay(recorded.path)
    assert done.code == 3
    assert all(f"'a-test-with-a-long-name-{number}'" in done.err for number in range(25))
    assert done.err.count("need a run with keys") == 3


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


AGENT = 'read line; . ./words.sh; echo "$GREETING, $line"\n'
CLI = "- {name: default, provider: cli, command: [sh, run.sh], cwd: /agent%s}\n"
CLI_SUITE = """\
name: greeter
tests:
  - {id: one, input: Ada, assert: [{type: contains, value: Good day}]}
"""


def agent(tmp_path: Path, cache_key: str, suite: str = CLI_SUITE) -> Repository:
    return Repository.create(
        tmp_path / "work",
        {
            "evals/EVAL.yaml": suite,
            ".agentv/targets.yaml": CLI % cache_key,
            "agent/run.sh": AGENT,
            "agent/words.sh": "GREETING='Good day'\n",
        },
    )


@pytest.mark.slow
def test_replay__an_agent_is_not_run_and_a_change_of_its_code_is_not_recorded(
    tmp_path: Path,
) -> None:
    repository = agent(tmp_path, ", cache_key: [agent/**]")
    assert command.run(repository.path, "run", "--record", CASSETTES).code == 0
    assert replay(repository.path).code == 0
    repository.write({"agent/words.sh": "GREETING=Hello\n"})
    assert replay(repository.path).code == 3
    assert "`behind.files.agent/words.sh` is " in message(repository.path, "one")


@pytest.mark.slow
def test_record__an_agent_whose_code_is_unknown_is_named_and_never_replayed(
    tmp_path: Path,
) -> None:
    repository = agent(tmp_path, "")
    done = command.run(repository.path, "run", "--record", CASSETTES)
    assert done.code == 0, done.err
    advice = "its definition does not contain its code; name it in `cache_key`"
    assert f"Replies of the target `default` are not recorded: {advice}." in done.err
    assert replay(repository.path).code == 3
    assert f"cannot be replayed: {advice}" in message(repository.path, "one")


@pytest.mark.slow
def test_replay__a_turn_depends_on_the_turns_before_it(tmp_path: Path) -> None:
    suite = "name: greeter\ntests:\n" + "".join(
        f"  - {{id: {name}, conversation_id: c, input: {text}, assert: [{{type: contains, value: Good day}}]}}\n"
        for name, text in (("first", "Ada"), ("second", "Bob"))
    )
    repository = agent(tmp_path, ", cache_key: [agent/**]", suite)
    assert command.run(repository.path, "run", "--record", CASSETTES).code == 0
    assert replay(repository.path).code == 0
    replace_in(repository.path / "evals/EVAL.yaml", "input: Ada", "input: Eve")
    assert replay(repository.path).code == 3
    assert "`after` is " in message(repository.path, "second")


def test_replay__a_mock_answers_itself(tmp_path: Path) -> None:
    files: Files = {
        "EVAL.yaml": CLI_SUITE,
        ".agentv/targets.yaml": "- {name: default, provider: mock, responses: [{pattern: Ada, response: Good day}]}\n",
    }
    repository = Repository.create(tmp_path / "work", files)
    assert replay(repository.path).code == 0
    assert command.run(repository.path, "run", "--record", CASSETTES).code == 0
    assert not (repository.path / CASSETTES).exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--cache", "replay"), "`replay` needs a folder of cassettes"),
        (("--cache", "replay", "--record", "c"), "`--record` cannot be used with `--cache replay`"),
        (("--record", "../out"), "write a path relative to the workspace, without `..`"),
        (("--record", "agentevals-report/c"), "inputs `cassettes` and `report-dir`"),
    ],
)
def test_options__that_contradict_each_other_are_refused(
    tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    done = command.run(repository.path, "run", *options, env={"MODEL_KEY": KEY})
    assert (done.code, problem in done.err) == (2, True), done.err


def test_configuration__the_file_names_the_folder(recorded: Repository) -> None:
    recorded.write({".agentevals.yaml": f"cassettes: {CASSETTES}\n"})
    done = command.run(recorded.path, "run", "--cache", "replay")
    assert done.code == 0, done.err
    recorded.write({".agentevals.yaml": "cassettes: ../elsewhere\n"})
    done = command.run(recorded.path, "run", "--cache", "replay")
    assert done.code == 2
    assert ".agentevals.yaml:1:12: `cassettes`: '../elsewhere' is not valid" in done.err


# Cassettes are data of a pull request


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("format: 1", "format: 2", ":2:9: `format`"),
        ("format: 1", "format: [", "this is not valid YAML"),
        ("test: greets", "test: short", ":4:7: this cassette is of the test 'short'"),
        ("- request:", "- reply: 1\n  request:", "the key 'reply' is repeated (first on line 6)"),
        (
            "      content: |\n        Good day!",
            "      content: |\n        \x07Good day!",
            "the character '\\x07' is not allowed",
        ),
        (
            "    - role: assistant\n      content: |",
            "    - role: nobody\n      content: |",
            ":19:13: `exchanges[0].reply.messages[0].role`",
        ),
        (
            "    input_tokens: 11",
            "    input_tokens: many",
            "`exchanges[0].reply.usage.input_tokens`",
        ),
        (
            "      content: |\n        Good day!",
            "      content: [{type: file, value: x, path: /etc/passwd}]\n      name: |\n        Good day!",
            "a block of a reply names a file; remove its `path`",
        ),
    ],
)
def test_cassette__that_is_not_valid_is_an_error_with_its_position(
    first_recorded: Repository, old: str, new: str, problem: str
) -> None:
    text = edited((first_recorded.path / GREETS).read_text(), old, new)
    findings = Findings()
    assert read_cassette(text.encode(), GREETS, "evals/EVAL.yaml", "greets", findings) is None
    assert str(findings.errors[0]).startswith(f"{GREETS}:")
    assert problem in str(findings.errors[0])


def test_cassette__that_is_not_valid_is_an_error_of_its_test(recorded: Repository) -> None:
    replace_in(recorded.path / GREETS, "format: 1", "format: 2")
    done = replay(recorded.path)
    assert done.code == 3, done.out
    assert message(recorded.path, "greets").startswith(f"{GREETS}:2:9: `format`")


def test_cassette__of_any_size_is_refused_before_it_is_read(recorded: Repository) -> None:
    with (recorded.path / GREETS).open("ab") as cassette:
        cassette.truncate(11_000_000_000)  # sparse
    assert replay(recorded.path).code == 3
    assert "this cassette is longer than 10 MB" in message(recorded.path, "greets")


@pytest.mark.parametrize("link", [GREETS, f"{CASSETTES}/evals", CASSETTES])
def test_cassette__behind_a_symbolic_link_is_refused(
    recorded: Repository, tmp_path: Path, link: str
) -> None:
    path = recorded.path / link
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert replay(recorded.path).code == 3
    problem = "this file, or a folder above it, is a symbolic link"
    assert f"{GREETS}:1:1: {problem}" in message(recorded.path, "greets")


def test_record__does_not_write_through_a_symbolic_link(
    tmp_path: Path, server: OpenAIServer
) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    (tmp_path / "elsewhere").mkdir()
    (repository.path / CASSETTES).symlink_to(tmp_path / "elsewhere")
    done = record(repository.path, server)
    assert done.code == 3
    assert "cannot be written" in done.err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_record__an_id_that_is_no_file_name_stays_in_the_folder(
    tmp_path: Path, server: OpenAIServer
) -> None:
    suite = edited(SUITE, "id: greets", "id: ../../Greets/..")
    repository = Repository.create(tmp_path / "work", {**FILES, "evals/EVAL.yaml": suite})
    assert record(repository.path, server).code == 0
    names = sorted(
        path.name for path in (repository.path / CASSETTES / "evals/EVAL-yaml").iterdir()
    )
    assert [re.sub("[0-9a-f]{12}", "DIGEST", name) for name in names] == [
        "greets-DIGEST.cassette.yaml",
        "short.cassette.yaml",
    ]
    assert replay(repository.path).code == 0


# Pull requests


@pytest.fixture(scope="module")
def cassettes(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The files of a repository with its cassettes."""
    with OpenAIServer({"You grade": '{"score": 0.9}', "Greet": ANSWER}, key=KEY) as model:
        repository = Repository.create(tmp_path_factory.mktemp("recorded") / "work", FILES)
        assert record(repository.path, model).code == 0
    found = (repository.path / CASSETTES).rglob("*.yaml")
    texts = {path.relative_to(repository.path).as_posix(): path.read_text() for path in found}
    return {**FILES, **texts}


def reviewed(tmp_path: Path, base: Files, change: Files, *, fork: bool) -> tuple[Finished, str]:
    """The action's run of a pull request, and its comment."""
    pull = pull_request(tmp_path, base, change)
    with GitHubServer() as github:
        github.add_pull(7, pull.head, pull.main)
        done = Job(
            pull.checkout(tmp_path / "workspace", pull.merge, 1).path,
            github,
            pull_request_event(pull.head, pull.main, 7, fork=fork),
            pull.merge,
            tmp_path / "runner",
            inputs={"cache": "replay", "cassettes": CASSETTES},
        ).finish()
        (comment,) = github.comments
        return done, comment.body


@pytest.mark.slow
def test_fork__other_words_in_a_prompt_give_the_list_of_tests_to_run(
    tmp_path: Path, cassettes: Files
) -> None:
    suite = edited(SUITE, "Be kind.", "Be curt.")
    done, body = reviewed(tmp_path, cassettes, {"evals/EVAL.yaml": suite}, fork=True)
    assert done.code == 3, done.log
    assert (done.outputs["passed"], done.outputs["errored"]) == ("1", "1")
    needs = "needs a run with keys, because a request is not recorded: 'greets'"
    assert f"1 test of `evals/EVAL.yaml` {needs}" in body
    assert "replies were replayed from cassettes" in body
    assert "replies were replayed from cassettes" in done.summary


@pytest.mark.slow
def test_fork__its_own_cassettes_do_not_answer(tmp_path: Path, cassettes: Files) -> None:
    """Attack: a stranger changes a prompt, and writes the reply that passes."""
    path = GREETS.replace("greets", "short")
    suite = edited(SUITE, "Greet Bob", "Insult Bob")
    forged = edited(str(cassettes[path]), "Greet Bob", "Insult Bob")
    change: Files = {"evals/EVAL.yaml": suite, path: forged}
    done, body = reviewed(tmp_path / "fork", cassettes, change, fork=True)
    assert done.code == 3, done.log
    assert done.outputs["errored"] == "1"
    assert f"the change edits cassettes (`{path}`): only those of the base answer" in body

    done, body = reviewed(tmp_path / "own", cassettes, change, fork=False)
    assert done.code == 0, done.log
    assert f"the change edits cassettes (`{path}`): their replies decide" in body


@pytest.mark.slow
@pytest.mark.parametrize("existed", [True, False], ids=["other replies", "a new cassette"])
def test_review__a_cassette_that_prepare_writes_answers_nothing(
    tmp_path: Path, cassettes: Files, existed: bool
) -> None:
    """Attack: `npm ci` runs a script of the change that writes the replies that pass."""
    path = GREETS.replace("greets", "short")
    worse = edited(str(cassettes[path]), "Good day!", "What?")
    base = {**cassettes, path: worse if existed else None, "good.yaml": cassettes[path]}
    made = Repository.create(tmp_path / "work", {name: base[name] for name in base if base[name]})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"evals/EVAL.yaml": SUITE + "# changed\n"})
    options = ("--base", "main", "--cache", "replay", "--cassettes", CASSETTES)
    prepare = f"test -d .git || exit 0; cp good.yaml {path}"
    done = command.run(made.path, "review", *options, "--prepare", prepare)
    assert done.code == 3, done.out
    assert f"{path} was changed by a program after it was loaded" in message(made.path, "short")


@pytest.mark.slow
def test_pull_request__a_changed_cassette_runs_its_suite_and_can_block(
    tmp_path: Path, cassettes: Files
) -> None:
    path = GREETS.replace("greets", "short")
    worse = edited(str(cassettes[path]), "Good day!", "What?")
    done, body = reviewed(tmp_path, cassettes, {path: worse}, fork=False)
    assert done.code == 1, done.log
    assert (done.outputs["regressions"], done.outputs["errored"]) == ("1", "0")
    assert f"changed: {path} (cassette)" in body
