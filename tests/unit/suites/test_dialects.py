"""Three dialects and their mixtures: one and the same suite."""

from pathlib import Path

import pytest

from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.model.messages import Message
from agentevals_action.model.suite import Suite
from tests.support import suites

TODAY = """\
name: same
execution: {target: default}
assert:
  - {name: shared, type: llm_judge, prompt: "{{answer}}"}
tests:
  - id: a
    criteria: is right
    input: hello
    expected_output: hi
    assert:
      - {name: own, type: code_judge, script: [python3, judge.py]}
      - {name: checks, type: rubric, rubrics: [{id: one, outcome: is one}]}
"""
EARLIER = """\
name: same
execution:
  target: default
  evaluators:
    - {name: shared, type: llm_judge, prompt: "{{answer}}"}
evalcases:
  - id: a
    expected_outcome: is right
    input_messages: [{role: user, content: hello}]
    expected_messages: [{role: assistant, content: hi}]
    execution:
      evaluators:
        - {name: own, type: code_judge, script: [python3, judge.py]}
        - {name: checks, type: rubric, rubrics: [{id: one, expected_outcome: is one}]}
"""
AGENTV = """\
name: same
execution: {target: default}
assertions:
  - {name: shared, type: llm-grader, prompt: "{{answer}}"}
tests:
  - id: a
    criteria: is right
    input: hello
    expected_output: hi
    assertions:
      - {name: own, type: code-grader, command: [python3, judge.py]}
      - {name: checks, type: rubrics, criteria: [{id: one, outcome: is one}]}
"""
MIXED = """\
name: same
execution:
  target: default
  assertions:
    - {name: shared, type: llm-rubric, prompt: "{{answer}}"}
evalcases:
  - id: a
    criteria: is right
    expected_outcome: is right
    input: hello
    input_messages: [{role: user, content: hello}]
    expected_output: {role: assistant, content: hi}
    evaluators:
      - {name: own, type: script, script: [python3, judge.py]}
    execution:
      assert:
        - {name: checks, type: rubric, criteria: [{id: one, expected_outcome: is one}]}
"""


def seen(suite: Suite) -> object:
    """All that a suite means, locations aside."""
    return [
        (
            (test.id, test.criteria, test.input, test.expected_output, test.target),
            [(e.name, e.type, e.own_fields(), e.origin, e.weight) for e in test.evaluators],
        )
        for test in suite.tests
    ]


@pytest.mark.parametrize("text", [EARLIER, AGENTV, MIXED], ids=["earlier", "agentv", "mixed"])
def test_dialect__means_the_same(tmp_path: Path, text: str) -> None:
    files = {".agentv/targets.yaml": suites.TARGETS, "EVAL.yaml": TODAY, "other/EVAL.yaml": text}
    suites.write(tmp_path, files)

    today, other = suites.load_valid(tmp_path), suites.load_valid(tmp_path, "other/EVAL.yaml")

    assert seen(today) == seen(other)
    assert [
        str(warning)
        for warning in other.warnings
        if "is the earlier spelling of" not in warning.problem
    ] == []
    (test,) = today.tests
    assert test.input == (Message("user", "hello"),)
    assert [evaluator.origin for evaluator in test.evaluators] == ["test", "test", "suite"]
    rubric = test.evaluators[1]
    assert isinstance(rubric, Rubric)
    assert [criterion.outcome for criterion in rubric.rubrics] == ["is one"]


def test_name__missing_at_the_root_does_not_depend_on_the_checkout(tmp_path: Path) -> None:
    for folder in ("head", "base"):
        suites.write(
            tmp_path / folder, {"support.eval.yaml": "tests: [{id: a, input: q, criteria: c}]"}
        )

    assert {
        suites.load_valid(tmp_path / folder, "support.eval.yaml").name
        for folder in ("head", "base")
    } == {"support"}


@pytest.mark.parametrize("text", [TODAY, AGENTV], ids=["today", "agentv"])
def test_earlier_spelling__is_none_of_the_living_dialects(tmp_path: Path, text: str) -> None:
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, "EVAL.yaml": text})

    assert suites.load_valid(tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "name: suite\nevalcases: [{id: a, input: q, criteria: c}]",
            "2:1: `evalcases` is the earlier spelling of `tests`; write `tests`",
        ),
        (
            "tests: [{id: a, input: q, criteria: c}]",
            "1:1: this suite has no `name`; write `name: eval`, which is its name now",
        ),
        (
            "name: a--b\ntests: [{id: a, input: q, criteria: c}]",
            "1:7: the name `a--b` has a doubled hyphen; write single hyphens",
        ),
    ],
    ids=["earlier spelling", "name", "hyphens"],
)
def test_strict__makes_every_warning_an_error(tmp_path: Path, text: str, problem: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": text})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        f"EVAL.yaml:{problem}"
    ]
    assert suites.errors(tmp_path, strict=True) == [f"EVAL.yaml:{problem}"]
