"""Converts `pydantic.ValidationError` to plain sentences about the data of a file or a reply."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentevals_action.formatting import cut
from agentevals_action.validation.file_model import Steps

_LINE = 200  # characters of an error of a stored file

_WORD = 100  # characters of a word that may be a misspelling of a known word
_SHOWN = 60  # characters of a value in a sentence

#: Errors that are converted: the memory for hostile data is limited.
_MOST = 25_000


@dataclass(frozen=True)
class FieldError:
    """One invalid value: either it `is_missing`, or a validator's `message` ("problem; advice"), or
    descriptions of the values that are `expected` there."""

    steps: Steps
    value: Any
    is_missing: bool = False
    expected: tuple[str, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        """The error without the value, which may be a key."""
        problem = "it is missing" if self.is_missing else self.message
        problem = problem or f"write {' or '.join(self.expected) or 'something else'}"
        return f"`{dotted(self.steps)}`: {problem}" if self.steps else problem

    def sentences(self, label: str) -> tuple[str, str]:
        """Problem and advice for the author of a file; `label` is the noun of the object (`test`),
        or its own name in backticks."""
        steps, is_named = self.steps, label.startswith("`")
        if self.is_missing and len(steps) == 1 and is_named:
            article = "" if dotted(steps).endswith("s") else "a "
            return f"{label} needs {article}`{dotted(steps)}`", "add it"
        if self.is_missing:
            owner = label if len(steps) == 1 else f"`{steps[-2]}`"
            owner = "item" if len(steps) > 1 and isinstance(steps[-2], int) else owner
            return f"`{dotted(steps)}` is missing", f"every {owner} needs it"
        owner = label if is_named else f"this {label}"
        name = f"`{dotted(steps)}`" if steps else owner
        if self.message:
            problem, _, advice = self.message.partition("; ")
            usual = (usual for sign, usual in _ADVICE.items() if sign in problem)
            return f"{name}: {problem}", advice or next(usual, "correct it")
        advice = f"write {' or '.join(self.expected) or 'something else'}"
        if self.expected == ("a text",) and isinstance(self.value, int | float):
            advice += f', in quotes: "{str(self.value).lower()}"'
        return f"{name} is {describe_value(self.value)}", advice


#: The advice for problems that a validator raises without advice.
_ADVICE = {
    "there is no file": "name a file that exists, from the folder of this one",
    "leaves the repository": "name a file of the repository",
}


def field_errors(error: ValidationError, data: Any) -> list[FieldError]:
    """The errors about `data`, in order.

    Of a union, only the errors count that are deeper in the value, or that a validator raised;
    without such errors, any of its types is expected."""
    entries: list[tuple[FieldError, Steps | None]] = []
    decided: set[Steps] = set()  # the steps of values with errors that decide a union
    for details in error.errors(include_url=False, include_input=False)[:_MOST]:
        entry, union = _follow(data, details)
        if details["type"] == "too_short" and len(entry.value) >= details["ctx"]["min_length"]:
            continue  # pydantic counts valid items only, and has reported the others
        entries.append((entry, union))
        is_raised = bool(entry.message) or entry.is_missing
        decided.update(entry.steps[:length] for length in range(len(entry.steps) + is_raised))
    errors: dict[tuple[Steps, int], FieldError] = {}
    for number, (entry, union) in enumerate(entries):
        if union is None or len(entry.steps) > len(union) or entry.message or entry.is_missing:
            errors[entry.steps, number] = entry
        elif union not in decided:
            earlier = errors.get((union, -1))
            expected = dict.fromkeys((*(earlier.expected if earlier else ()), *entry.expected))
            errors[union, -1] = FieldError(union, entry.value, expected=tuple(expected))
    return list(errors.values())


def describe(error: ValidationError, data: Any) -> str:
    """All errors about `data` in one line, without values."""
    return "; ".join(map(str, field_errors(error, data)))


def invalid_json(error: ValidationError) -> str:
    """The first error of `model_validate_json` in one line: location and problem."""
    details = error.errors(include_url=False, include_input=False)[0]
    where = f"`{dotted(details['loc'])}`: " if details["loc"] else ""
    return cut(f"{where}{details['msg']}", _LINE)


def describe_value(value: Any) -> str:
    """The type of a value in words, with the value when it is short."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {shorten(value)}" if value else "an empty text"
    return f"the number {shorten(value)}"


