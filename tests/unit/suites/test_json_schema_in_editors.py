"""The JSON Schema as editors use it: which fields and values they offer where, for every type of
evaluator there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentevals_action import evaluators, templating
from agentevals_action.evaluators.base import EvaluatorOptions
from agentevals_action.model.validation.file_model import fields_of as file_fields
from agentevals_action.suites import dialects
from agentevals_action.suites.files.positions import plain
from agentevals_action.suites.files.yaml_reader import read_yaml
from agentevals_action.suites.models.schema_models import Evaluator
from tests.support import suites

MADE = suites.schema()
VALIDATOR = jsonschema.Draft7Validator(MADE)
CATALOG = evaluators.EVALUATORS_BY_NAME
COMMON = set(file_fields(Evaluator)) - {"target"}

every_name = pytest.mark.parametrize(
    "name",
    [spelled for name in CATALOG for spelled in dict.fromkeys((name, name.replace("_", "-")))],
)


def resolved(node: Any) -> Any:
    while "$ref" in node:
        node = MADE["definitions"][node["$ref"].rpartition("/")[2]]
    return node


def holds(node: Any, value: Any) -> bool:
    return bool(
        jsonschema.Draft7Validator({**node, "definitions": MADE["definitions"]}).is_valid(value)
    )


def applying(node: Any, value: Any) -> Iterator[Any]:
    """The parts of a schema that speak of a value, conditions decided."""
    node = resolved(node)
    yield node
    for part in node.get("allOf", ()):
        yield from applying(part, value)
    if "if" in node:
        branch = node.get("then" if holds(node["if"], value) else "else")
        if branch is not None:
            yield from applying(branch, value)


def offered(node: Any, value: Any) -> dict[str, Any]:
    """The fields that an editor proposes inside a value."""
    fields = (item for part in applying(node, value) for item in part.get("properties", {}).items())
    return {
        name: field
        for name, field in fields
        if not (field.get("doNotSuggest") or field.get("deprecationMessage"))
    }


def own_fields(options: type[EvaluatorOptions]) -> set[str]:
    return set(file_fields(options)) | ({"target"} if options.asks_judge else set())


@every_name
def test_evaluator__offers_the_fields_of_its_type_and_of_no_other(name: str) -> None:
    fields = offered(MADE["definitions"]["Evaluator"], {"type": name})

    assert set(fields) == COMMON | own_fields(CATALOG[dialects.type_key(name)])


def test_evaluator__without_a_type_offers_the_common_fields() -> None:
    for value in ({}, {"name": "x"}, None):
        assert set(offered(MADE["definitions"]["Evaluator"], value)) == COMMON
    assert set(offered(MADE["definitions"]["Evaluator"], {"type": 3})) == COMMON


def test_evaluator__types_are_offered_once_each_with_what_they_are_for() -> None:
    offers = MADE["definitions"]["Evaluator"]["properties"]["type"]["anyOf"]

    told = {offer["const"]: offer["description"] for offer in offers if "const" in offer}
    assert set(told) == {options.type for options in evaluators.EVALUATORS.values()}
    assert all(told.values())


@every_name
def test_evaluator__every_spelling_of_a_type_is_accepted_and_chooses_one_branch(name: str) -> None:
    node = MADE["definitions"]["Evaluator"]

    assert holds(node["properties"]["type"], name)
    assert [
        part["then"]["$ref"]
        for part in node["allOf"]
        if "$ref" in part["then"] and holds(part["if"], {"type": name})
    ] == [f"#/definitions/{CATALOG[dialects.type_key(name)].type}"]


@pytest.mark.parametrize("name", ["contians", "Contains", "contains_", "xcontains", ""])
def test_evaluator__another_type_is_refused(name: str) -> None:
    assert not holds(MADE["definitions"]["Evaluator"]["properties"]["type"], name)


def test_test__offers_what_today_s_format_has() -> None:
    assert set(offered(MADE["definitions"]["Test"], {})) == set(dialects.TEST.fields) | {
        "assert",
        "assertions",
    }
    assert set(offered(MADE, {})) == set(dialects.SUITE.fields) | {
        "assert",
        "assertions",
        "$schema",
    }


def test_message__offers_its_fields_and_roles() -> None:
    content = {"type": "object", "properties": {"input": MADE["properties"]["input"]}}
    message = offered(content["properties"]["input"], {"role": "user"})  # type: ignore[index]  # the object is made above

    assert set(message) == set(dialects.MESSAGE.fields)
    assert message["role"]["enum"] == ["system", "user", "assistant", "tool"]


def fields_of(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        if isinstance(properties := node.get("properties"), dict):
            yield from properties.items()
        for value in node.values():
            yield from fields_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from fields_of(value)


def test_earlier_spellings__say_in_an_editor_what_to_write() -> None:
    found = {name: field for name, field in fields_of(MADE) if name in dialects.EARLIER}

    assert found.keys() == dialects.EARLIER
    assert all(
        re.fullmatch(r"Write `\w+`\.", field["deprecationMessage"]) and field["doNotSuggest"]
        for field in found.values()
    )


AGENTV = """\
execution: {target: default}
input: You are kind.
assertions:
  - is polite
  - type: assert-set
    threshold: 0.5
    assertions: [names the order, {type: icontains-any, value: [order]}, {type: llm-grader, prompt: "{{output}}"}]
tests:
  - id: one
    criteria: is right
    input: {role: user, content: [{type: text, text: hello}]}
    expected_output: [{role: assistant, content: hi, tool_calls: [{tool: find, input: {a: 1}, duration_ms: 3}]}]
    execution: {skip_defaults: true}
    assertions:
      - {type: script, command: ./judge.sh}
      - {type: code-grader, command: [./judge.sh], target: {max_calls: 3}}
      - {type: rubrics, criteria: [{outcome: one, score_ranges: {0: bad, 10: good}}, {outcome: two, required: true, min_score: 0.5}]}
      - {type: latency, max_ms: 10}
      - {type: cost, max_usd: 1}
      - {type: token-usage, max_total_tokens: 10}
      - {type: tool-trajectory, minimums: {find: 1}}
      - {type: skill-trigger, skill: x}
      - {type: execution-metrics, max_tool_calls: 3}
      - {type: is-json, required: true, min_score: 0.9, negate: true}
"""


def test_agentv__its_own_spellings_are_accepted_by_schema_and_loader(tmp_path: Path) -> None:
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, "agentv/EVAL.yaml": AGENTV})

    assert [
        error.message
        for error in VALIDATOR.iter_errors(plain(read_yaml(AGENTV.encode(), "EVAL.yaml")))
    ] == []
    assert [
        warning.problem for warning in suites.load_valid(tmp_path, "agentv/EVAL.yaml").warnings
    ] == ["this suite has no `name`"]


def test_suites_of_this_repository__are_accepted() -> None:
    files = sorted((templating.packaged_folder("examples")).rglob("*EVAL.yaml"))

    assert len(files) >= 3
    for path in files:
        data = plain(read_yaml(path.read_bytes(), path.name))
        assert [error.message for error in VALIDATOR.iter_errors(data)] == [], path
