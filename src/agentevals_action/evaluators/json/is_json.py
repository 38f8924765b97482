"""`is_json`: the output is JSON, and matches a JSON Schema if there is one."""

import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic import BeforeValidator, PrivateAttr, ValidationInfo, field_validator, model_validator
from pydantic import WithJsonSchema as Schema
from referencing import Registry

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import is_given, require
from agentevals_action.evaluators.json.schema_problems import (
    find_draft,
    find_schema_problems,
    json_path,
    one_line,
)
from agentevals_action.evaluators.text_checks import search_pattern
from agentevals_action.formatting import quoted
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.result import Score
from agentevals_action.system.files.paths import Folder
from agentevals_action.validation.file_model import errors_at, get_folder, spelled
from agentevals_action.validation.json_values import (
    canonical,
    check_depth,
    describe_json,
    parse_json,
    refuse_constant,
)

#: Keywords whose message names the properties; of others, the value of the keyword is shown.
_PROPERTY_KEYWORDS = frozenset({
    "required", "additionalProperties", "unevaluatedProperties", "dependentRequired",
    "dependencies",
})  # fmt: skip

_additional_properties = Draft202012Validator.VALIDATORS["additionalProperties"]
_MAX_SCHEMA = 1_000_000  # bytes of a file
#: Mismatches that become misses.
_MAX_MISMATCHES = 10
#: Checks of a keyword on a value, of one output; references can multiply them without end.
MAX_CHECKS = 200_000
#: Comparisons that take as long as a check: jsonschema compares all members for `unevaluated…`.
_COMPARISONS = 1_000


class IsJson(Evaluator):
    """Passes if the complete output is one JSON value, and matches `schema` if there is one; `NaN`
    and code fences are not JSON."""

    type = "is_json"

    # Without a schema it is not dumped: the fingerprint stays that of the earlier versions.
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
        """The schema's file, if it is one."""
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
            mismatches := await asyncio.to_thread(_find_mismatches, self._contents, value)
        ):
            return Score(0.0, misses=mismatches)
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


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not search_pattern(pattern, "", value, "this output"):
        yield ValidationError(f"does not match {quoted(pattern)}")


def _check_pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    for name in value if isinstance(value, dict) else ():
        for pattern, schema in patterns.items():
            if search_pattern(pattern, "", name, "a name in this output"):
                yield from validator.descend(value[name], schema, path=name, schema_path=pattern)


def _check_additional(
    validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    patterns = schema.get("patternProperties", ())
    known = {
        name: True
        for name in (value if isinstance(value, dict) else ())
        if name in schema.get("properties", ())
        or any(search_pattern(pattern, "", name, "a name in this output") for pattern in patterns)
    }
    yield from _additional_properties(validator, allowed, value, {"properties": known})


def _check_unique(_: Any, is_unique: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    if is_unique and isinstance(value, list) and len(set(map(canonical, value))) < len(value):
        yield ValidationError("has items that are equal")


#: Those of jsonschema search with `re`, which cannot be interrupted, not even by a signal, and
#: compare each item with each.
_OWN_CHECKS = {
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional,
    "uniqueItems": _check_unique,
}


def _limited(draft: type[Validator]) -> type[Validator]:
    """A draft whose validators make at most `MAX_CHECKS` checks together, then AttemptError."""
    left = MAX_CHECKS

    def check(keyword: str, validator: Any, operand: Any, value: Any, schema: Any) -> Any:
        nonlocal left
        is_compared = keyword.startswith("unevaluated") and isinstance(value, list | dict)
        left -= 1 + (len(value) ** 2 // _COMPARISONS if is_compared else 0)
        if left < 0:
            raise AttemptError(
                "evaluator",
                f"the output is too large for the schema: it needs over {MAX_CHECKS:,} checks",
                "Ask for a shorter answer, write a schema with fewer alternatives (`anyOf`), or "
                "check it with a `code_judge`.",
            )
        return checks[keyword](validator, operand, value, schema)

    checks = {**draft.VALIDATORS, **_OWN_CHECKS}
    counted = {keyword: partial(check, keyword) for keyword in checks}
    return extend(draft, counted)  # type: ignore[no-any-return,no-untyped-call]  # jsonschema has no types here


def _find_mismatches(schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    """The first mismatches, each with its JSON path and the expected value; the time of a pattern
    and the number of checks are bounded."""
    limited = _limited(find_draft(schema) or Draft202012Validator)
    # A reference to a schema with `$schema` would lead to the draft that is not limited.
    contents = {keyword: operand for keyword, operand in schema.items() if keyword != "$schema"}
    errors = limited(contents, registry=Registry()).iter_errors(value)
    try:
        return tuple(map(_describe, itertools.islice(errors, _MAX_MISMATCHES)))
    except RecursionError:
        raise AttemptError(
            "evaluator",
            "the output cannot be validated: the references of the schema do not end",
            "Remove references that lead back to themselves.",
        ) from None


def _describe(error: ValidationError) -> str:
    error = best_match([error]) or error
    path = json_path(error.absolute_path)
    if error.validator in _PROPERTY_KEYWORDS:
        return f"{path}: {one_line(error.message)}"
    expected = f"`{error.validator}`: {describe_json(error.validator_value)}"
    return f"{path} is {describe_json(error.instance)}, expected {expected}"
