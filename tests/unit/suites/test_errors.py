"""Every kind of bad input: one line, with its place and what to write instead."""

from pathlib import Path

import pytest

from agentevals_action.evaluators import EVALUATORS as EVALUATOR_TYPES
from tests.support import suites

HEAD = "name: suite\ntests:\n  - id: a\n    input: q\n"
EVALUATORS = HEAD + "    assert:\n      - "
*_NAMES, _LAST = (f"`{name}`" for name in sorted(EVALUATOR_TYPES))
KNOWN_TYPES = f"write one of {', '.join(_NAMES)} or {_LAST}"

CASES: dict[str, tuple[str | bytes, str]] = {
    "unknown type": (
        EVALUATORS + "{type: contians, value: a}",
        "6:16: the evaluator type `contians` is unknown; did you mean `contains`?",
    ),
    "custom type": (
        EVALUATORS + "{type: my-own}",
        f"6:16: the evaluator type `my-own` is unknown; {KNOWN_TYPES}",
    ),
    "no type": (EVALUATORS + "{value: a}", f"6:9: this evaluator has no `type`; {KNOWN_TYPES}"),
    "type of wrong type": (
        EVALUATORS + "{type: 3}",
        "6:16: `type` is the number 3; write the type of an evaluator, as `contains`",
    ),
    "negated type": (
        EVALUATORS + "{type: not-contains, value: a}",
        "6:16: the evaluator type `not-contains` of AgentV is not supported; write `type: contains` with `negate: true`",
    ),
    "llm-rubric with value": (
        EVALUATORS + "{type: llm-rubric, value: polite}",
        "6:28: `llm-rubric` with a `value` is not supported; write it as `type: rubric` with `rubrics`",
    ),
    "empty plain string": (
        EVALUATORS + "''",
        "6:9: `rubrics[0]`: the text is empty; write the requirement on the answer",
    ),
    "plain string that is a type": (
        EVALUATORS + "is polite\n      - is-json",
        "7:9: `is-json` alone is the type of an evaluator and not a criterion; write an object with a `type`",
    ),
    "included evaluators": (
        EVALUATORS + "include: x.yaml",
        "6:9: `include` of AgentV is not supported; write the evaluators out",
    ),
    "evaluator of wrong type": (
        EVALUATORS + "3",
        "6:9: an evaluator is the number 3; write an object with a `type`",
    ),
    "evaluators of wrong type": (
        HEAD + "    assert: {type: contains}",
        "5:13: `assert` is an object; write a list of evaluators",
    ),
    "empty evaluators": (
        HEAD + "    assert:",
        "5:12: `assert` is empty; write a list of evaluators",
    ),
    "operand missing": (
        EVALUATORS + "{type: contains}",
        "6:9: `value` is missing; every evaluator needs it",
    ),
    "operand of wrong type": (
        EVALUATORS + "{type: contains, value: 3}",
        '6:33: `value` is the number 3; write a text, in quotes: "3"',
    ),
    "operand no list": (
        EVALUATORS + "{type: contains-any, value: a}",
        "6:37: `value` is the text 'a'; write a list",
    ),
    "weight below 0": (
        EVALUATORS + "{type: is_json, weight: -1}",
        "6:33: `weight` is the number -1; write a number that is 0 or more",
    ),
    "weight of wrong type": (
        EVALUATORS + "{type: is_json, weight: heavy}",
        "6:33: `weight` is the text 'heavy'; write a number",
    ),
    "required 0": (
        EVALUATORS + "{type: is_json, required: 0}",
        "6:35: `required` is the number 0; write `true` or `false` or a number over 0",
    ),
    "required over 1": (
        EVALUATORS + "{type: is_json, required: 1.1}",
        "6:35: `required` is the number 1.1; write `true` or `false` or a number that is 1 or less",
    ),
    "required yes": (
        EVALUATORS + "{type: is_json, required: yes}",
        "6:35: `required` is the text 'yes'; write `true` or `false` or a number",
    ),
    "required empty": (
        EVALUATORS + "{type: is_json, required: }",
        "6:35: `required`: it is empty; write `true`, a number over 0 and up to 1, or leave it out",
    ),
    "min_score over 1": (
        EVALUATORS + "{type: is_json, min_score: 7}",
        "6:36: `min_score` is the number 7; write a number that is 1 or less",
    ),
    "two thresholds": (
        EVALUATORS + "{type: is_json, required: 0.5, min_score: 0.7}",
        "6:40: `required` and `min_score` are both thresholds and differ; keep one of them",
    ),
    "negate of wrong type": (
        EVALUATORS + "{type: is_json, negate: 1}",
        "6:33: `negate` is the number 1; write `true` or `false`",
    ),
    "negated gate inside": (
        EVALUATORS + "{type: rubric, rubrics: [{outcome: x, required: true}], negate: true}",
        "6:65: an evaluator with a gate inside cannot be negated; remove `negate`, or the gate",
    ),
    "threshold on an evaluator": (
        EVALUATORS + "{type: is_json, threshold: 0.7}",
        "6:25: `threshold` is not known to this type of evaluator; write `required: 0.7` for a gate at 0.7",
    ),
    "proxy of a code judge": (
        EVALUATORS + "{type: code_judge, script: [x], target: {max_calls: -1}}",
        "6:61: `target.max_calls` is the number -1; write a number that is 0 or more",
    ),
    "proxy of a code judge by a name": (
        EVALUATORS + "{type: code_judge, script: [x], target: judge}",
        "6:49: `target`: a code judge has a proxy here, not the name of a target; write `true`, or an object with `max_calls`",
    ),
    "empty proxy of a code judge": (
        EVALUATORS + "{type: code_judge, script: [x], target: }",
        "6:49: `target`: it is empty; write `true`, or an object with `max_calls`",
    ),
    "unknown judge": (
        EVALUATORS + "{type: llm_judge, target: jugde}",
        "6:35: there is no target `jugde`; did you mean `judge`?",
    ),
    "rubrics of wrong type": (
        HEAD + "    rubrics: polite",
        "5:14: `rubrics` is the text 'polite'; write a list",
    ),
    "criterion without outcome": (
        HEAD + "    rubrics: [{id: x}]",
        "5:15: `rubrics[0].outcome` is missing; every item needs it",
    ),
    "unknown target": (
        HEAD + "    criteria: c\n    execution: {target: defualt}",
        "6:25: there is no target `defualt`; did you mean `default`?",
    ),
    "unknown target of the suite": (
        "name: suite\nexecution: {target: nobody}\ntests: [{id: a, input: q, criteria: c}]",
        "2:21: there is no target `nobody`; write `default` or `judge`",
    ),
    "timeout out of range": (
        HEAD + "    criteria: c\n    execution: {timeout_seconds: 3601}",
        "6:34: `execution.timeout_seconds` is the number 3601; write a number that is 3600 or less",
    ),
    "timeout of the suite out of range": (
        "name: suite\nexecution: {timeout_seconds: 0}\ntests: [{id: a, input: q, criteria: c}]",
        "2:30: `execution.timeout_seconds` is the number 0; write a number that is 1 or more",
    ),
    "duplicate id": (
        HEAD + "    criteria: c\n  - id: a\n    input: r\n    criteria: c\n",
        "6:5: the id `a` is taken by line 3; give each test its own",
    ),
    "no id": (
        "name: suite\ntests:\n  - input: q\n    criteria: c\n",
        "3:5: `id` is missing; every test needs it",
    ),
    "id of wrong type": (
        "name: suite\ntests:\n  - id: 3\n    input: q\n    criteria: c\n",
        '3:9: `id` is the number 3; write a text, in quotes: "3"',
    ),
    "no input": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n",
        "3:5: `input` is missing; every test needs it",
    ),
    "input of wrong type": (
        "name: suite\ntests:\n  - id: a\n    input: 3\n    criteria: c\n",
        "4:12: `input` is the number 3; write a text, an object, or a list of messages",
    ),
    "empty input": (
        "name: suite\ntests:\n  - id: a\n    input: []\n    criteria: c\n",
        "4:12: `input` is an empty list; write a text, an object, or a list of messages",
    ),
    "criteria of wrong type": (
        HEAD + "    criteria: [c]",
        "5:15: `criteria` is a list; write a text",
    ),
    "nothing to grade by": (
        HEAD,
        "3:5: the test `a` has no evaluator; write `criteria`, `rubrics` or evaluators",
    ),
    "test of wrong type": (
        "name: suite\ntests: [3]",
        "2:9: a test is the number 3; write an object with `id` and `input`",
    ),
    "empty tests": (
        "name: suite\ntests: []",
        "2:8: `tests` is an empty list; write a list of tests, or the path of a YAML or JSONL file",
    ),
    "no tests": (
        "name: suite",
        "1:1: `tests` is missing; write a list of tests, or put them into EVAL.jsonl next to this file",
    ),
    "missing file of tests": (
        "name: suite\ntests: ./no.yaml",
        "2:8: there is no file './no.yaml' (looked for no.yaml); name a file of tests, from the folder of this one",
    ),
    "glob of tests": (
        "name: suite\ntests: ['*.jsonl']",
        "2:9: no file matches '*.jsonl'; name a file of tests, from the folder of this one",
    ),
    "glob of tests that goes back": (
        "name: suite\ntests: ['*/../*.jsonl']",
        "2:9: '*/../*.jsonl' has `..` after a `*`, or `**` more than once; name a file of tests, from the folder of this one",
    ),
    "folder of tests": (
        "name: suite\ntests: ['./']",
        "2:9: no folder in . has a case.yaml; name a file of tests, from the folder of this one",
    ),
    "other file of tests": (
        "name: suite\ntests: [EVAL.txt]",
        "2:9: EVAL.txt is neither YAML nor JSONL; name a file that ends in .yaml, .yml or .jsonl",
    ),
    "suite of wrong type": (
        "- a",
        "1:1: this suite is a list; write an object with `name` and `tests`",
    ),
    "empty suite": ("", "1:1: this suite is empty; write an object with `name` and `tests`"),
    "name": (
        "name: My Suite\ntests: [{id: a, input: q, criteria: c}]",
        "1:7: `name`: 'My Suite' is not a valid name; write lower case letters, digits and hyphens, a letter first, as `code-review`",
    ),
    "short name": (
        "name: s\ntests: [{id: a, input: q, criteria: c}]",
        "1:7: `name` is the text 's'; write a text of 2 characters or more",
    ),
    "long description": (
        f"name: suite\ndescription: {'x' * 2049}\ntests: [{{id: a, input: q, criteria: c}}]",
        f"2:14: `description` is the text '{'x' * 58}…; write a text of at most 2048 characters",
    ),
    "metadata of wrong type": (
        "name: suite\nmetadata: 3\ntests: [{id: a, input: q, criteria: c}]",
        "2:11: `metadata` is the number 3; write an object",
    ),
    "spellings that differ": (
        HEAD + "    criteria: c\n    expected_outcome: d",
        "6:5: `criteria` and `expected_outcome` are the same field and differ; keep one of them",
    ),
    "inputs that differ": (
        HEAD + "    criteria: c\n    input_messages: [{role: user, content: other}]",
        "6:5: `input` and `input_messages` are the same field and differ; keep one of them",
    ),
    "unknown role": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: bot, content: x}]",
        "5:20: `input[0].role` is the text 'bot'; write `system`, `user`, `assistant` or `tool`",
    ),
    "message without content": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: user}]",
        "5:13: `input[0]`: this message has no `content`; write a text or a list of blocks",
    ),
    "message of wrong type": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [hi]",
        "5:13: `input[0]` is the text 'hi'; write a message, as `{role: user, content: …}`",
    ),
    "unknown block": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: user, content: [{type: txt, value: x}]}]",
        "5:43: `input[0].content[0].type` is the text 'txt'; write `text`, `file`, `image` or `json`",
    ),
    "arguments that are no JSON": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: assistant, tool_calls: [{function: {name: f, arguments: '{'}}]}]",
        "5:44: `input[0].tool_calls[0]`: a tool call's function.arguments is a string of JSON; correct it",
    ),
    "missing file block": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: user, content: [{type: file, value: no.txt}]}]",
        "5:56: `input[0].content[0].value`: there is no file 'no.txt' (looked for no.txt); write the path of a file, from the folder of this one",
    ),
    "missing image": (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n    input: [{role: user, content: [{type: image, value: no.png}]}]",
        "5:57: `input[0].content[0].value`: there is no file 'no.png' (looked for no.png); write a path, or base64 data of an image",
    ),
    "bad expression": (
        EVALUATORS + "{type: regex, value: '('}",
        '6:30: `value`: "(" is not a valid regular expression: missing ) at position 1; correct it',
    ),
    "missing prompt": (
        EVALUATORS + "{type: llm_judge, prompt: ./no.md}",
        "6:35: `prompt`: there is no file './no.md' (looked for no.md); name a file that exists, from the folder of this one",
    ),
    "prompt outside": (
        EVALUATORS + "{type: llm_judge, prompt: ../no.md}",
        "6:35: `prompt`: '../no.md' leaves the repository; name a file of the repository",
    ),
    "duplicate key": (
        "name: suite\nname: other\ntests: []",
        "2:1: the key 'name' is repeated (first on line 1); keep one of them",
    ),
    "not UTF-8": (
        b"name: suite\ndescription: \xff",
        "2:14: this is not UTF-8; save the file as UTF-8",
    ),
}

