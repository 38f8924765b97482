"""The JSON Schema (draft-07) of suites, made from what files are checked against; all three
dialects, for editors.

It says what a schema can say: names, types, ranges, types of evaluators, features that are refused
by name. What needs the repository (paths, targets, ids that must differ) is left to the loader.
Unknown fields are warnings, so they are no errors here either, but for those of hooks."""

import inspect
from collections.abc import Iterable, Mapping

from agentevals_action.entries.entry import Entry, Schema
from agentevals_action.entries.reading import entry_schema
from agentevals_action.model import messages
from agentevals_action.suites import dialects
from agentevals_action.suites.dialects import Shape
from agentevals_action.suites.evaluators import Types
from agentevals_action.suites.quarantine_file import ConfigurationEntry, QuarantineEntry
from agentevals_action.suites.schema_models import (
    BlockEntry,
    EvaluatorEntry,
    MessageEntry,
    SuiteEntry,
    SuiteExecution,
    TestEntry,
    TestExecution,
    ToolCallEntry,
)
from agentevals_action.suites.workspace_entries import WorkspaceEntry

#: For editors: fields that are known and not to be proposed.
_UNOFFERED: Schema = {"doNotSuggest": True}
# Conditions rather than choices: an editor then tells what is wrong inside, not that no choice
# fits.
_EVALUATOR: Schema = {
    "type": ["object", "string"],
    "if": {"type": "object"},
    "then": {"$ref": "#/definitions/Evaluator"},
    "else": {"$ref": "#/definitions/PlainCriterion"},
}
_EVALUATORS: Schema = {
    "type": "array",
    "items": _EVALUATOR,
    "description": "What grades the answer; plain strings make one rubric.",
}
_CONTENT: Schema = {
    "type": ["string", "object", "array"],
    "minItems": 1,
    "items": {"$ref": "#/definitions/Message"},
    "if": {
        "type": "object",
        "properties": {"role": {"enum": list(messages.ROLES)}},
        "required": ["role"],
    },
    "then": {"$ref": "#/definitions/Message"},
}
_WORKSPACE: Schema = {
    "type": ["object", "string"],
    "minLength": 1,
    "if": {"type": "object"},
    "then": {"$ref": "#/definitions/Workspace"},
}
_BLOCKS: Schema = {
    "type": ["string", "object", "array", "null"],
    "items": {"$ref": "#/definitions/Block"},
}
#: A path: neither empty nor a glob.
_PATH: Schema = {"minLength": 1, "pattern": r"^[^*?\[]*$"}
_TESTS: Schema = {
    "type": ["string", "array"],
    **_PATH,
    "minItems": 1,
    "items": {
        "type": ["string", "object"],
        **_PATH,
        "if": {"type": "object"},
        "then": {"$ref": "#/definitions/Test"},
    },
}


def schema(types: Types) -> Schema:
    """The schema of a suite whose evaluators may be of these types (by every name, with `_`)."""
    definitions: Schema = {}
    root = _object(SuiteEntry, dialects.SUITE, definitions)
    root["properties"]["tests"].update(_TESTS)
    root["properties"]["input"].update(_CONTENT)
    root["properties"]["workspace"].update(_WORKSPACE)
    root["properties"]["$schema"] = {
        "type": "string",
        "description": "Where this schema is, for editors.",
    }
    root["properties"]["execution"] = _execution(
        SuiteExecution, dialects.SUITE_EXECUTION, definitions
    )
    _declare_evaluators(root, dialects.SUITE)
    definitions["Test"] = _test(definitions)
    definitions["Message"] = _message(definitions)
    definitions["Block"] = _block(definitions)
    definitions["Workspace"] = _workspace(definitions)
    definitions["ToolCall"] = _object(ToolCallEntry, None, definitions)
    definitions["Evaluator"] = _evaluator(types, definitions)
    definitions["PlainCriterion"] = {
        "type": "string",
        "minLength": 1,
        "pattern": f"^(?!{_matching(sorted(types)).removeprefix('^')})",
        "errorMessage": "This is the type of an evaluator and no criterion; write an object with a `type`.",
        "description": "A criterion in words; the plain strings of a list make one rubric.",
    }
    definitions["Test"]["properties"]["rubrics"].update(
        {
            "type": "array",
            "minItems": 1,
            "items": definitions["rubric"]["properties"]["rubrics"]["items"],
        }
    )
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "EVAL.yaml",
        **root,
        "definitions": dict(sorted(definitions.items())),
    }


def configuration_schema() -> Schema:
    """The schema of `.agentevals.yaml`. An unknown field of an entry is an error there, and so it
    is here."""
    definitions: Schema = {}
    root = _object(ConfigurationEntry, None, definitions)
    root["properties"]["$schema"] = {
        "type": "string",
        "description": "Where this schema is, for editors.",
    }
    definitions[QuarantineEntry.__name__]["additionalProperties"] = False
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": ".agentevals.yaml",
        **root,
        "definitions": definitions,
    }


def _test(definitions: Schema) -> Schema:
    test = _object(TestEntry, dialects.TEST, definitions)
    for key in ("input", "expected_output"):
        test["properties"][key].update(_CONTENT)
    test["properties"]["workspace"].update(_WORKSPACE)
    test["properties"]["execution"] = _execution(
        TestExecution, dialects.TEST_EXECUTION, definitions
    )
    _declare_evaluators(test, dialects.TEST)
    return test


def _message(definitions: Schema) -> Schema:
    message = _object(MessageEntry, dialects.MESSAGE, definitions)
    message["properties"]["content"].update(_BLOCKS)
    message["properties"]["tool_calls"]["items"] = {"$ref": "#/definitions/ToolCall"}
    message["anyOf"] = [{"required": ["content"]}, {"required": ["tool_calls"]}]
    return message


