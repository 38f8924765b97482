"""`is_json` with a JSON Schema: invalid schemas, limits, and the files that it reads. Mismatches are
in `data/evaluator_scores.yaml`."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.suite import Suite
from agentevals_action.system.files.paths import Folder
from agentevals_action.validation import json_schema, patterns
from tests.support import cases, suites

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}


def misses(schema: Any, answer: Any) -> tuple[str, ...]:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    result = cases.run("is_json", {"schema": schema}, cases.case(text))
    assert result.error is None, result.error
    assert result.score == (0 if result.misses else 1)
    return result.misses


def test_schema__names_mismatches_up_to_a_limit() -> None:
    assert len(misses({"items": {"type": "string"}}, list(range(100)))) == 10


@pytest.mark.parametrize(
    ("schema", "steps", "problem"),
    [
        ({"type": "strin"}, ("schema", "type"), "'strin' is not valid under any of the given"),
        ({"properties": {"a": {"minimum": "x"}}}, ("schema", "properties", "a", "minimum"), "'x' is not of type 'number'"),
        ({"pattern": "("}, ("schema", "pattern"), '"(" is not a valid regular expression'),
        ({"requird": ["a"]}, ("schema", "requird"), "the keyword is unknown; did you mean `required`?"),
        ({"additionalItems": False}, ("schema", "additionalItems"), "this draft does not check the keyword; name its draft"),
        ({"dependencies": {"a": ["b"]}}, ("schema", "dependencies"), "this draft does not check the keyword"),
        ({"prefixItems": [{}], "$schema": "http://json-schema.org/draft-07/schema#"}, ("schema", "prefixItems"), "this draft does not check"),
        ({"Required": ["a"]}, ("schema", "Required"), "did you mean `required`?"),
        ({"properties": {"a": {"min": 1}}}, ("schema", "properties", "a", "min"), "did you mean `minimum`?"),
        ({"properties": {"requird": {"minLenght": 1}}}, ("schema", "properties", "requird", "minLenght"), "did you mean `minLength`?"),
        ({"pattern": r"\p{Nothing}", **DRAFT_4}, ("schema", "pattern"), "is not a valid regular expression"),
        ({"patternProperties": {"(": {}}, **DRAFT_4}, ("schema", "patternProperties"), '"(" is not a valid regular expression'),
        ({"$ref": "#/components/a", "components": {"a": {"requird": ["a"], "not": {"$ref": "#"}}}}, ("schema", "components", "a", "requird"), "did you mean `required`?"),
        ({"$ref": "#/components/a", "components": {"a": {"pattern": "("}}, **DRAFT_4}, ("schema", "components", "a", "pattern"), "is not a valid regular expression"),
        ({"anyOf": [{"pattern": "a" * 50_001}]}, ("schema", "anyOf", 0, "pattern"), "is longer than 50,000 characters"),
        ({"$schema": "https://example.com/own"}, ("schema", "$schema"), "is unknown; write https"),
        ({"$ref": "https://example.com/other.json"}, ("schema", "$ref"), '"https://example.com/other.json" leads to nothing in the schema'),
        ({"properties": {"a": {"$ref": "other.json#/$defs/a"}}}, ("schema", "properties", "a", "$ref"), '"other.json#/$defs/a" leads'),
        ({"items": {"$ref": "#/$defs/none"}}, ("schema", "items", "$ref"), '"#/$defs/none" leads to nothing'),
        ({"title": "x", "items": {"$ref": "#/title"}}, ("schema", "items", "$ref"), '"#/title" leads to what is no JSON Schema'),
        ({"enum": [{"type": "text"}], "items": {"$ref": "#/enum/0"}}, ("schema", "items", "$ref"), '"#/enum/0" leads to what is no JSON Schema'),
        (None, ("schema",), "it is empty"),
        (7, ("schema",), "write an object or a text"),
        ("gone.json", ("schema",), "there is no file 'gone.json'"),
        ("../outside.json", ("schema",), "leaves the repository"),
    ],
)  # fmt: skip
def test_schema__that_is_not_valid_is_an_error_of_the_suite(
    tmp_path: Path, schema: Any, steps: tuple[str | int, ...], problem: str
) -> None:
    (error,) = cases.errors("is_json", {"schema": schema}, tmp_path)
    assert error.steps == steps
    assert problem in str(error)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not an object"),
        ("[" * 1000, "is not valid JSON: it is nested"),
        ('{"properties": {"a": {"type": 1}}}', "is not valid at $.properties.a.type"),
        ('{"$ref": "b.json"}', 'is not valid at $.$ref: "b.json" leads to nothing'),
        ('{"a": "' + "x" * 1_000_001 + '"}', "longer than 1,000,000 bytes"),
    ],
)
def test_schema_file__that_is_not_valid(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "a.json").write_text(content)
    (error,) = cases.errors("is_json", {"schema": "a.json"}, tmp_path)
    assert error.steps == ("schema",)
    assert problem in str(error)


def test_schema_file__is_named_for_selection_and_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "a.json").write_text('{"type": "object"}')
    folder = Folder(tmp_path, tmp_path / "evals")
    made = cases.evaluator("is_json", {"schema": "/schemas/a.json"}, tmp_path, "evals")
    assert tuple(made.named_files(folder)) == (NamedFile("schemas/a.json", "JSON schema"),)
    assert made.own_fields() == {"json_schema": "/schemas/a.json"}
    assert cases.evaluator("is_json", {}).own_fields() == {}


#: A tree that two alternatives describe: each level doubles the checks.
TREE = {
    "anyOf": [
        {"required": ["b"], "properties": {"a": {"$ref": "#"}}},
        {"required": ["c"], "properties": {"a": {"$ref": "#"}}},
    ]
}
DRAFT_2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"items": {"type": "integer"}}, json.dumps([0] * 1_000)),
        (TREE, '{"a":' * 100 + "1" + "}" * 100),
        ({**DRAFT_2020, **TREE}, '{"a":' * 100 + "1" + "}" * 100),
        ({"contains": {"const": 1}, "unevaluatedItems": True}, json.dumps([0] * 2_000)),
    ],
    ids=["items", "references", "references to the root", "items of which each is compared"],
)
def test_schema__that_needs_too_many_checks_is_an_evaluator_error(
    schema: Any, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schema, "MAX_CHECKS", 1_000)
    result = cases.run("is_json", {"schema": schema}, cases.case(answer), negate=True)
    assert result.score is None
    assert "the output is too large for the schema" in str(result.error)


def test_schema__of_a_large_answer_is_checked() -> None:
    schema = {"items": {"type": "object", "required": ["id"]}, "uniqueItems": True}
    answer = [{"id": number} for number in range(20_000)]
    assert misses(schema, answer) == ()
    assert misses(schema, [*answer, {}]) == ("$[20000]: 'id' is a required property",)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "(a|aa)+$"}, "a" * 60 + "b"),
        ({"patternProperties": {"(a|aa)+$": {}}}, {"a" * 60 + "b": 1}),
        (
            {"patternProperties": {"(a|aa)+$": {}}, "additionalProperties": False},
            {"a" * 60 + "b": 1},
        ),
    ],
)
def test_schema__with_a_runaway_pattern_is_an_evaluator_error(
    schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.1)
    result = cases.run("is_json", {"schema": schema}, cases.case(json.dumps(value)))
    assert result.score is None
    assert "ran for over 0.1 s" in str(result.error)


def load(folder: Path, fields: str) -> Any:
    text = f"name: suite\ntests:\n  - id: t\n    input: q\n    assert:\n      - {fields}\n"
    return suites.load(suites.write(folder, {"EVAL.yaml": text}))


def test_suite__value_is_another_name_of_schema(tmp_path: Path) -> None:
    loaded = load(tmp_path, "{type: is-json, value: {type: object}}")
    assert isinstance(loaded, Suite), loaded
    (test,) = loaded.tests
    assert test.evaluators[0].name == "is_json"
    assert test.evaluators[0].own_fields() == {"json_schema": {"type": "object"}}


def test_suite__the_schema_file_is_part_of_the_suite_and_of_the_grading(tmp_path: Path) -> None:
    def grading(schema: str) -> str:
        (tmp_path / "a.json").write_text(schema)
        loaded = load(tmp_path, "{type: is-json, schema: a.json}")
        assert isinstance(loaded, Suite), loaded
        assert "a.json" in {file.path for file in loaded.files}
        (test,) = loaded.tests
        return Fingerprints().of(loaded, test).grading

    assert grading('{"type": "object"}') == grading('{"type": "object"}')
    assert grading('{"type": "object"}') != grading('{"type": "array"}')
