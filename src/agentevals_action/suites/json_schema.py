"""The JSON Schemas of a suite, of `.agentevals.yaml` and of results, generated from the models."""

import json
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.suite import Suite
from agentevals_action.suites.configuration_file import Configuration
from agentevals_action.suites.evaluators import OWN_TYPE
from agentevals_action.suites.reading import EXEMPT

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
_REFERENCE = "#/definitions/{model}"
_COLUMNS = 100


def _allowed(*names: str) -> Schema:
    """The fields that may be in every object, and fields of these names, as pattern properties."""
    alternatives = "|".join(sorted({*EXEMPT, *names})).replace("$", "[$]")
    return {f"^(x-.*|{alternatives})$": {}}


class _FileSchema(GenerateJsonSchema):
    """Schemas for editors: without generated titles, and without defaults that only mean
    "missing"."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # of the base class
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _for_editors(super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _for_editors(super().dataclass_schema(schema))

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        json_schema, default = super().default_schema(schema), schema.get("default")
        is_record = isinstance(default, BaseModel) or is_dataclass(default)
        if json_schema.get("default", ...) in (None, [], {}) or is_record:
            json_schema.pop("default", None)
        return json_schema


def _for_editors(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Without a title; the description is the first paragraph of the docstring."""
    schema.pop("title", None)
    if description := schema.get("description"):
        schema["description"] = " ".join(description.partition("\n\n")[0].split())
    return schema


def suite_schema() -> Schema:
    """The schema of a suite, in every dialect."""
    definitions: Schema = {}
    root = _definition(Suite, definitions)
    _add_evaluators(definitions)
    for name, definition in (("Suite", root), *definitions.items()):
        for spelling in ("assert", "assertions", "evaluators"):
            if spelling in definition.get("properties", {}) and name != "Evaluators":
                definition["properties"][spelling] = {"$ref": "#/definitions/Evaluators"}
        if definition.get("additionalProperties") is False:
            definition.setdefault("patternProperties", _allowed())
        _share_spellings(definition, "#" if definition is root else f"#/definitions/{name}")
    definitions["Test"]["properties"]["rubrics"] = definitions["rubric"]["properties"]["rubrics"]
    return {"$schema": _DRAFT, **root, "title": "EVAL.yaml", "definitions": definitions}


def _share_spellings(definition: Schema, path: str) -> None:
    """Refers other spellings of a field to the first one, which has the same schema."""
    fields: list[tuple[str, Any]] = []
    for name, field in definition.get("properties", {}).items():
        first = next((key for key, other in fields if other == field and "$ref" not in field), None)
        if first and len(field) > 1:
            definition["properties"][name] = {"$ref": f"{path}/properties/{first}"}
        else:
            fields.append((name, field))


def configuration_schema() -> Schema:
    """The schema of `.agentevals.yaml`. An unknown field of an entry is an error."""
    definitions: Schema = {}
    root = _definition(Configuration, definitions)
    root["properties"]["$schema"] = {"type": "string"}
    return {"$schema": _DRAFT, **root, "title": ".agentevals.yaml", "definitions": definitions}


def output_schema(form: type, title: str) -> Schema:
    """The schema of a JSON document that a program writes."""
    definitions: Schema = {}
    root = _definition(form, definitions, "serialization")
    return {"$schema": _DRAFT, **root, "title": title, "definitions": definitions}


def write_schema(value: Any, indent: str = "", key: str = "") -> str:
    """JSON with one line for each value that fits."""
    start = f"{indent}{key}"
    line = f"{start}{json.dumps(value, ensure_ascii=False)}"
    if len(line) <= _COLUMNS or not isinstance(value, dict | list):
        return line
    named = value.items() if isinstance(value, dict) else [("", item) for item in value]
    parts = [
        write_schema(item, f"{indent}  ", f"{json.dumps(name)}: " if name else "")
        for name, item in named
    ]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([f"{start}{first}", ",\n".join(parts), f"{indent}{last}"])


def _definition(form: type, definitions: Schema, mode: JsonSchemaMode = "validation") -> Schema:
    """The schema of a model; the schemas inside it are added to `definitions` by name."""
    schema = TypeAdapter(form).json_schema(
        mode=mode, ref_template=_REFERENCE, schema_generator=_FileSchema
    )
    definitions.update(schema.pop("$defs", {}))
    return schema


def _add_evaluators(definitions: Schema) -> None:
    """Adds `Evaluators`, `Evaluator`, and each type of evaluator by its name: the union by `type`,
    whose conditions close the object."""
    common = _definition(Evaluator, definitions)
    names, conditions = list[str](), list[Schema]()
    for name, model in EVALUATORS.items():
        definitions[name] = definition = _definition(model, definitions)
        for shared in common["properties"]:
            del definition["properties"][shared]
        if model.passes_fields:
            del definition["additionalProperties"]
        else:
            definition["patternProperties"] = _allowed(*common["properties"])
        spellings = [
            spelling
            for alias in EVALUATORS.spellings(name)
            for spelling in dict.fromkeys((alias, alias.replace("_", "-")))
        ]
        names += spellings
        type_schema = {"type": "string", "pattern": f"^({'|'.join(spellings)})$"}
        condition = {"properties": {"type": type_schema}, "required": ["type"]}
        conditions.append({"if": condition, "then": {"$ref": f"#/definitions/{name}"}})
    # The types of a repository's own are the names of files, which a schema cannot know.
    common["properties"]["type"]["anyOf"] = [{"enum": names}, {"pattern": f"^{OWN_TYPE}$"}]
    del common["additionalProperties"]
    definitions["Evaluator"] = {**common, "required": ["type"], "allOf": conditions}
    entry = {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/definitions/Evaluator"}]}
    text = "The evaluators of the answer; plain strings make one rubric."
    every = {"type": "array", "minItems": 1, "items": entry, "description": text}
    definitions["Evaluators"] = every
