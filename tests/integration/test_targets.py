"""`targets`: what suites may use, where it comes from and whether it answers, in a process of its
own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Golden
from tests.support import command, suites
from tests.support.agent_server import AgentServer, Answer
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import Repository

TARGETS = """\
targets:
  - {name: default, provider: http, url: "https://user:hidden-pw@agent.test/ask?key=hidden-key", judge_target: judge,
     max_concurrency: 4, timeout_seconds: 30, headers: {Authorization: "Bearer ${{ AGENT_KEY }}"}}
  - {name: judge, provider: openai, model: gpt-x, api_key: "${{ JUDGE_KEY }}", price: {input: 2.5, output: 10}, requests_per_minute: 60}
  - {name: command, extends: default, provider: cli, command: [python3, agent.py, --say, "a b"], env: [AGENT_KEY, OTHER], retries: 0}
  - {name: canned, provider: mock, responses: [{pattern: '.*', response: hello}]}
"""
SUITE = """\
name: support
tests:
  - {id: a, input: q, criteria: answers}
  - {id: b, input: q, execution: {target: canned}, assert: [{type: is_json}]}
"""
DETERMINISTIC = "name: plain\nexecution: {target: command}\ntests: [{id: a, input: q, assert: [{type: is_json}]}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        ".agentv/targets.yaml": TARGETS,
        "evals/EVAL.yaml": SUITE,
        "plain.eval.yaml": DETERMINISTIC,
    }
    return suites.write(tmp_path / "work", files)


def define(folder: Path, *targets: dict[str, Any]) -> None:
    suites.write(folder, {".agentv/targets.yaml": json.dumps(list(targets))})


def listed(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    targets: list[dict[str, Any]] = json.loads(
        command.run(folder, "targets", "--json", *arguments).out
    )
    return targets


def checked(
    folder: Path, *arguments: str, env: dict[str, str] | None = None
) -> tuple[int, dict[str, str]]:
    """The exit code, and the text of each target's check."""
    done = command.run(folder, "targets", "--check", "--json", *arguments, env=env)
    assert "Traceback" not in done.err, done.err
    return done.code, {target["name"]: target["note"] for target in json.loads(done.out)}


def one_suite(folder: Path, *, judge: bool = False) -> Path:
    grading = "criteria: answers" if judge else "assert: [{type: is_json}]"
    return suites.write(
        folder,
        {
            "EVAL.yaml": f"name: one\ntests: [{{id: a, input: q, metadata: {{tier: gold}}, {grading}}}]\n"
        },
    )


def test_targets__as_people_read_them(folder: Path, golden: Golden) -> None:
    done = command.run(folder, "targets", env={"JUDGE_KEY": "a-key-of-ours"})

    assert (done.code, done.err) == (0, "")
    golden.check("targets.txt", done.out)


def test_targets__no_value_is_shown(folder: Path) -> None:
    for arguments in ([], ["--json"]):
        done = command.run(
            folder,
            "targets",
            *arguments,
            env={"JUDGE_KEY": "a-key-of-ours", "AGENT_KEY": "another-key"},
        )
        assert done.code == 0, done.err
        assert not any(secret in done.out for secret in ("hidden", "a-key-of-ours", "another-key"))
    suites.write(folder, {".agentv/targets.yaml": TARGETS.replace("--say", "written-in-the-file")})
    assert (
        "written-in-the-file"
        not in command.run(folder, "targets", env={"MY_TOKEN": "written-in-the-file"}).out
    )


def test_targets__of_some_suites_and_by_name(folder: Path) -> None:
    judge, canned = listed(folder, "--name", "judge", "--name", "c?nned")
    assert (judge["name"], judge["priceSource"]) == ("judge", "price of the target")
    assert (judge["isUsed"], judge["missing"], judge["usable"]) == (True, ["JUDGE_KEY"], False)
    assert canned["name"] == "canned"
    (unused,) = listed(folder, "plain.eval.yaml", "--name", "judge")
    assert not unused["isUsed"]
    unknown = command.run(folder, "targets", "--name", "nobody")
    assert (unknown.code, unknown.out) == (2, "")
    assert (
        "no target is called nobody\nthe suites can use canned, command, default and judge"
        in unknown.err
    )


def test_targets__the_nearest_file_of_each_suite_and_its_variables(folder: Path) -> None:
    nearest = "- {name: default, provider: cli, command: [cat], env: [AGENT_KEY]}\n"
    suites.write(
        folder,
        {
            "evals/.agentv/targets.yaml": nearest,
            "evals/EVAL.yaml": DETERMINISTIC.replace("command", "default"),
            "evals/.env": "AGENT_KEY=x\n",
        },
    )
    found = {
        target["location"]["path"]: target["missing"]
        for target in listed(folder, "--name", "default")
    }
    assert found == {".agentv/targets.yaml": ["AGENT_KEY"], "evals/.agentv/targets.yaml": []}


def test_targets__without_suites_or_targets_there_is_nothing_to_list(tmp_path: Path) -> None:
    assert "there is no suite" in command.run(tmp_path, "targets").err
    done = command.run(one_suite(tmp_path), "targets")
    assert (done.code, done.out) == (2, "")
    assert "the suites have no target" in done.err


