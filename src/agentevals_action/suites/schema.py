"""The JSON Schema (draft-07) of suites, made from what files are checked against; all three dialects, for editors.

It says what a schema can say: names, types, ranges, types of evaluators, features that are refused by name. What needs the repository
(paths, targets, ids that must differ) is left to the loader. Unknown fields are warnings, so they are no errors here either.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agentevals_action import messages
from agentevals_action.suites import dialects
from agentevals_action.suites.dialects import Shape
from agentevals_action.suites.entries import (
    BlockEntry,
    EvaluatorEntry,
    MessageEntry,
    SuiteEntry,
    SuiteExecution,
    TestEntry,
    TestExecution,
    ToolCallEntry,
)
from agentevals_action.suites.grading import Types

Schema = dict[str, Any]

_EVALUATORS: Schema = {"type": "array", "items": {"$ref": "#/definitions/Evaluator"}, "description": "What grades the answer."}
# Conditions rather than choices: an editor then tells what is wrong inside, not that no choice fits.
_CONTENT: Schema = {
    "type": ["string", "object", "array"],
    "minItems": 1,
    "items": {"$ref": "#/definitions/Message"},
    "if": {"type": "object", "properties": {"role": {"enum": list(messages.ROLES)}}, "required": ["role"]},
    "then": {"$ref": "#/definitions/Message"},
}
_BLOCKS: Schema = {"type": ["string", "object", "array", "null"], "items": {"$ref": "#/definitions/Block"}}
_TESTS: Schema = {
    "type": ["string", "array"],
    "minLength": 1,
    "minItems": 1,
    "items": {"type": ["string", "object"], "minLength": 1, "if": {"type": "object"}, "then": {"$ref": "#/definitions/Test"}},
}


def schema(types: Types) -> Schema:
    """The schema of a suite whose evaluators may be of these types (by every name, with `_`)."""
    definitions: Schema = {}
    root = _object(SuiteEntry, dialects.SUITE, definitions)
    root["properties"]["tests"].update(_TESTS)
    root["properties"]["input"].update(_CONTENT)
    root["properties"]["$schema"] = {"type": "string", "description": "Where this schema is, for editors."}
    root["properties"]["execution"] = _execution(SuiteExecution, dialects.SUITE_EXECUTION, definitions)
    _declare_evaluators(root, dialects.SUITE)
    definitions["Test"] = _test(definitions)
    definitions["Message"] = _message(definitions)
    definitions["Block"] = _block(definitions)
    definitions["ToolCall"] = _object(ToolCallEntry, None, definitions)
    definitions["Evaluator"] = _evaluator(types, definitions)
    definitions["Test"]["properties"]["rubrics"].update(
        {"type": "array", "minItems": 1, "items": definitions["rubric"]["properties"]["rubrics"]["items"]}
    )
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "EVAL.yaml",
        **root,
        "definitions": dict(sorted(definitions.items())),
    }


def _test(definitions: Schema) -> Schema:
    test = _object(TestEntry, dialects.TEST, definitions)
    for key in ("input", "expected_output"):
        test["properties"][key].update(_CONTENT)
    test["properties"]["execution"] = _execution(TestExecution, dialects.TEST_EXECUTION, definitions)
    _declare_evaluators(test, dialects.TEST)
    return test


def _message(definitions: Schema) -> Schema:
    message = _object(MessageEntry, dialects.MESSAGE, definitions)
    message["properties"]["content"].update(_BLOCKS)
    message["properties"]["tool_calls"]["items"] = {"$ref": "#/definitions/ToolCall"}
    message["anyOf"] = [{"required": ["content"]}, {"required": ["tool_calls"]}]
    return message


def _block(definitions: Schema) -> Schema:
    block = _object(BlockEntry, dialects.BLOCK, definitions)
    block["if"] = {"properties": {"type": {"enum": ["text", "file", "image"]}}}
    block["then"] = {"properties": {"value": {"type": "string"}}}
    return block


def _execution(model: type[BaseModel], shape: Shape, definitions: Schema) -> Schema:
    execution = _object(model, shape, definitions)
    for name in dialects.EVALUATOR_LISTS:
        execution["properties"][name] = _EVALUATORS
    return execution


def _declare_evaluators(owner: Schema, shape: Shape) -> None:
    for name in dialects.EVALUATOR_LISTS:
        owner["properties"][name] = _EVALUATORS
    _spell(owner, shape.fields)


def _evaluator(types: Types, definitions: Schema) -> Schema:
    names: dict[str, list[str]] = {}
    for name, options in sorted(types.items()):
        names.setdefault(options.type, []).extend(dict.fromkeys((name, name.replace("_", "-"))))
    evaluator = _object(EvaluatorEntry, None, definitions)
    evaluator["properties"]["type"] = {
        "enum": [name for group in names.values() for name in group],
        "description": "What kind of evaluator it is; `-` and `_` are equal in it.",
    }
    branches = []
    for canonical, options in sorted({options.type: options for options in types.values()}.items()):
        definitions[canonical] = _object(options, None, definitions)
        _spell(definitions[canonical], options.spellings)
        branch = {"if": {"properties": {"type": {"enum": names[canonical]}}}, "then": {"$ref": f"#/definitions/{canonical}"}}
        branches.append(branch)
    evaluator["allOf"] = branches
    return evaluator


def _object(model: type[BaseModel], shape: Shape | None, definitions: Schema) -> Schema:
    made: Schema = _cleaned(model.model_json_schema(ref_template="#/definitions/{model}"))
    definitions.update({name: definition for name, definition in made.pop("$defs", {}).items() if name not in definitions})
    made.setdefault("properties", {})
    if shape is not None:
        for name in made["properties"].keys() & {"evaluators"}:
            del made["properties"][name]
        for name, (problem, advice) in shape.refused.items():
            made["properties"][name] = {"not": {}, "description": f"`{name}` {problem}; {advice}."}
        if shape not in (dialects.SUITE, dialects.TEST):  # theirs are spelled once all is put in
            _spell(made, shape.fields)
    return made


def _spell(made: Schema, spellings: Mapping[str, tuple[str, ...]]) -> None:
    """Adds the other spellings of fields, and lets each stand for a required one."""
    required = made.pop("required", [])
    choices = [
        {"anyOf": [{"required": [name]} for name in (field, *spellings.get(field, ()))]} for field in required if spellings.get(field)
    ]
    plain = [field for field in required if not spellings.get(field)]
    for field, others in spellings.items():
        for other in others:
            made["properties"][other] = {**made["properties"][field], "description": f"Another spelling of `{field}`."}
    if plain:
        made["required"] = plain
    if choices:
        made["allOf"] = [*made.get("allOf", []), *choices]


def _cleaned(node: Any, names: bool = False) -> Any:
    # Titles repeat the names of fields; a default of null says nothing.
    if isinstance(node, list):
        return [_cleaned(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _cleaned(value, names=not names and key in ("properties", "$defs", "patternProperties"))
        for key, value in node.items()
        if names or not (key == "title" or (key == "default" and value is None))
    }
