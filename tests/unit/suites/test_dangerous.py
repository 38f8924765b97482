"""What must never look like a suite that is well: nothing is dropped, skipped or taken for
something else."""

from pathlib import Path

import pytest

from agentevals_action.model.suite import BrokenSuite
from tests.support import suites

GOOD = "  - {id: good, input: q, assert: [{type: is_json}]}\n"
HEAD = "name: suite\ntests:\n" + GOOD


@pytest.mark.parametrize(
    "evaluator",
    [
        "{type: contians, value: x}",
        "{type: contains, vlaue: x}",
        "{type: contains, value: }",
        "{typ: contains, value: x}",
        "contains",
        "[]",
        "",
        "{type: code_judge}",
        "{type: code_judge, script: []}",
        "{type: llm_judge, prompt: ./gone.md}",
        "{type: rubric}",
        "{type: regex, value: '['}",
        "{type: contains, value: x, required: 80}",
    ],
)
def test_misdeclared_evaluator__is_not_dropped(tmp_path: Path, evaluator: str) -> None:
    text = (
        HEAD
        + f"  - id: bad\n    input: q\n    criteria: c\n    assert:\n      - {{type: is_json}}\n      - {evaluator}\n"
    )
    suites.write(tmp_path, {"EVAL.yaml": text})

    said = suites.errors(tmp_path)

    assert all(line.startswith("EVAL.yaml:9:") for line in said)


@pytest.mark.parametrize(
    "test",
    [
        "{id: bad}",
        "{input: q, criteria: c}",
        "{id: bad, input: q, criteria: 3}",
        "{id: bad, input: q, criteria: c, execution: {timeout_seconds: 0}}",
        "{id: bad, input: q, criteria: c, metadata: x}",
        "{id: bad, input: [{role: user}], criteria: c}",
        "{id: good, input: q, criteria: c}",
        "./gone.yaml",
        "",
    ],
)
def test_bad_test__does_not_vanish(tmp_path: Path, test: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": HEAD + f"  - {test}\n"})

    assert [line.split(":")[1] for line in suites.errors(tmp_path)][:1] == ["4"]


@pytest.mark.parametrize(
    "fields", ["note: [x]", "rubrics: [{outcom: x}]", "expected_output: 3", "conversation_id: {}"]
)
def test_bad_row__does_not_vanish(tmp_path: Path, fields: str) -> None:
    key, _, value = fields.partition(": ")
    rows = {"[x]": '["x"]', "[{outcom: x}]": '[{"outcom": "x"}]', "3": "3", "{}": "{}"}
    row = f'{{"id": "b", "input": "q", "criteria": "c", "{key}": {rows[value]}}}\n'
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": "name: suite\ntests: a.jsonl",
            "a.jsonl": '{"id": "a", "input": "q", "criteria": "c"}\n' + row,
        },
    )

    assert suites.errors(tmp_path)[0].split(":")[:2] == ["a.jsonl", "2"]


@pytest.mark.parametrize(
    "prompt", ["./gone.md", "../gone.md", "/gone.md", "file://gone.md", "file://./gone.md"]
)
def test_missing_prompt__is_never_an_inline_prompt(tmp_path: Path, prompt: str) -> None:
    text = f"name: suite\ntests:\n  - {{id: a, input: q, criteria: c, assert: [{{type: llm_judge, prompt: '{prompt}'}}]}}"
    root = suites.write(tmp_path / "repository", {"evals/EVAL.yaml": text})

    (said,) = suites.errors(root, "evals/EVAL.yaml")

    assert "there is no file" in said


@pytest.mark.parametrize(
    "block",
    [
        "{type: file, value: gone.py}",
        "{type: image, value: ./gone.png}",
        "{type: image, value: aGVsbG8=}",
    ],
)
@pytest.mark.parametrize("field", ["input", "expected_output"])
def test_missing_fixture__is_refused(tmp_path: Path, block: str, field: str) -> None:
    other = {"input": "expected_output: x", "expected_output": "input: q"}[field]
    text = f"name: suite\ntests:\n  - id: a\n    criteria: c\n    {other}\n    {field}: [{{role: user, content: [{block}]}}]\n"
    suites.write(tmp_path, {"EVAL.yaml": text})

    (said,) = suites.errors(tmp_path)

    assert said.startswith("EVAL.yaml:6:")
    assert "there is no file" in said


@pytest.mark.parametrize(
    "text", ["tests: []", "evalcases: []", "tests:", "tests: {}", "tests: ''", ""]
)
def test_empty_tests__are_refused(tmp_path: Path, text: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": f"name: suite\n{text}\n"})

    assert len(suites.errors(tmp_path)) == 1


def test_suite_through_a_link_out_of_the_repository__is_refused(tmp_path: Path) -> None:
    suites.write(tmp_path, {"outside/EVAL.yaml": HEAD})
    root = suites.write(tmp_path / "repository", {"x": ""})
    (root / "EVAL.yaml").symlink_to(tmp_path / "outside/EVAL.yaml")
    (root / "folder").symlink_to(tmp_path / "outside")

    for path in ("EVAL.yaml", "folder/EVAL.yaml"):
        suite = suites.load(root, path)
        assert isinstance(suite, BrokenSuite)
        assert [diagnostic.problem for diagnostic in suite.errors] == [
            "this suite leaves the repository"
        ]


def test_evaluator_of_the_suite__that_is_bad_breaks_it_whole(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {"EVAL.yaml": "name: suite\nassert: [{type: contians, value: x}]\ntests:\n" + GOOD},
    )

    assert suites.errors(tmp_path) == [
        "EVAL.yaml:2:17: the evaluator type `contians` is unknown; did you mean `contains`?"
    ]
