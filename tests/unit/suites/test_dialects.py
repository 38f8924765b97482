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
    """All that a suite means, places aside."""
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


def test_evaluators__of_two_places_run_in_file_order(tmp_path: Path) -> None:
    text = """\
name: order
execution: {assert: [{name: s1, type: is_json}]}
assertions: [{name: s2, type: is_json}]
tests:
  - id: a
    input: q
    evaluators: [{name: t1, type: is_json}]
    execution: {evaluators: [{name: t2, type: is_json}], assert: [{name: t3, type: is_json}]}
    assert: [{name: t4, type: is_json}]
"""
    suites.write(tmp_path, {"EVAL.yaml": text})

    assert [evaluator.name for evaluator in suites.only_test(tmp_path).evaluators] == [
        "t1",
        "t2",
        "t3",
        "t4",
        "s1",
        "s2",
    ]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("contains-any", "contains_any"),
        ("contains_any", "contains_any"),
        ("icontains-all", "icontains_all"),
        ("starts_with", "starts_with"),
    ],
)
def test_type__hyphen_and_underscore_are_equal(
    tmp_path: Path, written: str, canonical: str
) -> None:
    value = "x" if canonical == "starts_with" else "[x]"
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": f"name: suite\ntests: [{{id: a, input: q, assert: [{{type: {written}, value: {value}}}]}}]"
        },
    )

    assert [evaluator.type for evaluator in suites.only_test(tmp_path).evaluators] == [canonical]


def test_name__missing_is_the_folder_with_a_warning(tmp_path: Path) -> None:
    suites.write(tmp_path, {"My Agent (2)/EVAL.yaml": "tests: [{id: a, input: q, criteria: c}]"})

    suite = suites.load_valid(tmp_path, "My Agent (2)/EVAL.yaml")

    assert suite.name == "my-agent-2"
    assert [str(warning) for warning in suite.warnings] == [
        "My Agent (2)/EVAL.yaml:1:1: this suite has no `name`; write `name: my-agent-2`, which is its name now"
    ]


def test_name__missing_at_the_root_does_not_depend_on_the_checkout(tmp_path: Path) -> None:
    for folder in ("head", "base"):
        suites.write(
            tmp_path / folder, {"support.eval.yaml": "tests: [{id: a, input: q, criteria: c}]"}
        )

    assert {
        suites.load_valid(tmp_path / folder, "support.eval.yaml").name
        for folder in ("head", "base")
    } == {"support"}


def test_name__doubled_hyphen_is_a_warning(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": "name: a--b\ntests: [{id: a, input: q, criteria: c}]"})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        "EVAL.yaml:1:7: the name `a--b` has a doubled hyphen; write single hyphens"
    ]


def test_earlier_spelling__is_one_warning_a_file_at_its_first_place(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            ".agentv/targets.yaml": suites.TARGETS,
            "EVAL.yaml": EARLIER.replace("  - id: a", "  - id: z\n" + EARLIER_TEST),
        },
    )

    assert [str(warning) for warning in sorted(suites.load_valid(tmp_path).warnings)] == [
        "EVAL.yaml:4:3: `evaluators` under `execution` is the earlier spelling of `assert`; write `assert`",
        "EVAL.yaml:6:1: `evalcases` is the earlier spelling of `tests`; write `tests`",
        "EVAL.yaml:8:5: `expected_outcome` is the earlier spelling of `criteria`; write `criteria`",
        "EVAL.yaml:9:5: `input_messages` is the earlier spelling of `input`; write `input`",
        "EVAL.yaml:10:27: `expected_outcome` is the earlier spelling of `outcome`; write `outcome`",
        "EVAL.yaml:14:5: `expected_messages` is the earlier spelling of `expected_output`; write `expected_output`",
    ]


EARLIER_TEST = """\
    expected_outcome: is wrong
    input_messages: [{role: user, content: hello}]
    rubrics: [{id: first, expected_outcome: is one}]
  - id: a"""


def test_earlier_spelling__what_is_read_first_need_not_stand_first(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": "name: suite\nevalcases:\n  - id: a\n    input: q\n    execution:\n      evaluators: [{type: is_json}]\n"
        },
    )
    suites.write(
        tmp_path,
        {
            "late/EVAL.yaml": (tmp_path / "EVAL.yaml").read_text()
            + "execution: {evaluators: [{type: is_json}]}\n"
        },
    )

    early, late = (
        [
            str(warning.location)
            for warning in suites.load_valid(tmp_path, path).warnings
            if "`execution`" in warning.problem
        ]
        for path in ("EVAL.yaml", "late/EVAL.yaml")
    )

    assert (early, late) == (["EVAL.yaml:6:7"], ["late/EVAL.yaml:6:7"])


def test_earlier_spelling__in_rows_is_told_of_the_first_row_of_each_file(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": "{name}", "input": "q", "expected_outcome": "c"}}\n' for name in "abc")
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": "name: suite\ntests: [one.jsonl, two.jsonl]\n",
            "one.jsonl": rows,
            "two.jsonl": rows.replace('"id": "', '"id": "x'),
        },
    )

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        f"{name}.jsonl:1:1: `expected_outcome` is the earlier spelling of `criteria`; write `criteria`"
        for name in ("one", "two")
    ]


@pytest.mark.parametrize("text", [TODAY, AGENTV], ids=["today", "agentv"])
def test_earlier_spelling__is_none_of_the_living_dialects(tmp_path: Path, text: str) -> None:
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, "EVAL.yaml": text})

    assert suites.load_valid(tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_strict__makes_every_warning_a_fault(tmp_path: Path, text: str, said: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": text})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        f"EVAL.yaml:{said}"
    ]
    assert suites.errors(tmp_path, strict=True) == [f"EVAL.yaml:{said}"]
