"""Evaluators of traces and fields in suites: every spelling, and faults at their place, also those
that only a test can show."""

from pathlib import Path

import pytest

from tests.support import suites

HEAD = "name: suite\ntests:\n  - id: a\n    input: q\n    expected_output: {total: 5, name: Acme}\n    assert:\n      - "
LINE = "7:9"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS})


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
    root: Path, written: str, name: str, field: str, value: object
) -> None:
    suites.write(root, {"EVAL.yaml": HEAD + written})

    test = suites.only_test(root)

    assert [
        (evaluator.name, getattr(evaluator.options, field)) for evaluator in test.evaluators
    ] == [(name, value)]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "{type: tool_trajectory, name: t}",
            "7:9: this evaluator: it has neither `expected` nor `minimums`, so it checks nothing; "
            "write the calls under `expected`, or counts under `minimums`",
        ),
        (
            "{type: tool_trajectory, minimums: {a: 0}}",
            "7:47: `minimums.a` is the number 0; write a number that is 1 or more",
        ),
        (
            "{type: tool_trajectory, mode: orderly, expected: [{tool: a}]}",
            "7:39: `mode` is the text 'orderly'; write `any_order`, `in_order`, `exact`, `superset` or `subset`",
        ),
        (
            "{type: tool_trajectory, expected: [{tool: a, args: some}]}",
            "7:60: `expected[0].args` is the text 'some'; write `any` or an object",
        ),
        (
            "{type: tool_trajectory, expected: [{args: any}]}",
            "7:44: `expected[0].tool` is missing; every item needs it",
        ),
        (
            "{type: tool_trajectory, expected: [{tool: a, args: {n: 1}, args_match: equal}]}",
            "7:80: `expected[0].args_match` is the text 'equal'; write `exact`, `superset`, `subset` or `ignore` or a list",
        ),
        (
            "{type: execution_metrics}",
            "7:9: this evaluator: it has no limit, so it checks nothing; write one, such as `max_tokens` or `max_duration_ms`",
        ),
        ("{type: latency}", "7:9: `threshold` is missing; every evaluator needs it"),
        ("{type: latency, max_ms: -1}", "7:33: `max_ms` is the number -1; write a number over 0"),
        (
            "{type: field_accuracy, fields: [{path: total, tolerance: 1}]}",
            "7:66: `fields[0].tolerance`: it has an effect with `match: numeric_tolerance` only; "
            "write that, or remove it",
        ),
        (
            "{type: field_accuracy, name: f, fields: [{path: total}, {path: items.0}]}",
            "7:72: `f`: the field `items.0` is not in `expected_output`; write the expected value there",
        ),
        (
            "{type: field_accuracy, name: f, fields: [{path: name, match: date}]}",
            '7:57: `f`: the field `name` is "Acme" in `expected_output`, which is not a valid date; '
            "write it as YYYY-MM-DD, or add its format to `formats`",
        ),
    ],
)
def test_fault__is_told_at_its_place(root: Path, written: str, said: str) -> None:
    suites.write(root, {"EVAL.yaml": HEAD + written})

    assert suites.errors(root) == [f"EVAL.yaml:{said}"]


def test_unknown_field__of_an_item_is_an_error(root: Path) -> None:
    suites.write(
        root, {"EVAL.yaml": HEAD + "{type: tool_trajectory, expected: [{tool: a, arg: {n: 1}}]}"}
    )

    assert suites.errors(root) == [
        "EVAL.yaml:7:54: the field `arg` of this expectation is unknown; did you mean `args`?"
    ]


def test_fault__of_the_suites_evaluator_is_told_at_the_test_that_does_not_suit_it(
    root: Path,
) -> None:
    text = (
        "name: suite\nassert: [{type: field_accuracy, name: f, fields: [{path: total}]}]\ntests:\n"
        "  - {id: a, input: q, expected_output: {total: 1}}\n"
        "  - {id: b, input: q, expected_output: {sum: 1}}\n"
        "  - {id: c, input: q, expected_output: none}\n"
        "  - {id: d, input: q}\n"
        "  - {id: e, input: q, criteria: c, execution: {skip_defaults: true}}\n"
    )
    suites.write(root, {"EVAL.yaml": text})

    assert suites.errors(root) == [
        "EVAL.yaml:5:5: `f`: the field `total` is not in `expected_output`; write the expected value there",
        "EVAL.yaml:6:5: `f`: `expected_output` has no JSON to compare fields with: there is no JSON object with `total`; "
        "write an object there",
        "EVAL.yaml:7:5: `f`: `expected_output` has no JSON to compare fields with: there is none; write an object there",
    ]


def test_fault__of_an_evaluator_inside_another_is_told_at_its_place(root: Path) -> None:
    suites.write(
        root,
        {
            "EVAL.yaml": HEAD
            + "{type: composite, name: c, evaluators: [{type: field_accuracy, name: f, fields: [{path: sum}]}]}"
        },
    )

    assert suites.errors(root) == [
        "EVAL.yaml:7:97: `f`: the field `sum` is not in `expected_output`; write the expected value there"
    ]


def test_fault__of_a_row_is_told_at_its_line(root: Path) -> None:
    assertion = "assert: [{type: field_accuracy, name: f, fields: [{path: total}]}]"
    rows = '{"id": "a", "input": "q", "expected_output": {"total": 1}}\n{"id": "b", "input": "q", "expected_output": {"sum": 1}}\n'
    suites.write(
        root, {"EVAL.yaml": f"name: suite\n{assertion}\ntests: rows.jsonl\n", "rows.jsonl": rows}
    )

    (said,) = suites.errors(root)

    assert said.startswith("rows.jsonl:2:1: `f`: the field `total` is not in `expected_output`; ")
