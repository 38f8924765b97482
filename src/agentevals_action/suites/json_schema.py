"""The JSON Schemas (draft-07) for editors, generated from the models in all three dialects.

They contain names, types, ranges, and types of evaluators. Checks that need
the repository (paths, targets, unique ids) are left to the loader."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from agentevals_action.evaluators import EVALUATORS, EVALUATORS_BY_NAME
from agentevals_action.model.messages import ROLES
from agentevals_action.model.validation.file_model import FileModel, model_schema
from agentevals_action.suites import dialects
from agentevals_action.suites.dialects import Shape
from agentevals_action.suites.models import messages, schema_models, workspace_models
from agentevals_action.suites.quarantine_file import Configuration, QuarantineEntry

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
_SCHEMA_FIELD = {"type": "string", "description": "Where this schema is, for editors."}
#: For editors: fields that are known and not to be proposed.
_UNOFFERED: Schema = {"doNotSuggest": True}
# Conditions rather than choices: an editor then shows the error inside, not that no choice fits.
_EVALUATOR: Schema = {
    "type": ["object", "string"],
    "if": {"type": "object"},
    "then": {"$ref": "#/definitions/Evaluator"},
    "else": {"$ref": "#/definitions/PlainCriterion"},
}
_EVALUATORS: Schema = {
    "type": "array",
    "items": _EVALUATOR,
    "description": "The evaluators of the answer; plain strings make one rubric.",
}
_CONTENT: Schema = {
    "type": ["string", "object", "array"],
    "minItems": 1,
    "items": {"$ref": "#/definitions/Message"},
    "if": {"type": "object", "properties": {"role": {"enum": list(ROLES)}}, "required": ["role"]},
    "then": {"$ref": "#/definitions/Message"},
}
_WORKSPACE: Schema = {
    "type": ["object", "string"],
    "minLength": 1,
    "if": {"type": "object"},
    "then": {"$ref": "#/definitions/Workspace"},
}
#: A path, or the glob of several.
_PATH: Schema = {"minLength": 1}
#: The fields with short forms, by model.
_SHORT_FORMS: Mapping[type[FileModel], Mapping[str, Schema]] = {
    schema_models.Suite: {
        "input": _CONTENT,
        "workspace": _WORKSPACE,
        "tests": {
            "type": ["string", "array"],
            **_PATH,
            "minItems": 1,
            "items": {
                "type": ["string", "object"],
                **_PATH,
                "if": {"type": "object"},
                "then": {"$ref": "#/definitions/Test"},
            },
        },
    },
    schema_models.Test: {"input": _CONTENT, "expected_output": _CONTENT, "workspace": _WORKSPACE},
    messages.Message: {
        "content": {
            "type": ["string", "object", "array", "null"],
            "items": {"$ref": "#/definitions/Block"},
        }
    },
}
#: The models of a suite except evaluators, each with its shape.
_MODELS: Mapping[type[FileModel], Shape | None] = {
    schema_models.SuiteExecution: dialects.SUITE_EXECUTION,
    schema_models.TestExecution: dialects.TEST_EXECUTION,
    schema_models.Test: dialects.TEST,
    messages.Message: dialects.MESSAGE,
    messages.Block: dialects.BLOCK,
    messages.ToolCall: dialects.TOOL_CALL,
    workspace_models.Workspace: dialects.WORKSPACE,
    workspace_models.Hooks: dialects.HOOKS,
    workspace_models.Hook: dialects.HOOK,
    workspace_models.ResettingHook: dialects.RESETTING_HOOK,
    workspace_models.Repository: dialects.REPO,
}


def suite_schema() -> Schema:
    """The schema of a suite."""
    definitions: Schema = {}
    root = _object(schema_models.Suite, definitions)
    root["properties"]["$schema"] = _SCHEMA_FIELD
    for model in _MODELS:
        definitions[model.__name__] = _object(model, definitions)
    definitions["Message"]["anyOf"] = [{"required": ["content"]}, {"required": ["tool_calls"]}]
    definitions["Block"] |= {
        "if": {"properties": {"type": {"enum": ["text", "file", "image"]}}},
        "then": {"properties": {"value": {"type": "string"}}},
    }
    for model, shape in _MODELS.items():
        if shape:
            _add_dialects(definitions[model.__name__], shape)
    _add_dialects(root, dialects.SUITE)
    definitions["Evaluator"] = _evaluator(definitions)
    definitions["PlainCriterion"] = {
        "type": "string",
        "minLength": 1,
        "pattern": f"^(?!{_matching(sorted(EVALUATORS_BY_NAME)).removeprefix('^')})",
        "errorMessage": "This is the type of an evaluator and not a criterion; write an object "
        "with a `type`.",
        "description": "A criterion in words; the plain strings of a list make one rubric.",
    }
    criterion = definitions["rubric"]["properties"]["rubrics"]["items"]
    definitions["Test"]["properties"]["rubrics"] |= {
        "type": "array",
        "minItems": 1,
        "items": criterion,
    }
    return {
        "$schema": _DRAFT,
        "title": "EVAL.yaml",
        **root,
        "definitions": dict(sorted(definitions.items())),
    }


def configuration_schema() -> Schema:
    """The schema of `.agentevals.yaml`. An unknown field of an entry is an error."""
    definitions: Schema = {}
    root = model_schema(Configuration, definitions)
    root["properties"]["$schema"] = _SCHEMA_FIELD
    definitions[QuarantineEntry.__name__]["additionalProperties"] = False
    return {"$schema": _DRAFT, "title": ".agentevals.yaml", **root, "definitions": definitions}


def _object(model: type[FileModel], definitions: Schema) -> Schema:
    made = model_schema(model, definitions)
    properties = made["properties"]
    for name, form in _SHORT_FORMS.get(model, {}).items():
        properties[name] = {**form, "description": properties[name]["description"]}
    return made


def _add_dialects(made: Schema, shape: Shape) -> None:
    """Adds evaluators, remarks and other spellings to the schema of an object."""
    properties = made["properties"]
    if shape.elsewhere:
        is_offered = shape in (dialects.SUITE, dialects.TEST)
        for name in dialects.EVALUATOR_LISTS:
            offer = {} if is_offered and name != "evaluators" else _UNOFFERED
            properties[name] = {**_EVALUATORS, **offer}
        if not is_offered:
            properties["evaluators"]["deprecationMessage"] = "Write `assert`."
    _spell(made, shape.fields)
    _close(made)


def _close(made: Schema) -> None:
    """Makes unknown fields errors, except those that are exempt everywhere."""
    for name in dialects.EXEMPT:
        made["properties"].setdefault(name, {"description": "Has no effect.", **_UNOFFERED})
    made["patternProperties"] = {"^x-": {"description": "Data of your own, without effect."}}
    made["additionalProperties"] = False


def _evaluator(definitions: Schema) -> Schema:
    names: dict[str, list[str]] = {}
    for name, options in sorted(EVALUATORS_BY_NAME.items()):
        names.setdefault(options.type, []).append(name)
    evaluator = model_schema(schema_models.Evaluator, definitions)
    target = evaluator["properties"].pop("target")
    evaluator["properties"]["type"] = _type(names)
    evaluator["properties"]["required"]["anyOf"].remove({"type": "null"})
    # AgentV takes `llm-rubric` with a `value` for something else.
    foreign = _never(
        "`llm-rubric` with a `value` is not supported; write it as `type: rubric` with `rubrics`."
    )
    evaluator["allOf"] = [
        {"if": _of_type(_matching(["llm_rubric"])), "then": {"properties": {"value": foreign}}}
    ]
    for canonical, options in sorted(EVALUATORS.items()):
        made = definitions[canonical] = model_schema(options, definitions)
        if options.asks_judge:
            made["properties"].setdefault("target", target)
        if options.children_field:
            made["properties"][options.children_field]["items"] = _EVALUATOR
        _spell(made, options.spellings)
        for name, common in evaluator["properties"].items():
            made["properties"].setdefault(name, {"description": common["description"]})
        if not options.passes_fields:
            _close(made)
        branch = {"$ref": f"#/definitions/{canonical}"}
        evaluator["allOf"].append({"if": _of_type(_matching(names[canonical])), "then": branch})
    return evaluator


def _of_type(pattern: str) -> Schema:
    # A pattern, because editors offer the names of an `enum` as values; `required`, because every
    # condition would be true without a type.
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "pattern": pattern}},
        "required": ["type"],
    }


def _type(names: Mapping[str, list[str]]) -> Schema:
    """The types that an editor offers, with their descriptions; then all other spellings."""
    offered = [
        {"const": name, "description": inspect.cleandoc(options.__doc__ or "")}
        for name, options in sorted(EVALUATORS.items())
    ]
    every = _matching(sorted(name for group in names.values() for name in group))
    description = "The type of evaluator; `-` and `_` are equal in it."
    return {"type": "string", "anyOf": [*offered, {"pattern": every}], "description": description}


def _matching(names: Iterable[str]) -> str:
    return f"^({'|'.join(name.replace('_', '[-_]') for name in names)})$"


def _never(message: str) -> Schema:
    """A schema that no value fits. Editors show `errorMessage` for a wrong type, not for `not`."""
    return {
        "type": "null",
        "not": {"type": "null"},
        "description": message,
        "errorMessage": message,
        **_UNOFFERED,
    }


def _spell(made: Schema, spellings: Mapping[str, tuple[str, ...]]) -> None:
    """Adds the other spellings of fields; each satisfies the requirement of its field."""
    required = made.pop("required", [])
    choices = [
        {"anyOf": [{"required": [name]} for name in (field, *spellings[field])]}
        for field in required
        if spellings.get(field)
    ]
    plain = [field for field in required if not spellings.get(field)]
    if "anyOf" in made:  # at least one of these
        fields = [field for choice in made["anyOf"] for field in choice["required"]]
        made["anyOf"] = [
            {"required": [name]} for field in fields for name in (field, *spellings.get(field, ()))
        ]
    for field, others in spellings.items():
        for other in others:
            earlier = other in dialects.EARLIER
            described = {
                "description": f"Another spelling of `{field}`.",
                **({"deprecationMessage": f"Write `{field}`."} if earlier else {}),
                **_UNOFFERED,
            }
            made["properties"][other] = {**made["properties"][field], **described}
    if plain:
        made["required"] = plain
    if choices:
        made["allOf"] = [*made.get("allOf", []), *choices]
