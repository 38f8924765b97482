"""The first mistakes of a new user: files with other names, in other places, or missing. What the
commands say about them."""

import json
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = "name: one\ntests: [{id: a, input: q, assert: [{type: contains, value: a}]}]\n"
TARGETS = "- {name: default, provider: mock, responses: [{pattern: '', response: a}]}\n"
FILES: Files = {"EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS, ".gitignore": "/agentevals*/"}
CONFIG = "vendor/.agentv/config.yaml"
IN_CONFIG = f"{CONFIG}:1:1: this file is a list; write an object with `eval_patterns`"


def test_configuration__with_other_content_is_one_error_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    made = Repository.create(tmp_path, {**FILES, CONFIG: "- other\n"})
    done = command.run(tmp_path, "validate")
    assert (done.code, done.out) == (2, f"{IN_CONFIG}\nEVAL.yaml: valid, 1 test\n")
    document = json.loads(command.run(tmp_path, "validate", "--json").out)
    assert [error["path"] for error in document["errors"]] == [CONFIG]
    assert [suite["path"] for suite in document["suites"]] == ["EVAL.yaml"]
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("another", {"EVAL.yaml": SUITE.replace("id: a", "id: b")})
    # On base, too: which suites it has is not known.
    for arguments in (("run",), ("list",)):
        done = command.run(tmp_path, *arguments)
        assert (done.code, IN_CONFIG in done.err) == (2, True), done.err
    done = command.run(tmp_path, "review", "--base", "main")
    assert done.code == 2
    assert "this file is a list" in done.out
    # The first reason is the cause of both sides.
    assert "**Invalid:** 1 error in suites that the change affects.\n" in done.out
    assert "could not be obtained" not in done.out


@pytest.mark.parametrize(
    "arguments", [("run",), ("review", "--base", "HEAD"), ("targets",)], ids=lambda each: each[0]
)
def test_variables__of_a_file_in_another_encoding_are_invalid_input(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    made = Repository.create(tmp_path, {**FILES, ".gitignore": ".env\n"})
    made.write({".env": "KEY=größe\n".encode("latin-1")})
    done = command.run(tmp_path, *arguments)
    assert done.code == 2, done.out + done.err
    assert ".env:1:7: this is not UTF-8\nsave the file as UTF-8" in done.err


def test_variables__that_a_target_names_are_not_taken_from_a_file(tmp_path: Path) -> None:
    target = "- {name: default, provider: cli, command: [echo, a], env: [AGENT_TOKEN]}\n"
    made = Repository.create(tmp_path, {**FILES, ".agentv/targets.yaml": target})
    made.write({".env": "AGENT_TOKEN=abcdefgh\n"})
    refused = command.run(tmp_path, "run")
    assert "AGENT_TOKEN, which the workflow does not let through" in refused.out + refused.err
    done = command.run(tmp_path, "run", "--env", "AGENT_TOKEN")
    assert "AGENT_TOKEN, which is not set in the environment" in done.out + done.err
    assert "set it there; a file `.env` only fills `${{ }}`" in done.out + done.err
    done = command.run(tmp_path, "run", "--env", "AGENT_TOKEN", env={"AGENT_TOKEN": "abcdefgh"})
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize(
    ("files", "arguments", "words"),
    [
        (
            {},
            (),
            "there is no suite in this repository; looked for `**/EVAL.yaml`, `**/EVAL.yml`, "
            "`**/*.eval.yaml`, `**/*.eval.yml` and `**/dataset.yaml`",
        ),
        ({}, (), "write an EVAL.yaml (`agentevals-action init` writes a first one)"),
        (
            {"evals/support.yaml": SUITE},
            (),
            "`evals/support.yaml` has tests: write `support.eval.yaml` as name, or name it in "
            "`suites`",
        ),
        ({"evals.yaml": SUITE}, (), "`evals.yaml` has tests: write `evals.eval.yaml` as name"),
        (
            {"eval/EVAL.yaml": SUITE, ".gitignore": "eval*/\n"},
            (),
            "git ignores `eval/EVAL.yaml`: correct `.gitignore`",
        ),
        (
            {"eval/EVAL.yaml": SUITE},
            ("--suites", "evals/**"),
            "there is no suite in this repository: `evals/**` in `suites` matches none\n"
            "`suites` leaves out `eval/EVAL.yaml`",
        ),
        (
            {"sub/promptfooconfig.yaml": "providers: [openai:gpt-4o-mini]\n"},
            (),
            "`sub/promptfooconfig.yaml` is for promptfoo: to gate it, run `agentevals-action init`, "
            "or write `runners: [{name: promptfoo, results: promptfoo, suites: "
            '["**/promptfooconfig.yaml"], env: [OPENAI_API_KEY]}]` in .agentevals.yaml',
        ),
        (
            {
                "evals/test_agent.py": "from deepeval import assert_test\n",
                "evals/task.py": "from inspect_ai import task\n\n\n@task\ndef ready(): ...\n",
            },
            (),
            "`evals/test_agent.py` and `evals/task.py` are for pytest and inspect: to gate them, run "
            "`agentevals-action init`, or write `runners: [{name: pytest, results: junit, suites: "
            '["evals/test_*.py"]}, {name: inspect, results: inspect, suites: ["evals/task.py"]}]`',
        ),
        ({"EVAL.yaml": SUITE, "sub/x": ""}, ("sub",), "there is no suite in sub; looked for"),
        (
            {"a.yaml": SUITE, "sub/b.yaml": SUITE, "sub/c.yaml": SUITE},
            ("sub",),
            "\n`sub/b.yaml` and `sub/c.yaml` have tests: write `b.eval.yaml` as name, or name them "
            "in `suites`\n",
        ),
    ],
)
def test_no_suite__the_error_names_what_may_be_meant(
    tmp_path: Path, files: Files, arguments: tuple[str, ...], words: str
) -> None:
    Repository.create(tmp_path).write(files)
    done = command.run(tmp_path, "validate", *arguments)
    assert (done.code, words in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"evals/second.yaml": SUITE},
            "notice: not all suites run: `evals/second.yaml` has tests: write `second.eval.yaml` as "
            "name, or name it in `suites`",
        ),
        (
            {"more/EVAL.yaml": SUITE, ".gitignore": "/more/\n/agentevals-report/\n"},
            "notice: not all suites run: git ignores `more/EVAL.yaml`: correct `.gitignore`",
        ),
        (
            {"agentevals.yaml": "watch: src/**\n"},
            "warning: agentevals.yaml:1:1: this file is not read; call it `.agentevals.yaml`",
        ),
        ({"build/lib/EVAL.yaml": SUITE, ".gitignore": "/build/\n/agentevals-report/\n"}, ""),
        (
            {
                "venv/lib/site-packages/x/EVAL.yaml": SUITE,
                ".gitignore": "/venv/\n/agentevals-report/\n",
            },
            "",
        ),
        ({"chart/unit.yaml": "suite: x\ntests: [{it: renders, asserts: []}]\n"}, ""),
        ({"second.yaml": SUITE, ".agentevals.yaml": "suites: '!second.yaml'\n"}, ""),
    ],
)
def test_run__a_suite_that_is_not_found_beside_one_that_is(
    tmp_path: Path, files: Files, words: str
) -> None:
    Repository.create(tmp_path).write({**FILES, **files})
    done = command.run(tmp_path, "run")
    assert done.code == 0, done.err
    told = (done.out + done.err).splitlines()
    assert [line for line in told if line.startswith(("notice:", "warning:"))] == [words][
        : bool(words)
    ]


