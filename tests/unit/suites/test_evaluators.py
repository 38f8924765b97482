"""Which evaluators a test has, what they are called, and where their gates stand."""

from pathlib import Path

import pytest

from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.model.suite import Test
from tests.support import suites

SUITE = """\
name: suite
assert:
  - {name: shared, type: contains, value: x, required: true}
  - {name: quality, type: rubric, rubrics: [{id: safe, outcome: no harm, required: true}]}
tests:
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS})


def every_test(root: Path, text: str) -> list[Test]:
    return list(suites.load_valid(suites.write(root, {"EVAL.yaml": text})).tests)


def one(root: Path, evaluators: str) -> Test:
    return every_test(
        root, f"name: suite\ntests:\n  - id: a\n    input: q\n    assert: [{evaluators}]\n"
    )[0]


def test_order__own_then_rubrics_then_suite(root: Path) -> None:
    (test,) = every_test(
        root,
        SUITE + "  - {id: a, input: q, rubrics: [is polite], assert: [{name: own, type: is_json}]}",
    )

    assert [(evaluator.name, evaluator.origin) for evaluator in test.evaluators] == [
        ("own", "test"),
        ("rubrics", "rubrics"),
        ("shared", "suite"),
        ("quality", "suite"),
    ]


def test_skip_defaults__leaves_out_the_suites_evaluators_and_input(root: Path) -> None:
    text = (
        "input: first\n"
        + SUITE
        + "  - {id: a, input: q, criteria: c, execution: {skip_defaults: true}}\n  - {id: b, input: q}\n"
    )
    alone, joined = every_test(root, text)

    assert [
        (evaluator.name, evaluator.type, evaluator.origin) for evaluator in alone.evaluators
    ] == [("criteria", "llm_judge", "default")]
    assert [message.content for message in alone.input] == ["q"]
    assert [message.content for message in joined.input] == ["first", "q"]


def test_default__is_a_judge_of_the_criteria_only_where_nothing_is_declared(root: Path) -> None:
    first, second = every_test(
        root,
        "name: suite\ntests:\n  - {id: a, input: q, criteria: c}\n  - {id: b, input: q, criteria: c, assert: [{type: is_json}]}\n",
    )

    assert [evaluator.name for evaluator in first.evaluators] == ["criteria"]
    assert [evaluator.name for evaluator in second.evaluators] == ["is_json"]


@pytest.mark.parametrize(
    ("evaluator", "name"),
    [
        ("{type: contains, value: DENIED}", "contains-DENIED"),
        ("{type: is-json}", "is_json"),
        ("{type: contains-any, value: [a, b]}", "contains_any-a-b"),
        ('{type: contains, value: "two\\n  lines"}', "contains-two lines"),
        ("{type: contains, value: " + "y" * 60 + "}", "contains-" + "y" * 31),
        ("{type: llm-grader}", "llm_judge"),
    ],
)
def test_name__generated(root: Path, evaluator: str, name: str) -> None:
    assert [found.name for found in one(root, evaluator).evaluators] == [name]


def test_name__used_twice_is_numbered(root: Path) -> None:
    test = one(
        root, "{type: is_json}, {type: is_json}, {name: is_json-2, type: is_json}, {type: is_json}"
    )

    assert [evaluator.name for evaluator in test.evaluators] == [
        "is_json",
        "is_json-2",
        "is_json-2-2",
        "is_json-3",
    ]


@pytest.mark.parametrize(
    ("field", "threshold"),
    [
        ("", None),
        (", required: false", None),
        (", required: true", 0.8),
        (", required: 0.6", 0.6),
        (", required: 1", 1),
        (", min_score: 0.7", None),
        (", required: true, min_score: 0.7", 0.7),
        (", required: 0.7, min_score: 0.7", 0.7),
        (", required: false, min_score: 0.7", None),
    ],
)
def test_gate__threshold(root: Path, field: str, threshold: float | None) -> None:
    test = one(root, f"{{type: is_json{field}}}")

    assert test.evaluators[0].gate_threshold == threshold
    assert [gate.name for gate in test.gates] == ([] if threshold is None else ["is_json"])


def test_gate__a_threshold_without_a_gate_is_warned_of(root: Path) -> None:
    made = suites.write(
        root,
        {
            "EVAL.yaml": "name: suite\ntests:\n  - {id: a, input: q, assert: [{type: is_json, min_score: 0.7}]}\n"
        },
    )
    suite = suites.load_valid(made)
    assert [str(warning) for warning in suite.warnings if "min_score" in warning.problem] == [
        "EVAL.yaml:3:48: `min_score` without `required` is not a gate; add `required: true`"
    ]


def test_gate__stands_at_its_own_entry(root: Path) -> None:
    text = """\
