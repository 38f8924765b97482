"""`${{ NAME }}` and `{{ name }}` in the texts of suites, files before an input, and merge keys."""

from pathlib import Path

import pytest

from agentevals_action.targets.message_texts import prompt_text
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
            "the variable UNSET of `${{ UNSET }}` is not set; set it in the environment; "
            "in a workflow, in the step's `env:`",
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
