"""The JSON Schemas (draft-07) of a suite and of `.agentevals.yaml`, generated from the models.

They add to the models of a suite what the loader reads by itself: the short forms of messages, the
spellings of the three dialects, and the types of evaluators."""

from collections.abc import Mapping
from typing import Any

from agentevals_action.evaluators import EVALUATORS, EVALUATORS_BY_NAME
from agentevals_action.model.validation.file_model import FileModel, model_schema
from agentevals_action.suites import dialects
from agentevals_action.suites.configuration_file import Configuration, QuarantineEntry
from agentevals_action.suites.dialects import Shape
from agentevals_action.suites.models import messages, schema_models, workspace_models

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
#: Fields that may stand in every object.
_EXEMPT: Schema = {f"^(x-.*|{'|'.join(name.replace('$', '[$]') for name in dialects.EXEMPT)})$": {}}
_EVALUATORS: Schema = {"$ref": "#/definitions/Evaluators"}


def _object_or(other: str, model: str) -> Schema:
    """An object of a model, or a text. A condition, not a choice: an editor then shows the error in
    the object, and not that no choice fits."""
    return {
        "type": ["object", other],
        "minLength": 1,
        "if": {"type": "object"},
        "then": {"$ref": f"#/definitions/{model}"},
    }


_CONTENT: Schema = {
    "type": ["string", "object", "array"],
    "minItems": 1,
    "items": {"$ref": "#/definitions/Message"},
}
_WORKSPACE = _object_or("string", "Workspace")
_TESTS = {"type": ["string", "array"], "minItems": 1, "items": _object_or("string", "Test")}
#: The models of a suite except evaluators, each with its shape and its fields with short forms.
_MODELS: Mapping[type[FileModel], tuple[Shape, Mapping[str, Schema]]] = {
    schema_models.Suite: (
        dialects.SUITE,
        {"input": _CONTENT, "workspace": _WORKSPACE, "tests": _TESTS},
    ),
    schema_models.Test: (
        dialects.TEST,
        {"input": _CONTENT, "expected_output": _CONTENT, "workspace": _WORKSPACE},
    ),
    messages.Message: (
        dialects.MESSAGE,
        {
            "content": {
                "type": ["string", "object", "array", "null"],
                "items": {"$ref": "#/definitions/Block"},
            }
        },
    ),
    schema_models.SuiteExecution: (dialects.SUITE_EXECUTION, {}),
    schema_models.TestExecution: (dialects.TEST_EXECUTION, {}),
    messages.Block: (dialects.BLOCK, {}),
    messages.ToolCall: (dialects.TOOL_CALL, {}),
    workspace_models.Workspace: (dialects.WORKSPACE, {}),
    workspace_models.Hooks: (dialects.HOOKS, {}),
    workspace_models.Hook: (dialects.HOOK, {}),
    workspace_models.ResettingHook: (dialects.RESETTING_HOOK, {}),
    workspace_models.Repository: (dialects.REPO, {}),
}


def suite_schema() -> Schema:
    """The schema of a suite."""
    definitions: Schema = {}
    for model, (shape, short_forms) in _MODELS.items():
        made = model_schema(model, definitions)
        for name, form in short_forms.items():
            made["properties"][name] = {
                **form,
                "description": made["properties"][name]["description"],
            }
        made["properties"] |= dict.fromkeys(shape.elsewhere, _EVALUATORS)
        definitions[model.__name__] = _closed(made, model.__name__, shape.fields)
    _add_evaluators(definitions)
    definitions["Test"]["properties"]["rubrics"] = {
        **definitions["rubric"]["properties"]["rubrics"],
        "description": definitions["Test"]["properties"]["rubrics"]["description"],
    }
    return {
        "$schema": _DRAFT,
        "title": "EVAL.yaml",
        "allOf": [{"$ref": "#/definitions/Suite"}],
        "definitions": dict(sorted(definitions.items())),
    }


def configuration_schema() -> Schema:
    """The schema of `.agentevals.yaml`. An unknown field of an entry is an error."""
    definitions: Schema = {}
    root = model_schema(Configuration, definitions)
    root["properties"]["$schema"] = {"type": "string"}
    definitions[QuarantineEntry.__name__]["additionalProperties"] = False
    return {"$schema": _DRAFT, "title": ".agentevals.yaml", **root, "definitions": definitions}


def _add_evaluators(definitions: Schema) -> None:
    """Adds `Evaluators`, `Evaluator`, and each type of evaluator by its name."""
    evaluator = model_schema(schema_models.Evaluator, definitions)
    target = evaluator["properties"].pop("target")
    evaluator["properties"]["type"] = {
        "enum": [name for options in EVALUATORS.values() for name in _spellings(options.type)],
        "description": evaluator["properties"]["type"]["description"],
    }
    evaluator["allOf"] = []
    for name, options in EVALUATORS.items():
        made = model_schema(options, definitions)
        if options.asks_judge:
            made["properties"].setdefault("target", target)
        if options.children_field:
            made["properties"] |= dict.fromkeys(dialects.EVALUATOR_LISTS, _EVALUATORS)
            made.pop("required", None)
        for common in evaluator["properties"]:
            made["properties"].setdefault(common, {})
        definitions[name] = _closed(made, name, options.spellings, is_open=options.passes_fields)
        its_type = {"type": "string", "pattern": f"^({'|'.join(_spellings(name))})$"}
        condition = {"properties": {"type": its_type}, "required": ["type"]}
        evaluator["allOf"].append({"if": condition, "then": {"$ref": f"#/definitions/{name}"}})
    definitions["Evaluator"] = evaluator
    definitions["Evaluators"] = {
        "type": "array",
        "minItems": 1,
        "items": _object_or("string", "Evaluator"),
        "description": "The evaluators of the answer; plain strings make one rubric.",
    }


def _spellings(type_name: str) -> list[str]:
    """The names of a type of evaluator: its own first, with `_` and with `-`."""
    names = [name for name, options in EVALUATORS_BY_NAME.items() if options.type == type_name]
    ordered = sorted(names, key=lambda name: (name != type_name, name))
    return list(dict.fromkeys(each for name in ordered for each in (name, name.replace("_", "-"))))


def _closed(
    made: Schema, name: str, spellings: Mapping[str, tuple[str, ...]], *, is_open: bool = False
) -> Schema:
    """The schema of an object with all spellings of its fields and without unknown fields."""
    for field in [field for field in made.get("required", ()) if spellings.get(field)]:
        made["required"].remove(field)
        made.setdefault("allOf", []).append({"anyOf": [{"required": [field]}]})
    for choice in (made, *made.get("allOf", ())):  # one of several fields, in any spelling
        if "anyOf" in choice:
            names = [field for part in choice["anyOf"] for field in part["required"]]
            every = (each for name in names for each in (name, *spellings.get(name, ())))
            choice["anyOf"] = [{"required": [each]} for each in every]
    for field, others in spellings.items():
        reference = {"$ref": f"#/definitions/{name}/properties/{field}"}
        made["properties"] |= dict.fromkeys(others, reference)
    if made.get("required") == []:
        del made["required"]
    if not is_open:
        made |= {"patternProperties": _EXEMPT, "additionalProperties": False}
    return made
