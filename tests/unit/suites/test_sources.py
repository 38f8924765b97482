"""Where tests come from: lists of other files, rows of JSONL, sidecars; streamed, and paths from
the file that names them."""

import json
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.suite import BrokenSuite
from agentevals_action.targets.message_texts import reference_text
from tests.support import suites

SUITE = "name: suite\nassert: [{type: is_json}]\n"


def row(name: str, **fields: object) -> str:
    return json.dumps({"id": name, "input": f"question {name}", **fields}) + "\n"


def ids(root: Path, path: str = "EVAL.yaml") -> list[str]:
    return [test.id for test in suites.load_valid(root, path).tests]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"a.yaml": "- b.jsonl", "b.jsonl": row("a") + row("b", note="x" * 10_000_000)},
            "b.jsonl:2:1: this row is longer than 10 MB; put long data into files, and name them",
        ),
        (
            {"a.yaml": "#" * 10_000_001},
            "a.yaml:1:1: this file is longer than 10 MB; put the tests into a JSONL file, which may be of any length",
        ),
    ],
)
def test_reference__of_a_file_that_is_too_large(
    tmp_path: Path, files: dict[str, str], problem: str
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "tests: a.yaml", **files})

    assert suites.errors(tmp_path) == [problem]


@pytest.mark.parametrize("sidecar", ["cases.yaml", "cases.yml", "dataset.yaml"])
def test_rows__are_a_suite_with_a_sidecar(tmp_path: Path, sidecar: str) -> None:
    suites.write(tmp_path, {sidecar: SUITE, "cases.jsonl": row("a")})

    suite = suites.load_valid(tmp_path, "cases.jsonl")

    assert (suite.path, suite.name) == ("cases.jsonl", "suite")
    assert [evaluator.name for test in suite.tests for evaluator in test.evaluators] == ["is_json"]
    assert NamedFile(sidecar, "sidecar") in suite.files


def test_rows__are_a_suite_without_a_sidecar(tmp_path: Path) -> None:
    suites.write(tmp_path, {"evals/cases.jsonl": row("a", criteria="c")})

    suite = suites.load_valid(tmp_path, "evals/cases.jsonl")

    assert suite.name == "evals"
    assert len(suite.warnings) == 1


def test_rows__beside_a_suite_without_tests_are_its_tests(tmp_path: Path) -> None:
    suites.write(tmp_path, {"dataset.yaml": SUITE, "dataset.jsonl": row("a")})

    assert ids(tmp_path, "dataset.yaml") == ["a"]


def test_sidecar__of_another_suite_is_left_alone(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "dataset.yaml": SUITE + "tests: [{id: x, input: q}]",
            "cases.jsonl": row("a", criteria="c"),
        },
    )

    assert ids(tmp_path, "cases.jsonl") == ["a"]


def test_broken_suite__still_names_the_files_that_are_gone(tmp_path: Path) -> None:
    text = "name: suite\ntests:\n  - gone.yaml\n  - {id: a, input: q, assert: [{type: llm_judge, prompt: ./gone.md}]}\n"
    suites.write(tmp_path, {"EVAL.yaml": text})

    suite = suites.load(tmp_path)

    assert isinstance(suite, BrokenSuite)
    assert {"gone.yaml", "gone.md", "EVAL.yaml"} <= {file.path for file in suite.files}


def test_rows__of_which_a_thousand_are_wrong_are_not_read_to_the_end(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "tests: a.jsonl", "a.jsonl": "1\n" * 3_000})

    found = suites.errors(tmp_path)

    assert len(found) == 1_001
    assert (
        found[-1]
        == "a.jsonl:1001:1: there are 1,000 errors, and the tests from here on were not read; correct those first"
    )


def test_files__of_messages_are_read_when_the_suite_is_loaded(tmp_path: Path) -> None:
    """Attack: an agent rewrites the reference that its answer is compared with."""
    text = "tests: [{id: a, input: q, expected_output: [{role: assistant, content: [{type: file, value: a.txt}]}]}]\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE + text, "a.txt": "the reference"})
    (test,) = suites.load_valid(tmp_path).tests
    (tmp_path / "a.txt").write_text("the answer of the agent")

    assert reference_text(test.expected_output) == ('<file path="a.txt">\nthe reference\n</file>')
