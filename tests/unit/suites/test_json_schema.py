"""The JSON Schema: valid, up to date, accepting what the loader accepts, and refusing the mistakes that
a schema can know."""

import json
from pathlib import Path

import jsonschema
import pytest

from agentevals_action import evaluators, templating
from agentevals_action.cli.commands.schema import SCHEMAS
from agentevals_action.suites.documents.yaml_reader import read_yaml
from agentevals_action.suites.json_schema import suite_schema, write_schema
from tests.support import suites

SCHEMA = suite_schema()
ROOT = Path(__file__).resolve().parents[3]
CONFORMANCE = ROOT.parent / "shared/conformance"
TEST = "tests:\n  - id: a\n    input: q\n    criteria: c\n"
DIALECTS = sorted((ROOT / "tests/data/dialects").glob("*.yaml"))


def errors(text: str) -> list[str]:
    data = read_yaml(text.encode(), "EVAL.yaml").data
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(data)]


def test_schema__is_valid_draft_7_with_non_empty_lists() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    # Editors refuse a whole schema with an empty list.
    assert not any(f'"{word}": []' in json.dumps(SCHEMA) for word in ("allOf", "anyOf", "required"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema__file_is_up_to_date(name: str) -> None:
    made = SCHEMAS[name]()
    jsonschema.Draft7Validator.check_schema(made)
    text = write_schema(made)
    file = templating.packaged_folder("schemas") / f"{name}.schema.json"

    assert json.loads(text) == made
    assert file.read_text("utf-8") == text + "\n", (
        f"run `agentevals-action schema {name} > schemas/{name}.schema.json`"
    )


def test_schema__files_are_short() -> None:
    """They are read in differences."""
    files = templating.packaged_folder("schemas").iterdir()
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) < 3_100


def test_schema__has_every_type_of_evaluator() -> None:
    types = SCHEMA["definitions"]["Evaluator"]["properties"]["type"]["anyOf"][0]["enum"]

    assert {name.replace("-", "_") for name in types} == set(evaluators.EVALUATORS.all_spellings)


@pytest.mark.parametrize("file", DIALECTS, ids=lambda file: file.stem)
def test_schema__accepts_the_dialects(tmp_path: Path, file: Path) -> None:
    text = file.read_text("utf-8")
    suites.write(tmp_path, {".agentv/targets.yaml": suites.TARGETS, "EVAL.yaml": text})

    assert errors(text) == []
    suites.load_valid(tmp_path)


def test_schema__accepts_types_of_the_repository_and_what_holds_anchors(tmp_path: Path) -> None:
    text = (
        "x-defaults: {count: &count {type: word-count, least: 3}}\n"
        "tests:\n  - {id: a, input: q, assert: [*count]}\n"
    )
    program = {".agentv/assertions/word-count.ts": "", ".agentv/targets.yaml": suites.TARGETS}
    suites.write(tmp_path, program | {"EVAL.yaml": text})

    assert errors(text) == []
    suites.load_valid(tmp_path)

    # Without `x-`, AgentV reads it: neither may ignore it.
    suites.write(tmp_path, {"EVAL.yaml": text.removeprefix("x-")})
    assert len(errors(text.removeprefix("x-"))) == len(suites.errors(tmp_path)) == 1


def test_schema__accepts_the_suites_of_this_repository_and_of_conformance() -> None:
    files = [*ROOT.glob("examples/**/EVAL.yaml"), *CONFORMANCE.glob("**/*EVAL.yaml")]

    assert len(files) >= 3
    for path in (*files, *CONFORMANCE.glob("**/*.eval.yaml")):
        assert errors(path.read_text("utf-8")) == [], path


@pytest.mark.parametrize(
    "text",
    [
        TEST + "    assert: [{type: ../contains, value: x}]",
        TEST + "    assert: [{value: x}]",
        TEST + "    assert: ['']",
        TEST
        + "    assert: [{type: composite, evaluators: [{type: composite, assert: [{type: regex}]}]}]",
        TEST + "    assert: [{type: contains}]",
        TEST + "    assert: [{type: code-grader}]",
        TEST + "    assertions: [{type: contains-any, value: x}]",
        TEST + "    assert: [{type: is_json, weight: -1}]",
        TEST + "    rubrics: [{id: x}]",
        TEST + "    execution: {evaluators: {}}",
        TEST + "    execution: {timeout_seconds: 5000}",
        TEST + "    turns: []",
        TEST + "    colour: red",
        TEST + "name: x",
        "tests: []",
        "tests: [3]",
        "tests: [{id: a}]",
        "tests: [{id: a, input: []}]",
        "tests: [{id: a, input: [{role: bot, content: x}]}]",
        "tests: [{id: a, input: [{role: user, content: [{type: txt, value: x}]}]}]",
    ],
)
def test_schema__refuses(text: str) -> None:
    assert errors(text)