def _workspace(definitions: Schema) -> Schema:
    workspace = _object(WorkspaceEntry, dialects.WORKSPACE, definitions)
    parts = {
        "HooksEntry": dialects.HOOKS,
        "HookEntry": dialects.HOOK,
        "ResettingHookEntry": dialects.RESETTING_HOOK,
    }
    for name, shape in (*parts.items(), ("RepoEntry", dialects.REPO)):
        _refuse(definitions[name], shape)
        _spell(definitions[name], shape.fields)
        if shape.closed:
            remark = {"description": "A remark; nothing is done by it.", **_UNOFFERED}
            definitions[name]["properties"].update((key, remark) for key in dialects.REMARKS)
            definitions[name]["additionalProperties"] = False
    return workspace


def _block(definitions: Schema) -> Schema:
    block = _object(BlockEntry, dialects.BLOCK, definitions)
    block["if"] = {"properties": {"type": {"enum": ["text", "file", "image"]}}}
    block["then"] = {"properties": {"value": {"type": "string"}}}
    return block


def _execution(model: type[Entry], shape: Shape, definitions: Schema) -> Schema:
    execution = _object(model, shape, definitions)
    # They may stand here, and are proposed where they belong: beside `execution`.
    execution["properties"].update(
        {name: {**_EVALUATORS, **_UNOFFERED} for name in dialects.EVALUATOR_LISTS}
    )
    execution["properties"]["evaluators"]["deprecationMessage"] = "Write `assert`."
    return execution


def _declare_evaluators(owner: Schema, shape: Shape) -> None:
    owner["properties"].update(
        dict.fromkeys(dialects.EVALUATOR_LISTS, _EVALUATORS),
        evaluators={**_EVALUATORS, **_UNOFFERED},
    )
    _spell(owner, shape.fields)


def _evaluator(types: Types, definitions: Schema) -> Schema:
    names: dict[str, list[str]] = {}
    for name, options in sorted(types.items()):
        names.setdefault(options.type, []).append(name)
    known = {options.type: options for options in types.values()}
    evaluator = _object(EvaluatorEntry, None, definitions)
    target = evaluator["properties"].pop("target")
    evaluator["properties"]["type"] = _type(names, known)
    evaluator["properties"]["required"]["anyOf"].remove({"type": "null"})
    # `llm-rubric` is a judge here; what AgentV takes it for is refused by name.
    foreign = _never(
        "`llm-rubric` with a `value` is not supported; write it as `type: rubric` with `rubrics`."
    )
    evaluator["allOf"] = [
        {"if": _of_type(_matching(["llm_rubric"])), "then": {"properties": {"value": foreign}}}
    ]
    for canonical, options in sorted(known.items()):
        made = definitions[canonical] = _object(options, None, definitions)
        if options.asks_judge:
            made["properties"].setdefault("target", target)
        if options.children_field:
            made["properties"][options.children_field]["items"] = _EVALUATOR
        _spell(made, options.spellings)
        _refuse(
            made,
            dialects.evaluator_shape(
                made["properties"], options.asks_judge, bool(options.children_field)
            ),
        )
        evaluator["allOf"].append(
            {
                "if": _of_type(_matching(names[canonical])),
                "then": {"$ref": f"#/definitions/{canonical}"},
            }
        )
    return evaluator


def _of_type(pattern: str) -> Schema:
    # A pattern, since an editor would offer the names of an `enum` as values; `required`, or
    # without a type every condition would hold.
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "pattern": pattern}},
        "required": ["type"],
    }


def _type(names: Mapping[str, list[str]], known: Types) -> Schema:
    """The types by the names that an editor offers, with what each is for; then all their other
    spellings."""
    offered = [
        {"const": name, "description": inspect.cleandoc(options.__doc__ or "")}
        for name, options in sorted(known.items())
    ]
    every = _matching(sorted(name for group in names.values() for name in group))
    description = "What kind of evaluator it is; `-` and `_` are equal in it."
    return {"type": "string", "anyOf": [*offered, {"pattern": every}], "description": description}


def _matching(names: Iterable[str]) -> str:
    return f"^({'|'.join(name.replace('_', '[-_]') for name in names)})$"


def _object(model: type[Entry], shape: Shape | None, definitions: Schema) -> Schema:
    made = entry_schema(model, definitions)
    if shape is not None:
        for name in made["properties"].keys() & {"evaluators"}:
            del made["properties"][name]
        _refuse(made, shape)
        if shape not in (dialects.SUITE, dialects.TEST):  # theirs are spelled once all is put in
            _spell(made, shape.fields)
    return made


def _never(told: str) -> Schema:
    """What no value fits; by its type first, as editors tell `errorMessage` of a wrong type and not
    of `not`."""
    return {
        "type": "null",
        "not": {"type": "null"},
        "description": told,
        "errorMessage": told,
        **_UNOFFERED,
    }


def _refuse(made: Schema, shape: Shape) -> None:
    for name, (problem, advice) in shape.refused.items():
        made["properties"].setdefault(name, _never(f"`{name}` {problem}; {advice}."))


def _spell(made: Schema, spellings: Mapping[str, tuple[str, ...]]) -> None:
    """Adds the other spellings of fields, and lets each stand for a required one."""
    required = made.pop("required", [])
    choices = [
        {"anyOf": [{"required": [name]} for name in (field, *spellings.get(field, ()))]}
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
            told = {"deprecationMessage": f"Write `{field}`."} if other in dialects.EARLIER else {}
            described = {"description": f"Another spelling of `{field}`.", **told, **_UNOFFERED}
            made["properties"][other] = {**made["properties"][field], **described}
    if plain:
        made["required"] = plain
    if choices:
        made["allOf"] = [*made.get("allOf", []), *choices]
