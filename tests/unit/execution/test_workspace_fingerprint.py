"""A workspace is part of the question: what the agent finds in its folder decides whether two
answers can be compared."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.result import Fingerprint
from agentevals_action.review.selection import Change, select_suites
from agentevals_action.system.git import ChangedFile
from tests.support import suites

EVAL = """\
name: suite
workspace:
  template: start
  repos: [{path: app, repo: ./app.git, commit: v1}]
  hooks:
    before_all: {command: [sh, setup.sh]}
    before_each: {command: [sh, each.sh]}
    after_each: {command: [sh, tidy.sh], reset: fast}
    after_all: {command: [sh, down.sh]}
tests:
  - {id: a, input: q, assert: [{type: contains, value: x}]}
"""
FILES: dict[str, str] = {
    ".agentv/targets.yaml": suites.TARGETS,
    "evals/EVAL.yaml": EVAL,
    "evals/start/app.py": "1\n",
    "evals/start/AGENTS.md": "Be brief.\n",
    "evals/app.git/HEAD": "ref: refs/heads/main\n",
    "evals/app.git/objects/x": "x",
    "evals/setup.sh": "true\n",
    "evals/each.sh": "true\n",
    "evals/tidy.sh": "true\n",
    "evals/down.sh": "true\n",
}
WATCH = [read_rule("**/AGENTS.md")]


def fingerprint(
    root: Path, changes: Mapping[str, str | None] | None = None, path: str = "evals/EVAL.yaml"
) -> Fingerprint:
    files = {name: text for name, text in {**FILES, **(changes or {})}.items() if text is not None}
    shutil.rmtree(root, ignore_errors=True)
    suite = suites.load_valid(suites.write(root, files), path)
    (test,) = suite.tests
    return Fingerprints(WATCH).of(suite, test)


def moved(root: Path, changes: Mapping[str, str | None], path: str = "evals/EVAL.yaml") -> set[str]:
    before, after = fingerprint(root), fingerprint(root, changes, path)
    return {
        part
        for part in ("question", "grading", "agent")
        if getattr(before, part) != getattr(after, part)
    }


def edited(old: str, new: str) -> dict[str, str | None]:
    assert EVAL.count(old) == 1
    return {"evals/EVAL.yaml": EVAL.replace(old, new)}


@pytest.mark.parametrize(
    "changes",
    [
        {"evals/start/app.py": "2\n"},
        {"evals/start/more.py": ""},
        {"evals/start/app.py": None, "evals/start/main.py": "1\n"},
        {"evals/app.git/HEAD": "ref: refs/heads/topic\n"},
        {"evals/setup.sh": "false\n"},
        {"evals/each.sh": "false\n"},
        edited("commit: v1", "commit: v2"),
        edited("path: app,", "path: other,"),
        edited("[sh, setup.sh]", "[bash, setup.sh]"),
        edited("reset: fast", "reset: strict"),
        edited("template: start", "template: start\n  isolation: per_test"),
    ],
)
def test_question__what_the_agent_finds(tmp_path: Path, changes: dict[str, str | None]) -> None:
    assert moved(tmp_path / "r", changes) == {"question"}


@pytest.mark.parametrize(
    "changes",
    [
        {"evals/tidy.sh": "false\n"},
        {"evals/down.sh": "false\n"},
        edited("[sh, down.sh]", "[sh, down.sh, x]"),
    ],
)
def test_question__what_comes_after_is_no_part(
    tmp_path: Path, changes: dict[str, str | None]
) -> None:
    assert moved(tmp_path / "r", changes) == set()


def test_agent__a_watched_file_of_the_template_is_its_own(tmp_path: Path) -> None:
    assert moved(tmp_path / "r", {"evals/start/AGENTS.md": "Be long.\n"}) == {"agent"}


def test_question__the_same_wherever_the_suite_lies(tmp_path: Path) -> None:
    elsewhere = {name.replace("evals/", "tests/agent/"): text for name, text in FILES.items()}
    assert fingerprint(tmp_path / "one") == fingerprint(
        tmp_path / "other", {**dict.fromkeys(FILES), **elsewhere}, "tests/agent/EVAL.yaml"
    )


def test_question__none_without_a_workspace_is_what_it_was(tmp_path: Path) -> None:
    plain = EVAL.partition("workspace:")[0] + "tests:" + EVAL.partition("tests:")[2]
    empty = plain.replace("tests:", "workspace: {}\ntests:")
    assert (
        fingerprint(tmp_path, {"evals/EVAL.yaml": plain}).question
        != fingerprint(tmp_path, {"evals/EVAL.yaml": empty}).question
    )


def test_question_files__name_the_template(tmp_path: Path) -> None:
    suite = suites.load_valid(suites.write(tmp_path, FILES), "evals/EVAL.yaml")
    (test,) = suite.tests
    files = Fingerprints(WATCH).describe(suite).question_files(test)
    assert set(files) == {
        "evals/start/app.py",
        "evals/app.git/HEAD",
        "evals/app.git/objects/x",
        "evals/setup.sh",
        "evals/each.sh",
    }


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("evals/start/app.py", "workspace template"),
        ("evals/down.sh", "workspace hook"),
        ("evals/app.git/objects/x", "workspace repository"),
    ],
)
def test_suites__are_touched_by_their_workspace(tmp_path: Path, path: str, role: str) -> None:
    suite = suites.load_valid(suites.write(tmp_path, FILES), "evals/EVAL.yaml")
    (selection,) = select_suites([suite], Change([ChangedFile(path, "modified")])).selections
    assert selection.reasons == (f"changed: {path} ({role})",)
