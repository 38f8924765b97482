"""`is_json`: the output is JSON, and matches a JSON Schema if there is one."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from jsonschema import ValidationError
from pydantic import BeforeValidator, PrivateAttr, ValidationInfo, field_validator, model_validator
from pydantic import WithJsonSchema as Schema

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import is_given, require
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.result import Score
from agentevals_action.system.files.paths import Folder
from agentevals_action.validation.file_model import errors_at, get_folder, spelled
from agentevals_action.validation.json_schema import (
    find_mismatches,
    find_schema_problems,
    json_path,
    one_line,
)
from agentevals_action.validation.json_values import (
    check_depth,
    describe_json,
    parse_json,
    refuse_constant,
)

#: Keywords whose message names the properties; for the other keywords, their value is shown.
_PROPERTY_KEYWORDS = frozenset({
    "required", "additionalProperties", "unevaluatedProperties", "dependentRequired",
    "dependencies",
})  # fmt: skip

_MAX_SCHEMA = 1_000_000  # bytes of a file
#: Mismatches that become misses.
_MAX_MISMATCHES = 10


class IsJson(Evaluator):
    """Passes if the complete output is one JSON value, and matches `schema` if there is one; `NaN`
    and code fences are not JSON."""

    type = "is_json"

    # A missing schema is not dumped: the fingerprint stays that of the earlier versions.
    json_schema: Annotated[
        dict[str, Any] | str | None,
        BeforeValidator(
            require(is_given, "it is empty; write a JSON Schema or the path of one, or remove it")
        ),
        Schema({"type": ["object", "string"]}),
    ] = spelled(
        "schema",
        "value",
        default=None,
        exclude_if=lambda schema: schema is None,
        description="A JSON Schema that the output must match, or the path of its file; of draft "
        "2020-12 unless `$schema` names another. It cannot refer to other documents.",
    )

    _contents: Mapping[str, Any] | None = PrivateAttr(None)
    _file: Path | None = PrivateAttr(None)

    @field_validator("json_schema")
    @classmethod
    def _check_schema(
        cls, schema: dict[str, Any] | str | None, info: ValidationInfo
    ) -> dict[str, Any] | str | None:
        if isinstance(schema, str):
            _read_schema(schema, get_folder(info))
        elif schema is not None and (problems := find_schema_problems(schema)):
            raise errors_at(problems)
        return schema

    @model_validator(mode="after")
    def _load_schema(self, info: ValidationInfo) -> Self:
        if isinstance(self.json_schema, str):
            folder = get_folder(info)
            self._file = folder.file(self.json_schema)
            self._contents = _read_schema(self.json_schema, folder)
        else:
            self._contents = self.json_schema
        return self

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """The file of the schema, if the field is a path."""
        return (NamedFile(folder.relative(self._file), "JSON schema"),) if self._file else ()

    async def evaluate(self, case: Case) -> Score:
        """1 if the output is JSON that matches the schema, else 0; AttemptError if it is nested too
        deeply."""
        output = case.trace.output
        try:
            check_depth(output)
        except ValueError as error:
            raise AttemptError("evaluator", f"the output cannot be read as JSON: {error}") from None
        try:
            value = json.loads(output, parse_constant=refuse_constant, parse_int=_read_integer)
        except json.JSONDecodeError as error:
            problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
            problem = problem if output.strip() else "the output is empty"
            return Score(0.0, misses=(f"is not valid JSON: {problem}",))
        except ValueError as error:
            return Score(0.0, misses=(f"is not valid JSON: {error}",))
        # A thread: a slow pattern must not block the other tests.
        if self._contents is not None and (
            mismatches := await asyncio.to_thread(
                find_mismatches, self._contents, value, "the output", _MAX_MISMATCHES
            )
        ):
            return Score(0.0, misses=tuple(map(_describe, mismatches)))
        hit = "valid JSON" if self._contents is None else "valid JSON that matches the schema"
        return Score(1.0, hits=(f"must not be {hit}, but is" if self.negate else f"is {hit}",))


def _read_integer(digits: str) -> int | float:
    # Python converts at most 4,300 digits; JSON has no limit.
    return int(digits) if len(digits) <= 4_000 else float(digits)


def _read_schema(path: str, folder: Folder) -> Mapping[str, Any]:
    name = f"the schema {path!r}"
    data = folder.read(folder.file(path), name, _MAX_SCHEMA)
    try:
        schema = parse_json(data)
    except ValueError as error:
        raise ValueError(f"{name} is not valid JSON: {error}; correct it") from None
    if not isinstance(schema, dict):
        raise ValueError(f"{name} is not an object; write a JSON Schema there")
    for steps, problem in find_schema_problems(schema).items():
        raise ValueError(f"{name} is not valid at {json_path(steps)}: {problem}")
    return schema


def _describe(error: ValidationError) -> str:
    path = json_path(error.absolute_path)
    if error.validator in _PROPERTY_KEYWORDS:
        return f"{path}: {one_line(error.message)}"
    expected = f"`{error.validator}`: {describe_json(error.validator_value)}"
    return f"{path} is {describe_json(error.instance)}, expected {expected}"