def test_no_suite__outside_a_repository(tmp_path: Path) -> None:
    (tmp_path / "support.yaml").write_text(SUITE)
    done = command.run(tmp_path, "run")
    assert (done.code, "`support.yaml` has tests" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    "path", ["targets.yaml", "evals/targets.yaml", ".agentv/targets.yml", "evals/a/targets.yml"]
)
def test_targets__a_file_near_by_is_named(tmp_path: Path, path: str) -> None:
    Repository.create(tmp_path, {"evals/a/EVAL.yaml": SUITE, path: TARGETS})
    problem = "evals/a/EVAL.yaml:1:1: its tests have no target: there is no `.agentv/targets.yaml`"
    for arguments in (("validate",), ("run",)):
        done = command.run(tmp_path, *arguments)
        assert done.code == 2
        assert f"{problem}; move `{path}` there" in done.out + done.err


def test_targets__a_key_in_clear_text_is_a_warning(tmp_path: Path) -> None:
    key = "sk-proj-a1B2c3D4e5F6g7H8"
    targets = f"""\
- name: default
  provider: http
  url: https://example.org
  headers: {{Authorization: Bearer {key}, Accept: application/vnd.example.v2+json}}
  judge_target: judge
- {{name: judge, provider: openai, model: gpt-5, api_key: {key}}}
- {{name: spare, provider: openai, model: gpt-5, api_key: "${{{{ OPENAI_API_KEY }}}}"}}
- {{name: local, provider: openai, model: llama, base_url: "http://localhost:1", api_key: ollama}}
"""
    suite = SUITE.replace("type: contains, value: a", "type: llm_judge")
    Repository.create(tmp_path, {"EVAL.yaml": suite, ".agentv/targets.yaml": targets})
    done = command.run(tmp_path, "validate")
    assert done.code == 0
    sentence = (
        "is a key in clear text, which all readers of the repository can use; revoke it, and write "
        "`${{ NAME }}` with the name of a variable"
    )
    assert done.err.splitlines() == [
        f"warning: .agentv/targets.yaml:4:28: `Authorization` {sentence}",
        f"warning: .agentv/targets.yaml:6:58: `api_key` {sentence}",
    ]
    assert key not in done.out + done.err


