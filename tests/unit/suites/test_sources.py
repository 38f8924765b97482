"""Where tests come from: lists of other files, rows of JSONL, sidecars; streamed, and paths from
the file that names them."""

import json
from pathlib import Path

import pytest

from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import BrokenSuite
from agentevals_action.targets.message_texts import reference_text
from tests.support import suites

SUITE = "name: suite\nassert: [{type: is_json}]\n"


def row(name: str, **fields: object) -> str:
    return json.dumps({"id": name, "input": f"question {name}", **fields}) + "\n"


def ids(root: Path, path: str = "EVAL.yaml") -> list[str]:
    return [test.id for test in suites.load_valid(root, path).tests]


def test_references__mixed_and_nested_in_file_order(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "evals/EVAL.yaml": SUITE
            + "tests:\n  - {id: a, input: q}\n  - ./more/b.yaml\n  - {id: e, input: q}\n  - /shared/f.jsonl\n",
            "evals/more/b.yaml": "- {id: b, input: q}\n- c.jsonl\n- {id: d, input: q}\n",
            "evals/more/c.jsonl": row("c1") + "\n" + row("c2"),
            "shared/f.jsonl": row("f"),
        },
    )

    assert ids(tmp_path, "evals/EVAL.yaml") == ["a", "b", "c1", "c2", "d", "e", "f"]
    suite = suites.load_valid(tmp_path, "evals/EVAL.yaml")
    assert {file.path for file in suite.files} == {
        "evals/EVAL.yaml",
        "evals/more/b.yaml",
        "evals/more/c.jsonl",
        "shared/f.jsonl",
    }
    assert [str(test.location) for test in suite.tests][1:4] == [
        "evals/more/b.yaml:1:3",
        "evals/more/c.jsonl:1:1",
        "evals/more/c.jsonl:3:1",
    ]


def test_glob__in_the_order_of_paths(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "evals/EVAL.yaml": SUITE
            + "tests:\n  - {id: first, input: q}\n  - file://more/**/*.yaml\n",
            "evals/more/b.yaml": "- {id: b, input: q}",
            "evals/more/a/c.yaml": "- {id: c, input: q}",
            "evals/more/a/skipped.jsonl": row("d"),
        },
    )

    assert ids(tmp_path, "evals/EVAL.yaml") == ["first", "c", "b"]


def test_glob__name_with_brackets_is_a_file(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "tests: 'a[1].jsonl'", "a[1].jsonl": row("a")})

    assert ids(tmp_path) == ["a"]


@pytest.mark.parametrize("value", ["cases.jsonl", "./cases.jsonl", "cases.yaml"])
def test_references__one_path(tmp_path: Path, value: str) -> None:
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE + f"tests: {value}",
            "cases.jsonl": row("a"),
            "cases.yaml": "- {id: a, input: q}",
        },
    )

    assert ids(tmp_path) == ["a"]


def test_paths__are_from_the_file_that_names_them(tmp_path: Path) -> None:
    judge = {"type": "llm_judge", "prompt": "./judge.md"}
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": "name: suite\nassert: [{name: shared, type: llm_judge, prompt: ./judge.md}]\ntests: [more/a.yaml, more/b.jsonl]",
            "judge.md": "suite {{answer}}",
            "more/judge.md": "more {{answer}}",
            "more/a.yaml": "- {id: a, input: q, assert: [{name: own, type: llm_judge, prompt: ./judge.md}]}",
            "more/b.jsonl": row("b", criteria="c", **{"assert": [judge]}),
        },
    )

    for test in suites.load_valid(tmp_path).tests:
        own, shared = test.evaluators
        assert [file.path for file in own.files] == ["more/judge.md"]
        assert [file.path for file in shared.files] == ["judge.md"]
        assert [file.path for file in test.files] == ["more/judge.md"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"a.yaml": "- b.jsonl", "b.jsonl": row("a") + row("b", note="x" * 10_000_000)},
            "b.jsonl:2:1: this row is longer than 10 MB; put long data into files, and name them",
        ),
        (
            {"a.yaml": "- b.jsonl", "b.jsonl": row("a", metadata={"x": [0] * 200_001})},
            "b.jsonl:1:1: this row contains more than 200,000 values; put long data into files, and name them",
        ),
        (
            {"a.yaml": "#" * 10_000_001},
            "a.yaml:1:1: this file is longer than 10 MB; put the tests into a JSONL file, which may be of any length",
        ),
    ],
)
def test_reference__of_a_file_that_is_too_large(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "tests: a.yaml", **files})

    assert suites.errors(tmp_path) == [said]


def test_rows__what_each_would_repeat_is_told_of_the_first(tmp_path: Path) -> None:
    rows = "".join(row(f"t{number}", expected_outcome="c") for number in range(3))
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "tests: a.jsonl", "a.jsonl": rows})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        "a.jsonl:1:1: `expected_outcome` is the earlier spelling of `criteria`; write `criteria`",
    ]


def test_rows__gates_stand_on_their_row(tmp_path: Path) -> None:
    gate = {"type": "contains", "value": "x", "required": True}
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE + "tests: a.jsonl",
            "a.jsonl": row("a") + row("b", **{"assert": [gate]}),
        },
    )

    assert [
        str(gate.location) for test in suites.load_valid(tmp_path).tests for gate in test.gates
    ] == ["a.jsonl:2:1"]


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

    said = suites.errors(tmp_path)

    assert len(said) == 1_001
    assert (
        said[-1]
        == "a.jsonl:1001:1: there are 1,000 errors, and the tests from here on were not read; correct those first"
    )


def test_files__of_messages_are_read_when_the_suite_is_loaded(tmp_path: Path) -> None:
    """Attack: an agent rewrites the reference that its answer is compared with."""
    text = "tests: [{id: a, input: q, expected_output: [{role: assistant, content: [{type: file, value: a.txt}]}]}]\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE + text, "a.txt": "the reference"})
    (test,) = suites.load_valid(tmp_path).tests
    (tmp_path / "a.txt").write_text("the answer of the agent")

    assert reference_text(test.expected_output) == ('<file path="a.txt">\nthe reference\n</file>')
