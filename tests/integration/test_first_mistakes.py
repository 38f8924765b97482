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
        ({"EVAL.yaml": SUITE, "sub/x": ""}, ("sub",), "there is no suite in sub; looked for"),
    ],
)
def test_no_suite__the_error_names_what_may_be_meant(
    tmp_path: Path, files: Files, arguments: tuple[str, ...], words: str
) -> None:
    Repository.create(tmp_path).write(files)
    done = command.run(tmp_path, "validate", *arguments)
    assert (done.code, words in done.err) == (2, True), done.err


def test_no_suite__outside_a_repository(tmp_path: Path) -> None:
    (tmp_path / "support.yaml").write_text(SUITE)
    done = command.run(tmp_path, "run")
    assert (done.code, "`support.yaml` has tests" in done.err) == (2, True), done.err