name: suite
tests:
  - id: a
    input: q
    rubrics:
      - is polite
      - {id: safe, outcome: no harm, required: true}
    assert:
      - {type: is_json, required: true}
      - name: quality
        type: rubric
        required: 0.5
        rubrics:
          - {outcome: is short, required: true, min_score: 0.5}
"""
    (test,) = every_test(root, text)

    assert [(gate.name, str(gate.location)) for gate in test.gates] == [
        ("is_json", "EVAL.yaml:9:9"),
        ("quality", "EVAL.yaml:10:9"),
        ("quality/rubric-1", "EVAL.yaml:14:13"),
        ("rubrics/safe", "EVAL.yaml:7:9"),
    ]


def test_gate__of_the_suite_stands_at_the_test(root: Path) -> None:
    first, second = every_test(root, SUITE + "  - {id: a, input: q}\n  - {id: b, input: q}\n")

    assert [(gate.name, str(gate.location)) for gate in first.gates] == [
        ("shared", "EVAL.yaml:6:5"),
        ("quality/safe", "EVAL.yaml:6:5"),
    ]
    assert [str(gate.location) for gate in second.gates] == ["EVAL.yaml:7:5"] * 2
    assert str(second.evaluators[0].location) == "EVAL.yaml:3:5"


def test_common_fields__are_kept(root: Path) -> None:
    (evaluator,) = one(
        root, "{type: llm_judge, weight: 0, negate: true, target: judge, config: {a: [1]}}"
    ).evaluators

    assert (evaluator.weight, evaluator.negate, evaluator.judge_name(), evaluator.config) == (
        0,
        True,
        "judge",
        {"a": [1]},
    )


def test_criteria__that_nothing_grades_are_told_once(root: Path) -> None:
    text = "name: suite\nassert: [{type: is_json}]\ntests:\n" + "".join(
        f"  - {{id: t{n}, input: q, criteria: c}}\n" for n in range(5)
    )
    suites.write(root, {"EVAL.yaml": text})

    assert suites.load_valid(root).warnings == ()
    assert suites.errors(root, strict=True) == [
        "EVAL.yaml:4:5: no evaluator scores `criteria` of the test `t0`; add `type: llm_judge` to score it"
    ]


def test_criteria__beside_a_judge_are_not_told(root: Path) -> None:
    text = "name: suite\ntests: [{id: a, input: q, criteria: c, assert: [{type: is_json}, {type: llm_judge}]}]"

    assert suites.load_valid(suites.write(root, {"EVAL.yaml": text})).warnings == ()


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
    assert [gate.name for gate in own.gates] == ["word-count"]
    assert known.type == "contains"


TRACED = "name: suite\ntests:\n  - id: a\n    input: q\n    expected_output: {total: 5, name: Acme}\n    assert:\n      - "


@pytest.mark.parametrize(
    ("written", "name", "field", "value"),
    [
        ("{type: latency, threshold: 5}", "latency", "threshold", 5),
        ("{type: latency, max_ms: 5}", "latency", "threshold", 5),
        ("{type: cost, budget: 0.5}", "cost", "budget", 0.5),
        ("{type: cost, max_usd: 0}", "cost", "budget", 0),
        ("{type: token-usage, max_total: 5}", "token_usage", "max_total", 5),
        ("{type: token_usage, max_total_tokens: 5}", "token_usage", "max_total", 5),
        ("{type: token_usage, max_input_tokens: 5}", "token_usage", "max_input", 5),
        ("{type: token_usage, max_output_tokens: 5}", "token_usage", "max_output", 5),
        ("{type: execution-metrics, max_llm_calls: 5}", "execution_metrics", "max_llm_calls", 5),
        ("{type: skill-trigger, skill: commit}", "skill_trigger-commit", "skill", "commit"),
        ("{type: tool-trajectory, minimums: {a: 2}}", "tool_trajectory", "minimums", {"a": 2}),
        (
            "{type: field-accuracy, fields: [{path: total}], aggregation: minimum}",
            "field_accuracy",
            "aggregation",
            "minimum",
        ),
    ],
)
def test_evaluator__is_read_in_every_spelling(
    tmp_path: Path, written: str, name: str, field: str, value: object
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": TRACED + written})

    test = suites.only_test(tmp_path)

    assert [(evaluator.name, getattr(evaluator, field)) for evaluator in test.evaluators] == [
        (name, value)
    ]
