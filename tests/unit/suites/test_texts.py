"""`${{ NAME }}` and `{{ name }}` in the texts of suites, files before an input, and merge keys."""

from pathlib import Path

import pytest

from agentevals_action.targets.message_texts import prompt_text, reference_text
from tests.support import suites

HEAD = "name: suite\n"


def test_environment__allowed_variables_are_filled_in_everywhere(tmp_path: Path) -> None:
    text = """\
name: suite
input: "You are ${{ ROLE }}."
assert: [{type: contains, value: "${{ROLE}}"}]
tests:
  - {id: a, input: "Who are ${{ ROLE }}?", metadata: {role: "${{ ROLE }}"}}
  - rows.jsonl
"""
    row = '{"id": "b", "input": "${{ ROLE }}?"}\n'
    suites.write(tmp_path, {"EVAL.yaml": text, "rows.jsonl": row})

    suite = suites.load_valid(
        tmp_path, environ={"ROLE": "Ada", "KEY": "k"}, allowed=frozenset({"ROLE"})
    )

    first, second = suite.tests
    assert [prompt_text([message]) for message in first.input] == ["You are Ada.", "Who are Ada?"]
    assert first.metadata == {"role": "Ada"}
    assert first.evaluators[0].name == "contains-Ada"
    assert prompt_text(second.input[-1:]) == "Ada?"


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (
            "${{ KEY }}",
            "`${{ KEY }}` names a variable that suites may not use; name KEY in the input `env`, "
            "or put a text that is meant so into a file",
        ),
        (
            "${{ UNSET }}",
            "the variable UNSET of `${{ UNSET }}` is not set; set it in the workflow's `env:`",
        ),
        (
            "${{ secrets.KEY }}",
            "`${{ secrets.KEY }}` is not a variable of the environment; write `${{ KEY }}`, and "
            "name KEY in the input `env`",
        ),
    ],
)
def test_environment__is_never_sent_unresolved(tmp_path: Path, reference: str, error: str) -> None:
    suites.write(
        tmp_path,
        {"EVAL.yaml": HEAD + f"tests: [{{id: a, criteria: c, input: 'x {reference}'}}]"},
    )

    found = suites.errors(tmp_path, environ={"KEY": "secret"}, allowed=frozenset({"UNSET"}))

    assert found == [f"EVAL.yaml:2:37: {error}"]


def test_environment__other_expressions_are_texts(tmp_path: Path) -> None:
    text = "tests: [{id: a, criteria: c, input: 'Explain ${{ github.event.number == 1 }}'}]"
    suites.write(tmp_path, {"EVAL.yaml": HEAD + text})

    assert prompt_text(suites.only_test(tmp_path).input).endswith("${{ github.event.number == 1 }}")


def test_vars__fill_in_input_criteria_and_expected_output(tmp_path: Path) -> None:
    text = """\
name: suite
input: "Answer questions about {{ topic }}."
tests:
  - id: a
    vars: {topic: geography, city: {name: Paris}, answer: {city: Paris, rank: 1}}
    input: "Where is {{ city.name }}?"
    criteria: "Knows {{city.name}}"
    expected_output: "{{ answer }}"
"""
    suites.write(tmp_path, {"EVAL.yaml": text})

    test = suites.only_test(tmp_path)

    assert [prompt_text([message]) for message in test.input] == [
        "Answer questions about geography.",
        "Where is Paris?",
    ]
    assert test.criteria == "Knows Paris"
    assert reference_text(test.expected_output) == '{"city": "Paris", "rank": 1}'


def test_vars__without_any_the_text_is_sent_as_it_is(tmp_path: Path) -> None:
    suites.write(
        tmp_path, {"EVAL.yaml": HEAD + "tests: [{id: a, criteria: c, input: 'Use {{ x }}'}]"}
    )

    assert prompt_text(suites.only_test(tmp_path).input) == "Use {{ x }}"


def test_input_files__precede_the_text(tmp_path: Path) -> None:
    text = """\
name: suite
input_files: [shared.txt]
tests:
  - {id: a, criteria: c, input_files: [own.txt], input: Compare.}
  - more/tests.yaml
"""
    more = "- {id: b, criteria: c, input: Read.}\n"
    suites.write(
        tmp_path,
        {"EVAL.yaml": text, "shared.txt": "S", "own.txt": "O", "more/tests.yaml": more},
    )

    suite = suites.load_valid(tmp_path)

    first, second = suite.tests
    assert prompt_text(first.input) == (
        '<file path="shared.txt">\nS\n</file>\n<file path="own.txt">\nO\n</file>\nCompare.'
    )
    assert prompt_text(second.input) == '<file path="/shared.txt">\nS\n</file>\nRead.'
    assert {"shared.txt", "own.txt"} <= {file.path for file in suite.files}


def test_merge_key__adds_the_fields_that_are_missing(tmp_path: Path) -> None:
    text = """\
name: suite
x-base: &base {input: q, metadata: {a: 1}}
x-more: &more {input: other, criteria: c}
tests:
  - {id: a, <<: [*base, *more]}
  - {<<: *more, id: b, input: own}
"""
    suites.write(tmp_path, {"EVAL.yaml": text})

    first, second = suites.load_valid(tmp_path).tests

    assert (prompt_text(first.input), first.criteria, first.metadata) == ("q", "c", {"a": 1})
    assert (prompt_text(second.input), second.criteria) == ("own", "c")


def test_score_ranges__describe_a_criterion_without_an_outcome(tmp_path: Path) -> None:
    text = (
        "tests: [{id: a, input: q, rubrics: [{id: accuracy, score_ranges: {0: poor, 10: good}}]}]"
    )
    suites.write(tmp_path, {"EVAL.yaml": HEAD + text})

    dumped = suites.only_test(tmp_path).evaluators[0].own_fields()

    assert dumped["rubrics"][0]["outcome"] == "accuracy"


def test_code_grader__further_fields_are_its_config(tmp_path: Path) -> None:
    text = (
        "tests: [{id: a, input: q, assert: [{type: code-grader, command: [x], limit: 3, "
        "mode: strict, config: {mode: lax}}]}]"
    )
    suites.write(tmp_path, {"EVAL.yaml": HEAD + text})

    (evaluator,) = suites.only_test(tmp_path, strict=True).evaluators

    assert evaluator.config == {"limit": 3, "mode": "lax"}