def shorten(value: Any) -> str:
    """A value in a sentence: on one line, quoted when a text, cut at 60 characters."""
    return cut(repr(value) if isinstance(value, str) else str(value), _SHOWN)


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known word that an unknown word probably means: their similarity is at least `least`
    (0-1), in upper or lower case."""
    return _nearest(word, frozenset(known), least) if len(word) <= _WORD else None


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str], least: float) -> str | None:
    by_folded = {name.casefold(): name for name in sorted(known)}
    matches = difflib.get_close_matches(word.casefold(), by_folded, 1, least)
    return by_folded[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The advice for an unknown word: the known word that it probably means, if any."""
    meant = nearest(word, known)
    return f"did you mean `{meant}`?" if meant else otherwise


def dotted(steps: Steps) -> str:
    """The path to a value as it is written: `tests[0].id`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _follow(data: Any, details: ErrorDetails) -> tuple[FieldError, Steps | None]:
    """The error with the steps that exist in the data, and the steps of the innermost union.
    pydantic adds steps of its own: the branch of a union, or a field of a long form."""
    steps: list[str | int] = []
    union: Steps | None = None
    is_missing = details["type"] == "missing"
    for step in details["loc"][:-1] if is_missing else details["loc"]:
        if _has(data, step):
            steps.append(step)
            data = data[step]
        elif step == "[key]":
            data = steps[-1]
        else:
            union = (*steps,)
    if is_missing and isinstance(data, Mapping | list | tuple):
        return FieldError((*steps, details["loc"][-1]), None, is_missing=True), union
    return _field_error((*steps,), data, details), union


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, Mapping):
        return step in data
    return isinstance(data, list | tuple) and isinstance(step, int) and step < len(data)


def _field_error(steps: Steps, value: Any, details: ErrorDetails) -> FieldError:
    if details["type"] == "extra_forbidden":
        return FieldError(steps, value, message="the field is unknown")
    context = details.get("ctx", {})
    if details["type"] == "value_error":
        return FieldError(steps, value, message=str(context["error"]))
    if details["type"] == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return FieldError(steps, value, expected=("a finite number",))
    expect = _EXPECTED.get(details["type"], "").format(**context)
    if context.get("min_length") == 1:
        expect = _EXPECTED_ONE[details["type"]]
    if details["type"] == "literal_error":
        expect = expect.replace("'", "`")
    return FieldError(steps, value, expected=(expect,) if expect else ())


#: What to write instead, by the type of an error of pydantic; in braces its context.
_EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "is_instance_of"),
        "an object",
    ),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(
        (
            "date_type",
            "date_parsing",
            "date_from_datetime_parsing",
            "date_from_datetime_inexact",
        ),
        "a day as YYYY-MM-DD",
    ),
    "expected": "{words}",
    "string_type": "a text",
    "string_unicode": "a text in UTF-8",
    "string_too_short": "a text of {min_length} characters or more",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "bool_type": "`true` or `false`",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "a number that is {ge:.15g} or more",
    "greater_than": "a number greater than {gt:.15g}",
    "less_than_equal": "a number that is {le:.15g} or less",
    "less_than": "a number less than {lt:.15g}",
    "literal_error": "{expected}",
    "too_short": "{min_length} items or more",
    "too_long": "at most {max_length} items",
}
#: The same if only an empty value is too short.
_EXPECTED_ONE = {"string_too_short": "a text that is not empty", "too_short": "at least one item"}
