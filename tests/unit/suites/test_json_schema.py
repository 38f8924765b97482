"""The JSON Schema: valid, up to date, described, accepting what the loader accepts and refusing
what a schema can refuse."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentevals_action import templating
from agentevals_action.suites.files.positions import plain
from agentevals_action.suites.files.yaml_reader import read_yaml
from tests.support import suites

MADE = suites.schema()
CONFORMANCE = Path(__file__).resolve().parents[3] / "../shared/conformance"


def errors(text: str) -> list[jsonschema.ValidationError]:
    data = plain(read_yaml(text.encode(), "EVAL.yaml"))
    return list(jsonschema.Draft7Validator(MADE).iter_errors(data))


def test_schema__is_valid_draft_7() -> None:
    jsonschema.Draft7Validator.check_schema(MADE)


def test_schema__file_is_up_to_date() -> None:
    written = (templating.packaged_folder("schemas") / "eval.schema.json").read_text(
        encoding="utf-8"
    )

    assert written == json.dumps(MADE, indent=2, ensure_ascii=False) + "\n", (
        "run `agentevals-action schema > schemas/eval.schema.json`"
    )


def described(node: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    if isinstance(node, dict):
        # What stands in a condition repeats fields that are described elsewhere.
        for key, value in node.items():
            if key in ("properties", "patternProperties") and not path.endswith(("if", "then")):
                yield from (
                    (f"{path}/{name}", "description" in field or "$ref" in field)
                    for name, field in value.items()
                )
            yield from described(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from described(value, f"{path}/{index}")


def test_schema__every_field_is_described() -> None:
    told = dict(described(MADE))

    assert len(told) > 60
    assert [place for place, known in told.items() if not known] == []


@pytest.mark.skipif(
    not CONFORMANCE.is_dir(), reason="the conformance suites are not beside this checkout"
)
def test_schema__accepts_every_conformance_suite() -> None:
    seen = 0
    for path in sorted(CONFORMANCE.glob("*/*EVAL.yaml")) + sorted(
        CONFORMANCE.glob("*/*.eval.yaml")
    ):
        assert errors(path.read_text(encoding="utf-8")) == [], path
        seen += 1
    assert seen >= 11


@pytest.mark.parametrize("kind", ["today", "earlier", "agentv", "mixed"])
def test_schema__accepts_the_dialects(kind: str) -> None:
    from tests.unit.suites import test_dialects as dialects

    texts = {
        "today": dialects.TODAY,
        "earlier": dialects.EARLIER,
        "agentv": dialects.AGENTV,
        "mixed": dialects.MIXED,
    }
    assert errors(texts[kind]) == []


TEST = "tests:\n  - id: a\n    input: q\n    criteria: c\n"
BAD = {
    "unknown type": TEST + "    assert: [{type: contians, value: x}]",
    "no type": TEST + "    assert: [{value: x}]",
    "empty plain string": TEST + "    assert: ['']",
    "composite without evaluators": TEST + "    assert: [{type: composite}]",
    "composite of none": TEST + "    assert: [{type: assert-set, assertions: []}]",
    "bad evaluator in a composite": TEST
    + "    assert: [{type: composite, evaluators: [{type: composite, assert: [{type: contians}]}]}]",
    "unknown aggregator": TEST
    + "    assert: [{type: composite, evaluators: [x], aggregator: {type: average}}]",
    "negative weight in an aggregator": TEST
    + "    assert: [{type: composite, evaluators: [x], aggregator: {weights: {a: -1}}}]",
    "fraction of 0": TEST + "    assert: [{type: assert-set, assertions: [x], threshold: 0}]",
    "operand missing": TEST + "    assert: [{type: contains}]",
    "operand missing under another name": TEST + "    assert: [{type: code-grader}]",
    "operand of wrong type": TEST + "    assertions: [{type: contains-any, value: x}]",
    "negative weight": TEST + "    assert: [{type: is_json, weight: -1}]",
    "required over 1": TEST + "    assert: [{type: is_json, required: 2}]",
    "required yes": TEST + "    assert: [{type: is_json, required: yes}]",
    "empty rubrics": TEST + "    rubrics: []",
    "criterion without outcome": TEST + "    rubrics: [{id: x}]",
    "evaluators no list": TEST + "    execution: {evaluators: {}}",
    "timeout": TEST + "    execution: {timeout_seconds: 5000}",
    "empty tests": "tests: []",
    "tests of wrong type": "tests: 3",
    "test of wrong type": "tests: [3]",
    "no id": "tests: [{input: q}]",
    "no input": "tests: [{id: a}]",
    "input of wrong type": "tests: [{id: a, input: 3}]",
    "empty input": "tests: [{id: a, input: []}]",
    "role": "tests: [{id: a, input: [{role: bot, content: x}]}]",
    "message without content": "tests: [{id: a, input_messages: [{role: user}]}]",
    "block": "tests: [{id: a, input: [{role: user, content: [{type: txt, value: x}]}]}]",
    "block of wrong type": "tests: [{id: a, input: [{role: user, content: [{type: file, value: 3}]}]}]",
    "bad message under a role": "tests: [{id: a, input: {role: user, content: 3}}]",
    "feature of a test": TEST + "    turns: []",
    "feature of the suite": TEST + "threshold: 0.5",
    "feature of execution": TEST + "execution: {targets: [a]}",
    "short name": TEST + "name: x",
    "metadata": TEST + "metadata: x",
}


@pytest.mark.parametrize("case", BAD)
def test_schema__refuses(case: str) -> None:
    assert errors(BAD[case])


@pytest.mark.parametrize(
    "evaluators",
    [
        "[is polite, {type: is_json}, is short]",
        "[{type: composite, evaluators: [is polite, {type: assert-set, assertions: [{type: is-json}], threshold: 0.5}]}]",
        "[{type: composite, assert: [{type: is_json}], aggregator: {type: safety-gate, required: [is_json], weights: {is_json: 2}}}]",
    ],
)
def test_schema__accepts_evaluators(evaluators: str) -> None:
    assert errors(TEST + f"    assert: {evaluators}") == []


def test_schema__unknown_fields_are_errors() -> None:
    assert len(errors(TEST + "    colour: red\nshape: round\nx-mine: 1\nlicense: MIT")) == 2
