"""A named pipe in place of a file, or a link that leads nowhere: an error with its path, where a
pipe would block the run, and a link would be taken for no file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentevals_action.model.suite import BrokenSuite
from agentevals_action.suites.configuration_file import read_configuration
from agentevals_action.suites.find import find_suites
from tests.support import suites

TEST = "{id: a, input: q, criteria: c}"
PROMPT = "{type: llm_judge, prompt: ./x}"
SCHEMA = "{type: is_json, schema: x}"
BLOCK = "[{role: user, content: [{type: file, value: x}]}]"
#: What names the pipe, and where the pipe is.
SUITES: dict[str, tuple[str, str]] = {
    "suite": ("", "EVAL.yaml"),
    "list of tests": ("tests: x.yaml", "x.yaml"),
    "rows": ("tests: x.jsonl", "x.jsonl"),
    "targets": (f"tests: [{TEST}]", ".agentv/targets.yaml"),
    "prompt": (f"tests: [{{id: a, input: q, assert: [{PROMPT}]}}]", "x"),
    "schema": (f"tests: [{{id: a, input: q, assert: [{SCHEMA}]}}]", "x"),
    "block": (f"tests: [{{id: a, input: {BLOCK}, criteria: c}}]", "x"),
    "workspace": (f"workspace: x.yaml\ntests: [{TEST}]", "x.yaml"),
}


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def link_to_nothing(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("moved.yaml")


@pytest.mark.parametrize("case", SUITES)
def test_load__a_named_pipe_is_an_error_that_names_it(tmp_path: Path, case: str) -> None:
    text, path = SUITES[case]
    suites.write(tmp_path, {"EVAL.yaml": text, ".agentv/targets.yaml": suites.TARGETS})
    pipe(tmp_path / path)
    loaded = suites.load(tmp_path)
    assert isinstance(loaded, BrokenSuite)
    errors = "\n".join(map(str, loaded.errors))
    assert "not a regular file" in errors
    assert path in errors


@pytest.mark.parametrize("make", [pipe, link_to_nothing])
@pytest.mark.parametrize("name", ["EVAL.yaml", "dataset.yaml", "dataset.jsonl"])
def test_find__what_cannot_be_read_is_not_taken_for_no_suite(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    suites.write(tmp_path, {"dataset.yaml": "name: a", ".agentv/targets.yaml": suites.TARGETS})
    make(tmp_path / name)
    path = "dataset.yaml" if name == "dataset.jsonl" else name
    assert path in find_suites(tmp_path, tmp_path, (), None).paths
    assert isinstance(suites.load(tmp_path, path), BrokenSuite)


def test_load__targets_farther_up_do_not_replace_those_of_a_link_to_nothing(tmp_path: Path) -> None:
    suites.write(tmp_path, {"evals/EVAL.yaml": f"name: suite\ntests: [{TEST}]\n"})
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS})
    link_to_nothing(tmp_path / "evals/.agentv/targets.yaml")
    (error,) = suites.errors(tmp_path, "evals/EVAL.yaml")
    assert error.startswith("evals/.agentv/targets.yaml:1:1: this file cannot be read")


@pytest.mark.parametrize("make", [pipe, lambda path: path.symlink_to(os.devnull)])
def test_quarantine__a_file_that_is_not_regular_is_an_error(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / ".agentevals.yaml")
    (error,) = read_configuration(tmp_path).errors
    assert str(error).startswith(".agentevals.yaml")


def test_suite_through_a_link_out_of_the_repository__is_refused(tmp_path: Path) -> None:
    suites.write(tmp_path, {"outside/EVAL.yaml": f"name: suite\ntests: [{TEST}]\n"})
    root = suites.write(tmp_path / "repository", {"x": ""})
    (root / "EVAL.yaml").symlink_to(tmp_path / "outside/EVAL.yaml")
    (root / "folder").symlink_to(tmp_path / "outside")

    for path in ("EVAL.yaml", "folder/EVAL.yaml"):
        (error,) = suites.errors(root, path)
        assert "this suite leaves the repository; " in error


def test_missing_suite__is_an_error(tmp_path: Path) -> None:
    assert suites.errors(tmp_path, "no/EVAL.yaml") == [
        "no/EVAL.yaml:1:1: there is no such suite; name a file of the repository"
    ]
