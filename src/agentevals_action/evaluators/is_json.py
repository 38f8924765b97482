"""`is_json`: the output is JSON, and matches a JSON Schema if there is one."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, Self

from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    ValidationError,
)
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator
from pydantic import WithJsonSchema as Schema
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, EvaluatorOptions
from agentevals_action.evaluators.text_checks import score_check, search_pattern
from agentevals_action.formatting import quoted
from agentevals_action.model.file_model import Steps, errors_at
from agentevals_action.model.json_values import check_depth, parse_json, shown
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, NamedFile
from agentevals_action.system.paths import Folder

_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS: Mapping[str, type[Validator]] = {
    "http://json-schema.org/draft-04/schema": Draft4Validator,
    "http://json-schema.org/draft-06/schema": Draft6Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    _DEFAULT_DRAFT: Draft202012Validator,
}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
#: Keywords whose message names the properties; of others, the value of the keyword is shown.
_PROPERTY_KEYWORDS = frozenset(
    [
        "required",
        "additionalProperties",
        "unevaluatedProperties",
        "dependentRequired",
        "dependencies",
    ]
)

#: Bytes of a schema file.
_MAX_SCHEMA = 1_000_000
#: References that are followed for one answer: definitions that each refer to the next one twice
#: would otherwise take hours.
_MAX_REFERENCES = 100_000
#: Mismatches that become misses.
_MAX_MISMATCHES = 10


def _check_given(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write a JSON Schema or the path of one, or remove it")
    return value


class IsJson(EvaluatorOptions):
    """Passes if the complete output is one JSON value, and matches `schema` if there is one; `NaN`
    and code fences are not JSON."""

    type = "is_json"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"schema": ("value",)}

    # Without a schema it is not dumped: the fingerprint stays that of the earlier versions.
    json_schema: Annotated[
        dict[str, Any] | str | None,
        BeforeValidator(_check_given),
        Schema({"type": ["object", "string"]}),
    ] = Field(
        default=None,
        alias="schema",
        exclude_if=lambda schema: schema is None,
        description="A JSON Schema that the output must match, or the path of its file; of draft "
        "2020-12 unless `$schema` names another. It cannot refer to other documents.",
    )

    _contents: Mapping[str, Any] | None = PrivateAttr(None)
    _file: Path | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _load_schema(self, info: ValidationInfo) -> Self:
        schema = self.json_schema
        if isinstance(schema, str):
            try:
                self._contents, self._file = _read_schema(schema, info.context)
            except ValueError as error:
                raise errors_at({("schema",): str(error)}) from None
        elif schema is not None:
            self._contents = schema
            if problems := _schema_problems(schema):
                raise errors_at({("schema", *steps): text for steps, text in problems.items()})
        return self

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """The schema's file, if it is one."""
        return (NamedFile(folder.relative(self._file), "JSON schema"),) if self._file else ()

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 if the output is JSON that matches the schema, else 0; AttemptError if it is nested too
        deeply."""
        output = case.trace.output
        try:
            check_depth(output)
        except ValueError as error:
            raise AttemptError("evaluator", f"the output cannot be read as JSON: {error}") from None
        try:
            value = json.loads(output, parse_constant=_refuse_constant, parse_int=_read_integer)
        except json.JSONDecodeError as error:
            problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
            problem = problem if output.strip() else "the output is empty"
            return Score(0.0, misses=(f"is not valid JSON: {problem}",))
        except ValueError as error:
            return Score(0.0, misses=(f"is not valid JSON: {error}",))
        if self._contents is None:
            return score_check(True, "is valid JSON", "")
        # A thread: a slow pattern must not block the other tests.
        if mismatches := await asyncio.to_thread(_find_mismatches, self._contents, value):
            return Score(0.0, misses=mismatches)
        return Score(1.0, hits=("is valid JSON that matches the schema",))


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _read_integer(digits: str) -> int | float:
    # Python converts at most 4,300 digits; JSON has no limit.
    return int(digits) if len(digits) <= 4_000 else float(digits)


def _read_schema(path: str, folder: Folder | None) -> tuple[Mapping[str, Any], Path]:
    """The schema in a file; ValueError if it cannot be used."""
    if folder is None:
        raise TypeError("a schema is read with the folder of the declaring file")
    file = folder.file(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_SCHEMA + 1)
        if len(data) > _MAX_SCHEMA:
            raise ValueError(f"it is longer than {_MAX_SCHEMA:,} bytes")
        schema = parse_json(data)
    except OSError as error:
        raise ValueError(f"the schema {path!r} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"the schema {path!r} is not valid JSON: {error}; correct it") from None
    if not isinstance(schema, dict):
        raise ValueError(f"the schema {path!r} is not an object; write a JSON Schema there")
    for steps, problem in _schema_problems(schema).items():
        raise ValueError(f"the schema {path!r} is not valid at {_json_path(steps)}: {problem}")
    return schema, file


def _draft(schema: Mapping[str, Any]) -> type[Validator] | None:
    """The validator class of the schema's draft; None if the draft is unknown."""
    return _DRAFTS.get(str(schema.get("$schema", _DEFAULT_DRAFT)).rstrip("#"))


