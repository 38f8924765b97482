"""Declarations that are valid and hardly meant: told as warnings, and as faults under `strict`."""

from pathlib import Path

import pytest

from tests.support import suites


def test_judge__fields_that_have_no_effect_on_it(tmp_path: Path) -> None:
    judge = (
        "{type: llm_judge, prompt: '{{answer}}', max_steps: 3, temperature: 0.5, target: default}"
    )
    suite = f"name: suite\ntests:\n  - {{id: a, input: q, assert: [{judge}]}}\n"
    suites.write(tmp_path, {"EVAL.yaml": suite, ".agentv/targets.yaml": suites.TARGETS})

    found = [str(warning) for warning in suites.load_valid(tmp_path).warnings]

    assert found == [
        "EVAL.yaml:3:32: `temperature` has no effect: the judge `default` is not a model; remove "
        "it, or name a model",
        "EVAL.yaml:3:83: `max_steps` limits the steps of AgentV's own judge; here a judge is one "
        "call; remove it",
    ]


@pytest.mark.parametrize("field", ["temperature: 3", "max_steps: 0"])
def test_judge__a_temperature_or_limit_out_of_range_is_refused(tmp_path: Path, field: str) -> None:
    judge = f"{{type: rubric, rubrics: [x], {field}}}"
    suites.write(
        tmp_path, {"EVAL.yaml": f"name: suite\ntests: [{{id: a, input: q, assert: [{judge}]}}]\n"}
    )

    (error,) = suites.errors(tmp_path)
    assert field.split(":")[0] in error


def test_unknown_field__that_resembles_nothing_is_one_warning_a_file(tmp_path: Path) -> None:
    test = (
        "{{id: {}, input: q, criteria: c, colour: red, x-own: 1, tags: [a], metadata: {{any: 1}}}}"
    )
    evaluator = (
        "{type: contains, value: x, x-own: 1, tags: [a], metadata: {any: 1}, config: {any: 1}}"
    )
    rows = '{"id": "c", "input": "q", "criteria": "c", "colour": "red"}\n'
    text = f"name: suite\ntests:\n  - {test.format('a')}\n  - {test.format('b')}\n  - rows.jsonl\n"
    text += f"assert: [{evaluator}, {{type: llm_judge}}]\n"
    suites.write(tmp_path, {"EVAL.yaml": text, "rows.jsonl": rows + rows.replace('"c"', '"d"', 1)})

    expected = [
        f"{place}: the field `colour` of this test is unknown and has no effect; remove it, or write "
        "it in `metadata`, or with `x-` in front of its name"
        for place in ("EVAL.yaml:3:36", "rows.jsonl:1:1")
    ]
    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == expected
    assert suites.errors(tmp_path, strict=True) == expected


@pytest.mark.parametrize(
    ("evaluator", "warning"),
    [
        ('{type: contains, value: "a\\n"}', "`value` ends with a line break"),
        ('{type: icontains-any, value: [b, "a\\n"]}', "`value` ends with a line break"),
        ('{type: regex, value: "a\\n"}', "`value` ends with a line break"),
        ("{type: regex, value: /30 days/i}", "`value` begins and ends with slashes"),
        ("{type: regex, value: /30 days/, negate: true}", "`value` begins and ends with slashes"),
        ('{type: regex, value: "a\\n", flags: x}', ""),
        ('{type: equals, value: "a\\n"}', ""),
        ("{type: regex, value: '\\/api/'}", ""),
        ("{type: regex, value: a/b}", ""),
    ],
)
def test_text__that_hardly_any_output_has(tmp_path: Path, evaluator: str, warning: str) -> None:
    text = f"name: suite\ntests:\n  - {{id: a, input: q, assert: [{evaluator}]}}\n"
    suites.write(tmp_path, {"EVAL.yaml": text})

    found = [each.problem for each in suites.load_valid(tmp_path).warnings]
    assert [problem.startswith(warning) for problem in found] == [True] * bool(warning)


def test_text__of_a_block_that_keeps_its_line_break(tmp_path: Path) -> None:
    value = "    - type: contains\n      value: |\n        30 days\n"
    text = f"name: suite\ntests:\n- id: a\n  input: q\n  assert:\n{value}"
    suites.write(tmp_path, {"EVAL.yaml": text})

    expected = [
        "EVAL.yaml:7:14: `value` ends with a line break, which the output must have there, too; "
        "begin a block with `|-` instead of `|`"
    ]
    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == expected
    assert suites.errors(tmp_path, strict=True) == expected
