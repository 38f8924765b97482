"""JSON Schemas of users: their problems (what is invalid, or checks nothing), and the mismatches of
a value, within limits of time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from functools import cache, partial
from itertools import islice
from typing import Any

from jsonschema import (
    Draft3Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    ValidationError,
)
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import quoted
from agentevals_action.validation.field_errors import nearest
from agentevals_action.validation.file_model import Steps
from agentevals_action.validation.json_values import canonical, describe_json
from agentevals_action.validation.patterns import compile_pattern, search_pattern

_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DRAFTS = (Draft3Validator, Draft7Validator, Draft201909Validator, Draft202012Validator)
#: The keywords that at least one draft checks: `additionalItems` checks nothing in 2020-12.
_OF_ANY_DRAFT = frozenset[str]().union(*(draft.VALIDATORS for draft in _DRAFTS))
#: Keywords that no draft checks, and keywords of OpenAPI.
_ANNOTATIONS = frozenset({
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions",
    "$comment", "$vocabulary", "title", "description", "default", "examples", "example", "nullable",
    "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
    "then", "else", "minContains", "maxContains", "format",
})  # fmt: skip
#: The least similarity (0-1) of an unknown keyword to the known keyword that was meant.
_SIMILARITY = 0.8
#: Checks of keywords for one value; references can multiply them without end.
MAX_CHECKS = 200_000
#: Comparisons that take as long as a check: jsonschema compares all members for `unevaluated…`.
_COMPARISONS = 1_000
_TEXT = "a text that the schema checks"

_additional_properties = Draft202012Validator.VALIDATORS["additionalProperties"]


def find_draft(schema: Mapping[str, Any]) -> type[Validator] | None:
    """The validator of the draft that a schema names; None if it is unknown."""
    uri = str(schema.get("$schema", _DEFAULT_DRAFT))
    return validator_for({"$schema": uri}, default=None)  # type: ignore[arg-type]  # it may be None


def find_schema_problems(schema: Mapping[str, Any]) -> dict[Steps, str]:
    """The problems of a schema ("problem; advice"), by their steps in it."""
    draft = find_draft(schema)
    if draft is None:
        problem = f"the draft {describe_json(schema['$schema'])} is unknown; write {_DEFAULT_DRAFT}"
        return {("$schema",): problem}
    problems: dict[Steps, str] = {}
    for error in draft(draft.META_SCHEMA).iter_errors(schema):
        leaf = best_match([error]) or error
        problem = f"it is not valid in a JSON Schema: {one_line(leaf.message)}; correct it"
        problems.setdefault(tuple(leaf.absolute_path), problem)
    if not problems:
        # The registry has no retriever: nothing outside the document is read.
        resource = _as_resource(schema, draft)
        resolver = Registry[Any]().resolver_with_root(resource)
        places = dict(_places(schema, ()))
        for owner, keyword, problem in _keyword_problems(resource, resolver, draft, set()):
            problems.setdefault((*places[id(owner)], keyword), problem)
    return problems


def _places(value: Any, steps: Steps) -> Iterator[tuple[int, Steps]]:
    """The identity of each object in a schema, and the steps to it."""
    if isinstance(value, dict):
        yield id(value), steps
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in items:
        if isinstance(inner, dict | list):
            yield from _places(inner, (*steps, step))


def _keyword_problems(
    resource: Resource[Any], resolver: Any, draft: type[Validator], seen: set[int]
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The keywords with a problem, each with the object that has it: unknown keywords that resemble
    a known keyword, references that lead to no schema, and patterns that cannot be used. `seen` are
    the identities of the objects that were searched, because references may lead back."""
    owner = resource.contents
    if not isinstance(owner, dict) or id(owner) in seen:
        return
    seen.add(id(owner))
    inside = [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    for keyword, value in owner.items():
        problem = _unknown_keyword(keyword, draft.VALIDATORS.keys() | _ANNOTATIONS)
        try:
            if keyword in _REFERENCES and isinstance(value, str):
                target = resolver.lookup(value)
                if draft(draft.META_SCHEMA).is_valid(target.contents):
                    inside.append((_as_resource(target.contents, draft), target.resolver))
                else:  # a place that the check of the whole schema takes for data
                    problem = f"{describe_json(value)} leads to what is no JSON Schema; correct it"
            patterns = {"pattern": (value,), "patternProperties": value}
            for pattern in patterns.get(keyword, ()):
                compile_pattern(pattern)
        except Unresolvable:
            problem = (
                f"{describe_json(value)} leads to nothing in the schema; define it in its `$defs`"
            )
        except ValueError as error:
            problem = str(error)
        if problem:
            yield owner, keyword, problem
    for inner, its_resolver in inside:
        yield from _keyword_problems(inner, its_resolver, draft, seen)


def _as_resource(contents: Any, draft: type[Validator]) -> Resource[Any]:
    specification = specification_with(str(draft.META_SCHEMA["$schema"]))
    return Resource.from_contents(contents, default_specification=specification)


def _unknown_keyword(word: str, known: Set[str]) -> str:
    """The problem of an unknown keyword: another draft checks it, or it probably means a known
    keyword, which is similar, or which checks and begins with it (`min` for `minimum`). Empty
    without a problem."""
    if word in known:
        return ""
    if word in _OF_ANY_DRAFT:
        return "this draft does not check the keyword; name its draft in `$schema`"
    checks = known - _ANNOTATIONS if len(word) > 2 else ()
    longer = [keyword for keyword in checks if keyword.startswith(word)]
    meant = nearest(word, known, _SIMILARITY) or nearest(word, longer, 0)
    return f"the keyword is unknown; did you mean `{meant}`?" if meant else ""


def _check_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not search_pattern(pattern, "", value, _TEXT):
        yield ValidationError(f"does not match {quoted(pattern)}")


def _check_pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    for name in value if isinstance(value, dict) else ():
        for pattern, schema in patterns.items():
            if search_pattern(pattern, "", name, _TEXT):
                yield from validator.descend(value[name], schema, path=name, schema_path=pattern)


def _check_additional(
    validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    patterns = schema.get("patternProperties", ())
    declared = {
        name: True
        for name in (value if isinstance(value, dict) else ())
        if name in schema.get("properties", ())
        or any(search_pattern(pattern, "", name, _TEXT) for pattern in patterns)
    }
    yield from _additional_properties(validator, allowed, value, {"properties": declared})


def _check_unique(_: Any, is_unique: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    if is_unique and isinstance(value, list) and len(set(map(canonical, value))) < len(value):
        yield ValidationError("has items that are equal")


#: The checks of jsonschema search with `re`, which cannot be interrupted, not even by a signal, and
#: compare each item with each other.
_OWN_CHECKS = {
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "additionalProperties": _check_additional,
    "uniqueItems": _check_unique,
}


class _TooManyChecks(Exception):
    """A value needs over `MAX_CHECKS`."""


#: The number of checks that are left for a value.
_left = ContextVar[list[int]]("_left")


@cache
def _limited(draft: type[Validator]) -> type[Validator]:
    """A draft whose validators together make at most `_left` checks."""

    def check(keyword: str, validator: Any, operand: Any, value: Any, schema: Any) -> Any:
        is_compared = keyword.startswith("unevaluated") and isinstance(value, list | dict)
        left = _left.get()
        left[0] -= 1 + (len(value) ** 2 // _COMPARISONS if is_compared else 0)
        if left[0] < 0:
            raise _TooManyChecks
        return checks[keyword](validator, operand, value, schema)

    checks = {**draft.VALIDATORS, **_OWN_CHECKS}
    counted = {keyword: partial(check, keyword) for keyword in checks}
    return extend(draft, counted)  # type: ignore[no-any-return,no-untyped-call]  # jsonschema has no types here


def find_mismatches(
    schema: Mapping[str, Any], value: Any, subject: str, most: int
) -> Sequence[ValidationError]:
    """The first mismatches of a value that a message calls `subject`, at most `most`. AttemptError
    if a pattern or the number of checks exceeds its limit; nothing outside the schema is read."""
    limited = _limited(find_draft(schema) or Draft202012Validator)
    # A reference to a schema with `$schema` would lead to the draft that is not limited.
    contents = {keyword: operand for keyword, operand in schema.items() if keyword != "$schema"}
    errors = limited(contents, registry=Registry()).iter_errors(value)
    _left.set([MAX_CHECKS])
    try:
        return [best_match([error]) or error for error in islice(errors, most)]
    except RecursionError:
        problem = "cannot be validated: the references of the schema do not end"
        advice = "Remove references that lead back to themselves."
    except _TooManyChecks:
        problem = f"is too large for the schema: it needs over {MAX_CHECKS:,} checks"
        advice = "Ask for a shorter one, or write a schema with fewer alternatives (`anyOf`)."
    raise AttemptError("evaluator", f"{subject} {problem}", advice)


def json_path(steps: Iterable[str | int]) -> str:
    """The steps as a JSON path."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def one_line(text: str) -> str:
    """A text in a sentence, without quotes."""
    return quoted(text)[1:-1]