REFUSED = [
    "threshold: 0.5",
    "repeat: 3",
    "trials: {count: 3}",
    "turns: []",
    "imports: [x]",
    "include: x",
    "depends_on: [b]",
    "default_test: {}",
    "preprocessors: []",
    "environment: {docker: x}",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # A folder within a folder, so that `..` leads out of the repository and not out of the
    # temporary one.
    return suites.write(
        tmp_path / "repository", {".agentv/targets.yaml": suites.TARGETS, "EVAL.txt": ""}
    )


@pytest.mark.parametrize("case", CASES)
def test_fault__place_problem_and_advice(root: Path, case: str) -> None:
    text, said = CASES[case]
    suites.write(root, {"EVAL.yaml": text})

    assert suites.errors(root) == [f"EVAL.yaml:{said}"]


@pytest.mark.parametrize("field", REFUSED)
@pytest.mark.parametrize("level", ["suite", "test", "execution"])
def test_refused_by_name__feature_that_could_change_a_verdict(
    root: Path, field: str, level: str
) -> None:
    name = field.partition(":")[0]
    texts = {
        "suite": (f"{field}\nname: suite\ntests: [{{id: a, input: q, criteria: c}}]", "1:1"),
        "test": (HEAD + f"    criteria: c\n    {field}", "6:5"),
        "execution": (HEAD + f"    criteria: c\n    execution:\n      {field}", "7:7"),
    }
    text, place = texts[level]
    suites.write(root, {"EVAL.yaml": text})

    (said,) = suites.errors(root)

    assert said.startswith(f"EVAL.yaml:{place}: `{name}` ")
    assert "is not supported" in said
    assert "; " in said


def test_faults__all_of_a_file_at_once(root: Path) -> None:
    text = (
        "name: Suite\nthreshold: 1\nexecution: {target: nobody}\nassert: [{type: contians}]\ntests:\n"
        "  - {id: a, input: q}\n  - {id: 3, input: 4, criteria: 5}\n  - {id: b, input: q, assert: [{type: contains}]}\n"
    )
    suites.write(root, {"EVAL.yaml": text})

    lines = [said.split(":")[1] for said in suites.errors(root)]

    assert lines == ["1", "2", "3", "4", "6", "7", "7", "7", "8"]


def test_unknown_field__is_an_error_with_the_nearest(root: Path) -> None:
    suites.write(
        root, {"EVAL.yaml": HEAD + "    criteria: c\n    expected_ouput: x\n    colour: red"}
    )

    assert suites.errors(root) == [
        "EVAL.yaml:6:5: the field `expected_ouput` of this test is unknown; did you mean `expected_output`?",
        "EVAL.yaml:7:5: the field `colour` of this test is unknown; remove it, or put it in `metadata`; "
        "if nothing is to read it, write `ignored-fields: [test.colour]` in .agentevals.yaml",
    ]


def test_unknown_field__of_a_criterion_is_told(root: Path) -> None:
    suites.write(root, {"EVAL.yaml": HEAD + "    rubrics: [{outcome: x, requird: true}]"})

    assert suites.errors(root) == [
        "EVAL.yaml:5:28: the field `requird` of this criterion is unknown; did you mean `required`?"
    ]


def test_fault__is_one_line_whatever_a_name_holds(root: Path) -> None:
    suites.write(root, {"EVAL.yaml": EVALUATORS + '{type: "my\\n::error::\\e[31m"}'})

    assert suites.errors(root) == [
        f"EVAL.yaml:6:16: the evaluator type `my ::error::\ufffd[31m` is unknown; {KNOWN_TYPES}"
    ]


def test_strict__warnings_are_faults(root: Path) -> None:
    suites.write(root, {"EVAL.yaml": HEAD + "    criteria: c\n    expected_ouput: x"})

    assert suites.errors(root, strict=True) == [
        "EVAL.yaml:6:5: the field `expected_ouput` of this test is unknown; did you mean `expected_output`?"
    ]


def test_missing_suite__is_a_fault(root: Path) -> None:
    assert suites.errors(root, "no/EVAL.yaml") == [
        "no/EVAL.yaml:1:1: there is no such suite; name a file of the repository"
    ]
