"""The file of the repository as a base."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.baseline_file_format import StoredSuite
from agentevals_action.baselines.file import FileBaseline
from agentevals_action.model.baseline import BaselineOrigin, BaseRun
from agentevals_action.model.suite import Suite
from tests.support import base_tree

OLD, TIME = "c" * 40, "2026-01-01T00:00:00Z"
NAME = "evals/baseline.jsonl"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def keep(suite: Suite, commit: str = OLD) -> None:
    stored = StoredSuite(suite.path, suite.name, commit, TIME, base_tree.results_of(suite))
    (suite.root / NAME).write_text(
        baseline_file_format.format_suites([stored])[0], encoding="utf-8"
    )


def given(root: Path, path: str = NAME, *selected: str) -> BaseRun:
    content = (root / path).read_bytes() if (root / path).is_file() else None
    store = FileBaseline(base_tree.at(root), base_tree.FRESH, content, path)
    return asyncio.run(store.results(base_tree.select(*selected)))


def problem(root: Path, path: str = NAME) -> str:
    run = given(root, path)
    assert (run.suites, run.info.wanted) == ({}, True)
    return run.problems[base_tree.PATH]


def test_file__gives_its_results_and_says_whose_they_are(suite: Suite) -> None:
    keep(suite)
    run = given(suite.root, NAME, base_tree.PATH, "new/EVAL.yaml")
    assert [one.verdict for one in run.suites[suite.path].results] == ["pass", "pass"]
    assert run.origins == {suite.path: BaselineOrigin("file", OLD, None, TIME, 1, stale=False)}
    assert (run.missing, run.problems, run.info.source) == (
        {"new/EVAL.yaml": "the suite is new"},
        {},
        "file",
    )


def test_file__of_the_base_itself(suite: Suite) -> None:
    keep(suite, base_tree.BASE)
    assert given(suite.root).origins[suite.path].distance == 0


def test_file__that_is_not_there(suite: Suite) -> None:
    assert (
        problem(suite.root)
        == f"there is no `{NAME}` on base (a baseline file counts once it is merged)"
    )
    assert problem(suite.root, "evals").startswith("there is no `evals` on base")


def test_file__that_is_none(suite: Suite) -> None:
    (suite.root / NAME).write_text("tests: []\n")
    assert problem(suite.root).startswith(
        f"`{NAME}` on base is not a valid baseline file: line 1: it is not valid JSON"
    )
    (suite.root / NAME).write_bytes(b"\xff\xfe")
    assert problem(suite.root).startswith(
        f"`{NAME}` on base is not a valid baseline file: 'utf-8' codec"
    )


def test_file__of_other_suites(suite: Suite) -> None:
    (suite.root / NAME).write_text(baseline_file_format.format_suites([])[0])
    assert problem(suite.root) == f"`{NAME}` on base: there are no results of it"


def test_file__of_before_the_suite_was_changed(suite: Suite) -> None:
    keep(suite)
    (suite.root / suite.path).write_text(base_tree.SUITE.replace("Bob", "Rob"))
    assert (
        problem(suite.root)
        == f"`{NAME}` on base: the test `short` was run with another question and grading than the base has"
    )
