"""A committed results file as a base."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.baselines.file import FileBaseline
from agentevals_action.model.baseline import BaselineOrigin, BaseRun
from agentevals_action.model.suite import Suite
from tests.support import base_tree

NAME = "evals/results.jsonl"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    made = base_tree.greeter(tmp_path)
    (tmp_path / NAME).write_text(base_tree.jsonl(base_tree.results_of(made)))
    return made


def given(root: Path, content: bytes | None, *selected: str) -> BaseRun:
    store = FileBaseline(base_tree.at(root), base_tree.FRESH, content, NAME)
    return asyncio.run(store.results(base_tree.select(*selected)))


def test_file__has_the_results_of_base(suite: Suite) -> None:
    content = (suite.root / NAME).read_bytes()
    run = given(suite.root, content, base_tree.PATH, "new/EVAL.yaml")
    assert [result.verdict for result in run.suites[suite.path].results] == ["pass", "pass"]
    assert run.origins[suite.path] == BaselineOrigin(
        "file", time=base_tree.results_of(suite)[0].timestamp, samples=1
    )
    assert (run.missing, run.problems) == ({"new/EVAL.yaml": "the suite is new"}, {})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no `{}` on base (a baseline file counts once it is merged)"),
        (b"tests: []", "`{}` on base is not a results file: line 1: it is not valid JSON"),
        (b"\xff", "`{}` on base is not a results file: line 1"),
        (b"", "`{}` on base: there are no results of it"),
    ],
)
def test_file__that_cannot_be_used(suite: Suite, content: bytes | None, problem: str) -> None:
    run = given(suite.root, content)
    assert (run.suites, run.info.wanted) == ({}, True)
    assert run.problems[base_tree.PATH].startswith(problem.format(NAME))


def test_file__of_another_version_of_the_suite(suite: Suite) -> None:
    content = (suite.root / NAME).read_bytes()
    (suite.root / suite.path).write_text(base_tree.SUITE.replace("Bob", "Rob"))
    assert given(suite.root, content).problems[base_tree.PATH] == (
        f"`{NAME}` on base: the test `short` was run with another question and grading than the "
        "base has"
    )