def test_check__who_answers_and_who_does_not(tmp_path: Path) -> None:
    one_suite(tmp_path, judge=True)
    with (
        OpenAIServer(otherwise="hi", key="sk-0123456789") as model,
        AgentServer({"text": "pong"}) as agent,
    ):
        service = {
            "name": "default",
            "provider": "http",
            "url": agent.url,
            "output_path": "text",
            "judge_target": "judge",
        }
        judge = {
            "name": "judge",
            "provider": "openai",
            "model": "m",
            "base_url": model.url,
            "api_key": "${{ KEY }}",
        }
        define(tmp_path, service, judge)
        good, notes = checked(tmp_path, env={"KEY": "sk-0123456789"})
        bad, refused = checked(tmp_path, env={"KEY": "sk-wrong-0123456789"})
        missing, unset = checked(tmp_path)

    assert (good, bad, missing) == (0, 3, 2)
    assert list(notes) == ["default", "judge"]
    assert all(
        text.startswith("answers (")
        for text in (*notes.values(), refused["default"], unset["default"])
    )
    assert "answered 401: Incorrect API key provided; " in refused["judge"]
    assert unset["judge"].startswith("the variable KEY is not set; set it in the environment")
    assert "sk-wrong" not in str(refused)
    assert len(agent.requests) == 3
    assert len(model.requests) == 2


def test_check__only_what_is_used_or_named(tmp_path: Path) -> None:
    one_suite(tmp_path)
    with AgentServer("pong") as used, AgentServer("pong") as unused:
        define(
            tmp_path,
            {"name": "default", "provider": "http", "url": used.url},
            {"name": "spare", "provider": "http", "url": unused.url},
        )
        code, texts = checked(tmp_path)
        assert (code, texts["default"].partition(" (")[0]) == (0, "answers")
        assert texts["spare"].startswith("it was not checked, because no suite uses it")
        assert (len(used.requests), len(unused.requests)) == (1, 0)
        code, texts = checked(tmp_path, "--name", "spare")
        assert (code, list(texts), len(used.requests), len(unused.requests)) == (0, ["spare"], 1, 1)


def test_check__a_template_finds_the_fields_of_a_test(tmp_path: Path) -> None:
    one_suite(tmp_path)
    with AgentServer("pong") as agent:
        define(
            tmp_path,
            {
                "name": "default",
                "provider": "http",
                "url": agent.url,
                "body": {"tier": "{{ metadata.tier }}", "q": "{{ prompt }}"},
            },
        )
        assert checked(tmp_path)[0] == 0
    assert agent.requests[0].body == {"tier": "gold", "q": "Reply with OK."}


def test_check__text_of_a_server_cannot_command_the_runner(tmp_path: Path) -> None:
    one_suite(tmp_path)
    with AgentServer(Answer("x\n::error::forged \x1b[31m", status=400)) as agent:
        define(tmp_path, {"name": "::warning::default", "provider": "http", "url": agent.url})
        done = command.run(tmp_path, "targets", "--check", "--target", "::warning::default")
    assert done.code == 3
    assert "400" in done.out
    assert "\x1b" not in done.out
    assert [line for line in done.out.splitlines() if line.lstrip().startswith("::")] == []


@pytest.mark.parametrize("execution", ["", "execution: {target: support}\n"])
def test_undeclared__a_suite_without_a_targets_file_is_an_error_before_anything_runs(
    tmp_path: Path, execution: str
) -> None:
    suite = f"name: one\n{execution}tests: [{{id: a, input: q, assert: [{{type: is_json}}]}}]\n"
    repository = Repository.create(tmp_path / "repository", {"EVAL.yaml": suite})
    repository.write({"EVAL.yaml": f"{suite}# changed\n"})

    for arguments in (("validate",), ("run",), ("review", "--base", "HEAD")):
        done = command.run(repository.path, *arguments)
        assert done.code == 2
        assert "there is no `.agentv/targets.yaml`" in done.out + done.err
        assert ("the target `support` is not declared" in done.out + done.err) == bool(execution)


def test_judge__a_script_that_does_not_exist_is_an_error_of_validate(tmp_path: Path) -> None:
    """A judge that git ignores may be built by `prepare`."""
    suite = """\
name: one
tests:
  - id: a
    input: q
    assert:
      - {type: code_judge, name: gone, script: [python3, judges/gone.py]}
      - {type: code_judge, name: built, script: [node, dist/judge.js]}
      - type: composite
        evaluators: [{type: code_judge, name: inside, script: [./judges/gone]}]
"""
    files = {
        "evals/EVAL.yaml": suite,
        ".gitignore": "dist/\n",
        ".agentv/targets.yaml": "[{name: default, provider: cli, command: [cat]}]\n",
    }
    repository = Repository.create(tmp_path / "repository", files)

    done = command.run(repository.path, "validate")

    assert done.code == 2
    at = "evals/judges"
    advice = "correct the path, or `cwd`, where it starts (`/` is the repository's root); "
    advice += "what is built needs the input `prepare`"
    assert done.out.splitlines() == [
        f"evals/EVAL.yaml:6:9: the judge `gone` runs {at}/gone.py, which does not exist; {advice}",
        f"evals/EVAL.yaml:9:22: the judge `inside` runs {at}/gone, which does not exist; {advice}",
    ]


def test_error__of_a_shared_target_is_reported_once_with_the_number_of_suites(
    tmp_path: Path,
) -> None:
    targets = (
        "[{name: default, provider: cli, command: [cat], timeout: 1}, {name: x, provider: pi}]"
    )
    suite = "name: one\ntests: [{id: a, input: q, assert: [{type: is_json}]}]\n"
    files = {".agentv/targets.yaml": targets}
    repository = Repository.create(
        tmp_path / "repository", {**files, "a/EVAL.yaml": suite, "b/EVAL.yaml": suite}
    )

    validated = command.run(repository.path, "validate")
    reviewed = command.run(repository.path, "review", "--base", "HEAD", "--select", "all")

    problem = "the field `timeout` of this target is unknown"
    (line,) = validated.out.splitlines()
    assert line.startswith(f".agentv/targets.yaml:1:49: {problem} (in 2 suites); ")
    assert reviewed.code == 2
    assert reviewed.out.count(problem) == 1
    assert "(in 2 suites)" in reviewed.out