def _schema_problems(schema: Mapping[str, Any]) -> dict[Steps, str]:
    """The problems of a schema ("problem; advice"), by their steps in it."""
    draft = _draft(schema)
    if draft is None:
        problem = f"the draft {shown(schema['$schema'])} is unknown; write {_DEFAULT_DRAFT}"
        return {("$schema",): problem}
    meta_schema = draft(draft.META_SCHEMA, format_checker=draft.FORMAT_CHECKER)
    problems: dict[Steps, str] = {}
    for error in meta_schema.iter_errors(schema):
        leaf = best_match([error]) or error
        problem = f"it is not valid in a JSON Schema: {_one_line(leaf.message)}; correct it"
        problems.setdefault(tuple(leaf.absolute_path), problem)
    if not problems:
        # The registry has no retriever: nothing outside the document is read.
        resource = Resource.from_contents(schema, default_specification=DRAFT202012)
        resolver = Registry[Any]().resolver_with_root(resource)
        problems = dict.fromkeys([()], next(_reference_problems(resource, resolver), ""))
    return {steps: problem for steps, problem in problems.items() if problem}


def _reference_problems(resource: Resource[Any], resolver: Any) -> Iterator[str]:
    contents = resource.contents if isinstance(resource.contents, Mapping) else {}
    for keyword in _REFERENCES:
        reference = contents.get(keyword)
        try:
            if isinstance(reference, str):
                resolver.lookup(reference)
        except Unresolvable:
            yield (
                f"`{keyword}: {_one_line(str(reference))}` leads to nothing in the schema; "
                "put the definition into its `$defs`"
            )
    for inner in resource.subresources():
        yield from _reference_problems(inner, resolver.in_subresource(inner))


def _make_validator(schema: Mapping[str, Any]) -> Validator:
    """The validator for one answer: it bounds the references and the time of a pattern."""
    draft = _draft(schema) or Draft202012Validator
    references = itertools.count()

    def limit(function: Callable[..., Any]) -> Callable[..., Any]:
        def follow(*arguments: Any) -> Any:
            if next(references) > _MAX_REFERENCES:
                raise RecursionError
            return function(*arguments)

        return follow

    limited = {
        name: limit(draft.VALIDATORS[name]) for name in _REFERENCES if name in draft.VALIDATORS
    }
    made: type[Validator] = extend(  # type: ignore[no-untyped-call]  # jsonschema has no types here
        draft, {**limited, "pattern": _check_pattern}
    )
    return made(schema, registry=Registry())


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not search_pattern(pattern, "", value, "this output"):
        yield ValidationError(f"does not match {quoted(pattern)}")


def _find_mismatches(schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    """The first mismatches of a value, each with its JSON path and the expected value."""
    try:
        errors = list(itertools.islice(_make_validator(schema).iter_errors(value), _MAX_MISMATCHES))
    except RecursionError:
        raise AttemptError(
            "evaluator",
            "the output cannot be validated: the references of the schema do not end",
            "Remove references that lead back to themselves.",
        ) from None
    return tuple(_describe(best_match([error]) or error) for error in errors)


def _describe(error: ValidationError) -> str:
    path = _json_path(error.absolute_path)
    if error.validator in _PROPERTY_KEYWORDS:
        return f"{path}: {_one_line(error.message)}"
    expected = f"`{error.validator}`: {shown(error.validator_value)}"
    return f"{path} is {shown(error.instance)}, expected {expected}"


def _json_path(steps: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _one_line(text: str) -> str:
    return quoted(text)[1:-1]
