"""Evaluators of a repository's own, and criteria without one. Their effective form is in
`tests/data/valid`."""

from pathlib import Path

import pytest

from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from tests.support import suites


@pytest.mark.parametrize(
    ("evaluator", "is_scored"),
    [
        ("{type: is_json}", False),
        ("{type: composite, assert: [{type: is_json}]}", False),
        ("{type: llm_judge}", True),
        ("{type: code_judge, script: [./judge]}", False),
        ("{type: code_judge, script: [./judge], target: true}", True),
        ("{type: llm_judge, prompt: 'Is it kind? {{answer}}'}", False),
        ("{type: llm_judge, prompt: '{{ criteria }} {{ answer }}'}", True),
        ("{type: rubric, rubrics: [is kind]}", True),
        ("{type: composite, assert: [{type: llm_judge}]}", True),
    ],
)
def test_criteria__that_nothing_scores_are_one_warning(
    tmp_path: Path, evaluator: str, is_scored: bool
) -> None:
    tests = "".join(f"  - {{id: t{number}, input: q, criteria: c}}\n" for number in range(5))
    text = f"name: suite\nassert: [{evaluator}]\ntests:\n{tests}"
    suites.write(tmp_path, {"EVAL.yaml": text})

    warnings = [str(warning) for warning in suites.load_valid(tmp_path).warnings]

    assert warnings == [
        "EVAL.yaml:4:5: no model scores `criteria` of the test `t0`; write an `llm_judge`, or "
        "move the text to `description`"
    ] * (not is_scored)


def test_own_type__is_the_program_in_the_nearest_folder_of_assertions(tmp_path: Path) -> None:
    files = {
        ".agentv/assertions/word-count.ts": "",
        ".agentv/assertions/contains.ts": "a known type takes precedence",
        "evals/.agentv/assertions/word-count.mjs": "",
        "evals/deep/EVAL.yaml": "name: suite\ntests:\n  - id: a\n    input: q\n    assert:\n"
        "      - {type: word-count, required: true, least: 3}\n"
        "      - {type: contains, value: x}\n",
        "evals/deep/.agentv/targets.yaml": suites.TARGETS,
    }
    suites.write(tmp_path, files)

    (test,) = suites.load_valid(tmp_path, "evals/deep/EVAL.yaml").tests

    own, known = test.evaluators
    assert (own.name, own.type, own.config) == ("word-count", "code_judge", {"least": 3})
    assert isinstance(own, CodeJudge)
    assert list(own.script) == ["bun", "run", "../.agentv/assertions/word-count.mjs"]
    assert [file.path for file in own.files] == ["evals/.agentv/assertions/word-count.mjs"]
    assert [gate.name for gate in own.gates()] == ["word-count"]
    assert known.type == "contains"