GONE = """\
name: one
tests: [{id: a, input: q, assert: [{name: check, type: code_judge, script: [python3, check.py]}]}]
"""
AGENT = "- name: default\n  provider: cli\n  cwd: /\n  command: {command}\n"
ADVICE = "which does not exist; correct the path, or `cwd`, where it starts"


@pytest.mark.parametrize(
    ("suite", "command_", "error"),
    [
        (GONE, "cat", f"evals/EVAL.yaml:2:36: the judge `check` runs evals/check.py, {ADVICE}"),
        *(
            (
                SUITE,
                words,
                f".agentv/targets.yaml:1:3: the target `default` runs {path}, {ADVICE}",
            )
            for words, path in (
                ("[python3, agents/main.py, '{PROMPT}']", "agents/main.py"),
                ("python3 main.py > {OUTPUT_FILE}", "main.py"),
                ("./agent", "agent"),
            )
        ),
    ],
)
def test_program__that_is_missing_is_the_same_error_in_every_command(
    tmp_path: Path, suite: str, command_: str, error: str
) -> None:
    targets = AGENT.format(command=command_)
    files = {
        "evals/EVAL.yaml": suite,
        ".agentv/targets.yaml": targets,
        ".gitignore": "/agentevals*/",
    }
    Repository.create(tmp_path, files).write({"evals/EVAL.yaml": f"{suite}# changed\n"})
    validated = command.run(tmp_path, "validate")
    assert (validated.code, error in validated.out) == (2, True), validated.out
    assert command.run(tmp_path, "run").code == 3
    rows = (tmp_path / "agentevals-report/results.jsonl").read_text()
    assert error in rows
    reviewed = command.run(tmp_path, "review", "--base", "HEAD", "--json")
    assert (reviewed.code, error in reviewed.out) == (3, True), reviewed.out


@pytest.mark.parametrize(
    "command_",
    [
        "[docker, run, -v, '.:/app', image, agent.py]",
        "cd sub && python3 agent.py",
        "[node, dist/agent.js]",
        "[python3, -m, agent]",
    ],
)
def test_program__that_may_be_elsewhere_is_no_error(tmp_path: Path, command_: str) -> None:
    targets = AGENT.format(command=command_)
    ignored = {".gitignore": "dist/\n/agentevals*/\n"}
    Repository.create(tmp_path, {**FILES, ".agentv/targets.yaml": targets, **ignored})
    done = command.run(tmp_path, "validate")
    assert done.code == 0, done.out
