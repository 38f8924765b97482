"""The specification's list of bad input (section 1), item by item: one line each with path, line,
column, problem and advice."""

from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.suites.files.diagnostics import Unreadable
from agentevals_action.suites.files.positions import plain
from agentevals_action.suites.files.yaml_reader import read_yaml
from tests.support import suites

HEAD = "name: suite\ntests:\n  - id: a\n    input: q\n"
EVALUATOR = HEAD + "    assert:\n      - "
EXPECTED = HEAD + "    expected_output: {total: 3, items: [{sku: x}]}\n    assert:\n      - "
WHOLE = "name: suite\ntests: [{id: a, input: q, criteria: c}]\n"
ROWS = "name: suite\ntests: rows.jsonl\n"
ROW = '{"id": "a", "input": "q", "criteria": "c"}\n'
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 9)
)

Files = Mapping[str, str | bytes]


def suite(text: str | bytes) -> Files:
    return {"EVAL.yaml": text}


def rows(*lines: str | bytes) -> Files:
    return {
        "EVAL.yaml": ROWS,
        "rows.jsonl": b"".join(
            line if isinstance(line, bytes) else line.encode() for line in lines
        ),
    }


CASES: dict[str, tuple[Files, str]] = {
    "unknown evaluator type": (
        suite(EVALUATOR + "{type: contians, value: a}"),
        "EVAL.yaml:6:16: the evaluator type `contians` is unknown; did you mean `contains`?",
    ),
    "unknown evaluator type inside a composite": (
        suite(EVALUATOR + "{type: composite, evaluators: [{type: contians, value: x}]}"),
        "EVAL.yaml:6:47: the evaluator type `contians` is unknown; did you mean `contains`?",
    ),
    "unknown target": (
        suite(HEAD + "    criteria: c\n    execution: {target: defualt}"),
        "EVAL.yaml:6:25: there is no target `defualt`; did you mean `default`?",
    ),
    "unknown target of a judge": (
        suite(EVALUATOR + "{type: llm_judge, prompt: x, target: nobody}"),
        "EVAL.yaml:6:46: there is no target `nobody`; write `default` or `judge`",
    ),
    "unknown target of a judge inside a composite": (
        suite(
            EVALUATOR
            + "{type: composite, evaluators: [{type: llm_judge, prompt: x, target: jugde}]}"
        ),
        "EVAL.yaml:6:77: there is no target `jugde`; did you mean `judge`?",
    ),
    "duplicate id": (
        suite(HEAD + "    criteria: c\n  - {id: a, input: r, criteria: c}"),
        "EVAL.yaml:6:5: the id `a` is taken by line 3; give each test its own",
    ),
    "duplicate id over files": (
        {
            "EVAL.yaml": "name: suite\ntests:\n  - {id: a, input: q, criteria: c}\n  - rows.jsonl\n",
            "rows.jsonl": "\n" + ROW,
        },
        "rows.jsonl:2:1: the id `a` is taken by EVAL.yaml:3:5; give each test its own",
    ),
    "missing file of tests": (
        suite("name: suite\ntests: [no.jsonl]"),
        "EVAL.yaml:2:9: there is no file 'no.jsonl' (looked for no.jsonl); name a file of tests, from the folder of this one",
    ),
    "missing prompt": (
        suite(EVALUATOR + "{type: llm_judge, prompt: ./no.md}"),
        "EVAL.yaml:6:35: `prompt`: there is no file './no.md' (looked for no.md); name a file that exists, from the folder of this one",
    ),
    "missing file of a message": (
        suite(
            "name: suite\ntests: [{id: a, criteria: c, input: [{role: user, content: [{type: file, value: no.txt}]}]}]"
        ),
        "EVAL.yaml:2:81: `input[0].content[0].value`: there is no file 'no.txt' (looked for no.txt); write the path of a file, from the folder of this one",
    ),
    "path that leaves the repository": (
        suite("name: suite\ntests: [../x.yaml]"),
        "EVAL.yaml:2:9: '../x.yaml' leaves the repository; name a file of tests, from the folder of this one",
    ),
    "wrong type": (
        suite(EVALUATOR + "{type: contains, value: 3}"),
        'EVAL.yaml:6:33: `value` is the number 3; write a text, in quotes: "3"',
    ),
    "wrong type in a row": (
        rows(ROW, '{"id": "b", "input": "q", "criteria": 3}'),
        'rows.jsonl:2:1: `criteria` is the number 3; write a text, in quotes: "3"',
    ),
    "value out of range": (
        suite(EVALUATOR + "{type: is_json, weight: -1}"),
        "EVAL.yaml:6:33: `weight` is the number -1; write a number that is 0 or more",
    ),
    "weight whose sum with another is no number": (
        suite(EVALUATOR + "{type: is_json, weight: 1.0e+308}"),
        "EVAL.yaml:6:33: `weight` is the number 1e+308; write a number that is 1000000 or less",
    ),
    "weight of a composite's child out of range": (
        suite(
            EVALUATOR
            + "{type: composite, aggregator: {weights: {a: 1.0e+308}}, evaluators: [{name: a, type: is_json}]}"
        ),
        "EVAL.yaml:6:53: `aggregator.weights.a` is the number 1e+308; write a number that is 1000000 or less",
    ),
    "weight of a criterion out of range": (
        suite(EVALUATOR + "{type: rubric, rubrics: [{outcome: polite, weight: 1.0e+308}]}"),
        "EVAL.yaml:6:60: `rubrics[0].weight` is the number 1e+308; write a number that is 1000000 or less",
    ),
    "time limit out of range": (
        suite(WHOLE + "execution: {timeout_seconds: 3601}"),
        "EVAL.yaml:3:30: `execution.timeout_seconds` is the number 3601; write a number that is 3600 or less",
    ),
    "bad regular expression": (
        suite(EVALUATOR + "{type: regex, value: '(a'}"),
        'EVAL.yaml:6:30: `value`: "(a" is not a valid regular expression: missing ) at position 2; correct it',
    ),
    "bad flag of a regular expression": (
        suite(EVALUATOR + "{type: regex, value: a, flags: g}"),
        "EVAL.yaml:6:40: `flags`: 'g' is not a valid flag; write one or more of i, m, s, x",
    ),
    "unknown variable of a prompt": (
        suite(EVALUATOR + "{type: llm_judge, prompt: 'Is {{anwser}} right?'}"),
        "EVAL.yaml:6:35: `prompt`: the prompt has the unknown variable {{anwser}}; did you mean {{answer}}?",
    ),
    "unknown variable of a prompt's file": (
        {"EVAL.yaml": EVALUATOR + "{type: rubric, rubrics: [x], prompt: p.md}", "p.md": "{{zzz}}"},
        "EVAL.yaml:6:46: `prompt`: the prompt has the unknown variable {{zzz}}; known are answer, criteria, expected_messages, "
        "expected_output, file_changes, input, input_messages, metadata, note, output, output_messages, question, reference_answer, "
        "rubrics, tool_calls",
    ),
    "duplicate YAML key": (
        suite("name: suite\ntests:\n  - id: a\n    input: q\n    criteria: c\n    input: r\n"),
        "EVAL.yaml:6:5: the key 'input' is repeated (first on line 4); keep one of them",
    ),
    "duplicate key of a row": (
        rows('{"id": "a", "input": "q", "id": "c"}'),
        "rows.jsonl:1:1: the key 'id' is repeated; keep one of them",
    ),
    "anchors that expand past 10 MB": (
        suite(BOMB + WHOLE),
        "EVAL.yaml:7:10: the aliases of this file expand to more than 10 MB; write out what is needed",
    ),
    "not UTF-8": (
        suite(b"name: suite\ndescription: \xff"),
        "EVAL.yaml:2:14: this is not UTF-8; save the file as UTF-8",
    ),
    "row that is not UTF-8": (
        rows(ROW, b'{"id": "b\xff"}\n'),
        "rows.jsonl:2:10: this is not UTF-8; save the file as UTF-8",
    ),
    "no valid YAML": (
        suite("name: suite\ntests: ]"),
        "EVAL.yaml:2:8: this is not valid YAML: did not find expected node content (while parsing a block node); correct the indentation, or put "
        "the text in quotes",
    ),
    "no valid JSON": (
        rows('{"id": "a" 1}'),
        "rows.jsonl:1:12: this is not valid JSON: Expecting ',' delimiter; correct the row; each row is one JSON object",
    ),
    "NaN in a row": (
        rows('{"id": "a", "input": {"n": NaN}, "criteria": "c"}'),
        "rows.jsonl:1:1: `NaN` is not JSON; write a finite number, null or a text",
    ),
    "empty tests": (
        suite("name: suite\ntests: []"),
        "EVAL.yaml:2:8: `tests` is an empty list; write a list of tests, or the path of a YAML or JSONL file",
    ),
    "tests of nothing": (
        suite("name: suite\ntests:\n"),
        "EVAL.yaml:2:7: `tests` is empty; write a list of tests, or the path of a YAML or JSONL file",
    ),
    "file without a test": (
        rows("\n\n"),
        "rows.jsonl:1:1: this file contains no test; write one JSON object a row",
    ),
    "unknown name in `weights`": (
        suite(
            EVALUATOR
            + "{type: composite, aggregator: {weights: {helpfull: 2}}, evaluators: [{name: helpful, type: is_json}]}"
        ),
        "EVAL.yaml:6:60: `aggregator.weights.helpfull`: there is no evaluator `helpfull` in it; did you mean `helpful`?",
    ),
    "unknown name in `aggregator.required`": (
        suite(
            EVALUATOR
            + "{type: composite, aggregator: {type: safety_gate, required: [sfe]}, evaluators: [{name: safe, type: is_json}]}"
        ),
        "EVAL.yaml:6:70: `aggregator.required[0]`: there is no evaluator `sfe` in it; did you mean `safe`?",
    ),
    "unknown aggregator": (
        suite(
            EVALUATOR
            + "{type: composite, aggregator: {type: minimun}, evaluators: [{type: is_json}]}"
        ),
        "EVAL.yaml:6:46: `aggregator.type`: there is no aggregator 'minimun'; did you mean `minimum`?",
    ),
    "composite of nothing": (
        suite(EVALUATOR + "{type: composite, evaluators: []}"),
        "EVAL.yaml:6:39: `evaluators` is an empty list; write at least one item",
    ),
    "field path absent from `expected_output`": (
        suite(EXPECTED + "{type: field_accuracy, fields: [{path: total}, {path: totl}]}"),
        "EVAL.yaml:7:63: `field_accuracy`: the field `totl` is not in `expected_output`; write the expected value there",
    ),
    "field path absent from a list of `expected_output`": (
        suite(EXPECTED + "{type: field_accuracy, fields: [{path: 'items[1].sku'}]}"),
        "EVAL.yaml:7:48: `field_accuracy`: the field `items[1].sku` is not in `expected_output`; write the expected value there",
    ),
    "field path absent, inside a composite": (
        suite(
            EXPECTED
            + "{type: composite, evaluators: [{type: field_accuracy, fields: [{path: totl}]}]}"
        ),
        "EVAL.yaml:7:79: `field_accuracy`: the field `totl` is not in `expected_output`; write the expected value there",
    ),
    "field path absent, of the suite's evaluator": (
        suite(
            "name: suite\nassert: [{type: field_accuracy, fields: [{path: totl}]}]\ntests: [{id: a, input: q, expected_output: {total: 3}}]"
        ),
        "EVAL.yaml:3:9: `field_accuracy`: the field `totl` is not in `expected_output`; write the expected value there",
    ),
    "fields with nothing to compare": (
        suite(EVALUATOR + "{type: field_accuracy, fields: [{path: total}]}"),
        "EVAL.yaml:6:9: `field_accuracy`: `expected_output` has no JSON to compare fields with: there is none; write an object there",
    ),
    "unknown match": (
        suite(EXPECTED + "{type: field_accuracy, fields: [{path: total, match: exakt}]}"),
        "EVAL.yaml:7:62: `fields[0].match` is the text 'exakt'; write `exact`, `contains`, `regex`, `numeric_tolerance` or `date`",
    ),
    "unknown aggregation": (
        suite(EXPECTED + "{type: field_accuracy, aggregation: avg, fields: [{path: total}]}"),
        "EVAL.yaml:7:45: `aggregation` is the text 'avg'; write `weighted_average`, `minimum` or `all_or_nothing`",
    ),
    "tool_trajectory with neither `expected` nor `minimums`": (
        suite(EVALUATOR + "{type: tool_trajectory, mode: exact}"),
        "EVAL.yaml:6:9: this evaluator: it has neither `expected` nor `minimums`, so it checks nothing; write the calls under `expected`, "
        "or counts under `minimums`",
    ),
    "unknown mode": (
        suite(EVALUATOR + "{type: tool_trajectory, mode: inorder, expected: [{tool: a}]}"),
        "EVAL.yaml:6:39: `mode` is the text 'inorder'; write `any_order`, `in_order`, `exact`, `superset` or `subset`",
    ),
    "unknown match of arguments": (
        suite(EVALUATOR + "{type: tool_trajectory, expected: [{tool: a, args_match: exct}]}"),
        "EVAL.yaml:6:66: `expected[0].args_match` is the text 'exct'; write `exact`, `superset`, `subset` or `ignore` or a list",
    ),
    "limits without a limit": (
        suite(EVALUATOR + "{type: execution_metrics}"),
        "EVAL.yaml:6:9: this evaluator: it has no limit, so it checks nothing; write one, such as `max_tokens` or `max_duration_ms`",
    ),
    "operand missing": (
        suite(EVALUATOR + "{type: latency}"),
        "EVAL.yaml:6:9: `threshold` is missing; every evaluator needs it",
    ),
    "unknown operator": (
        suite(HEAD + "    rubrics: [{outcome: x, operator: correctnes}]"),
        "EVAL.yaml:5:38: `rubrics[0].operator` is the text 'correctnes'; write `correctness` or `contradiction`",
    ),
    "unknown role": (
        suite("name: suite\ntests: [{id: a, criteria: c, input: [{role: bot, content: x}]}]"),
        "EVAL.yaml:2:45: `input[0].role` is the text 'bot'; write `system`, `user`, `assistant` or `tool`",
    ),
    "unknown block": (
        suite(
            "name: suite\ntests: [{id: a, criteria: c, input: [{role: user, content: [{type: txt, value: x}]}]}]"
        ),
        "EVAL.yaml:2:68: `input[0].content[0].type` is the text 'txt'; write `text`, `file`, `image` or `json`",
    ),
    "unknown provider": (
        {
            "EVAL.yaml": WHOLE,
            ".agentv/targets.yaml": "targets: [{name: default, provider: mokc, responses: []}]",
        },
        ".agentv/targets.yaml:1:37: the provider `mokc` is unknown; did you mean `mock`?",
    ),
    "include": (
        suite(EVALUATOR + "include: x.yaml"),
        "EVAL.yaml:6:9: `include` of AgentV is not supported; write the evaluators out",
    ),
    "include of the suite": (
        suite(WHOLE + "include: x.yaml"),
        "EVAL.yaml:3:1: `include` of AgentV is not supported; name a file of tests in `tests`, and write evaluators out",
    ),
    "threshold of the suite": (
        suite(WHOLE + "threshold: 0.5"),
        "EVAL.yaml:3:1: `threshold` of AgentV is not supported; mark evaluators as `required`, or use the input `min-pass-rate`",
    ),
    "threshold of a test": (
        suite(HEAD + "    criteria: c\n    threshold: 0.5"),
        "EVAL.yaml:6:5: `threshold` of AgentV is not supported; mark evaluators as `required`, or use the input `min-pass-rate`",
    ),
    "repeat": (
        suite(HEAD + "    criteria: c\n    repeat: 3"),
        "EVAL.yaml:6:5: `repeat` of AgentV is not supported; run every test several times with the input `samples`",
    ),
    "trials": (
        suite(WHOLE + "execution: {trials: {count: 3}}"),
        "EVAL.yaml:3:13: `trials` of AgentV is not supported; run every test several times with the input `samples`",
    ),
    "turns": (
        suite(HEAD + "    criteria: c\n    turns: []"),
        "EVAL.yaml:6:5: `turns` of AgentV is not supported; write the conversation as messages of `input`",
    ),
    "imports": (
        suite(WHOLE + "imports: [x]"),
        "EVAL.yaml:3:1: `imports` of AgentV is not supported; name the files in `tests`",
    ),
    "execution.targets": (
        suite(WHOLE + "execution: {targets: [a]}"),
        "EVAL.yaml:3:13: `targets` of AgentV is not supported; name one `target`; run the suite again with the input `target` for another",
    ),
    "depends_on": (
        suite(HEAD + "    criteria: c\n    depends_on: [b]"),
        "EVAL.yaml:6:5: `depends_on` of AgentV is not supported; write tests that stand on their own",
    ),
    "default_test": (
        suite(WHOLE + "default_test: {}"),
        "EVAL.yaml:3:1: `default_test` of AgentV is not supported; write evaluators and `execution` at the root of the suite",
    ),
    "preprocessors": (
        suite(EVALUATOR + "{type: is_json, preprocessors: [x]}"),
        "EVAL.yaml:6:25: `preprocessors` of AgentV is not supported; let the agent return the text that is scored",
    ),
    "folder without tests in `tests`": (
        suite("name: suite\ntests: [./]"),
        "EVAL.yaml:2:9: no folder in . has a case.yaml; name a file of tests, from the folder of this one",
    ),
    "glob that matches nothing": (
        suite("name: suite\ntests: '*.jsonl'"),
        "EVAL.yaml:2:8: no file matches '*.jsonl'; name a file of tests, from the folder of this one",
    ),
    "negated type": (
        suite(EVALUATOR + "{type: not-contains, value: x}"),
        "EVAL.yaml:6:16: the evaluator type `not-contains` of AgentV is not supported; write `type: contains` with `negate: true`",
    ),
    "llm-rubric with `value`": (
        suite(EVALUATOR + "{type: llm-rubric, value: polite}"),
        "EVAL.yaml:6:28: `llm-rubric` with a `value` is not supported; write it as `type: rubric` with `rubrics`",
    ),
    "docker environment": (
        suite(WHOLE + "environment: {docker: x}"),
        "EVAL.yaml:3:1: `environment` of AgentV is not supported; run the agent through a target of provider `cli`",
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # A folder within a folder, so that `..` leads out of the repository and not out of the
    # temporary one.
    return suites.write(tmp_path / "repository", {".agentv/targets.yaml": suites.TARGETS})


@pytest.mark.parametrize("case", CASES)
def test_bad_input__is_one_line_with_place_problem_and_advice(root: Path, case: str) -> None:
    files, said = CASES[case]
    suites.write(root, files)

    assert suites.errors(root) == [said]


#: What a schema cannot know: other files, the targets, what stands elsewhere in the file, languages
#: of their own.
BEYOND_A_SCHEMA = {
    "unknown target",
    "unknown target of a judge",
    "unknown target of a judge inside a composite",
    "unknown provider",
    "duplicate id",
    "duplicate id over files",
    "missing file of tests",
    "missing prompt",
    "missing file of a message",
    "path that leaves the repository",
    "folder without tests in `tests`",
    "glob that matches nothing",
    "wrong type in a row",
    "row that is not UTF-8",
    "duplicate key of a row",
    "no valid JSON",
    "NaN in a row",
    "file without a test",
    "bad regular expression",
    "unknown variable of a prompt",
    "unknown variable of a prompt's file",
    "unknown name in `weights`",
    "unknown name in `aggregator.required`",
    "field path absent from `expected_output`",
    "field path absent from a list of `expected_output`",
    "field path absent, inside a composite",
    "field path absent, of the suite's evaluator",
    "fields with nothing to compare",
}
SCHEMA = jsonschema.Draft7Validator(suites.schema())


@pytest.mark.parametrize("case", CASES)
def test_bad_input__is_refused_by_the_schema_where_a_schema_can_tell(case: str) -> None:
    text = CASES[case][0]["EVAL.yaml"]
    try:
        data = plain(read_yaml(text if isinstance(text, bytes) else text.encode(), "EVAL.yaml"))
    except Unreadable:
        assert case not in BEYOND_A_SCHEMA
        return

    assert SCHEMA.is_valid(data) is (case in BEYOND_A_SCHEMA)


def test_custom_type__is_refused_with_the_types_there_are(root: Path) -> None:
    (said,) = suites.errors(suites.write(root, suite(EVALUATOR + "{type: my_check}")))

    place, _, told = said.partition(": ")
    problem, _, advice = told.partition("; ")
    assert (place, problem) == ("EVAL.yaml:6:16", "the evaluator type `my_check` is unknown")
    assert advice.startswith("write one of `code_judge`, ")
    for options in EVALUATORS.values():
        assert f"`{options.type}`" in advice


def test_faults__of_all_files_are_told_together_in_their_order(root: Path) -> None:
    text = (
        HEAD
        + "    criteria: 3\n  - rows.jsonl\n  - {id: b, input: q, assert: [{type: contians}]}\nthreshold: 1\n"
    )
    suites.write(root, {"EVAL.yaml": text, "rows.jsonl": ROW.replace('"a"', '"c"') + '{"id": 3}\n'})

    assert [said.split(": ")[0] for said in suites.errors(root)] == [
        "EVAL.yaml:5:15",
        "EVAL.yaml:7:39",
        "EVAL.yaml:8:1",
        "rows.jsonl:2:1",
        "rows.jsonl:2:1",
    ]
