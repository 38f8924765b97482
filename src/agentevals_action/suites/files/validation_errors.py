"""Converts `pydantic.ValidationError` to problems with location and advice."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.validation.field_errors import FieldError, dotted, field_errors
from agentevals_action.model.validation.file_model import Steps
from agentevals_action.suites.files.positions import Map, locate

#: The advice for problems that a validator raises without one.
_ADVICE = {
    "there is no file": "name a file that exists, from the folder of this one",
    "leaves the repository": "name a file of the repository",
}


def validation_errors(
    error: ValidationError, data: Map, what: str, skipped: str = ""
) -> Iterator[tuple[Location, str, str]]:
    """Location, problem and advice of each error about `data`; `what` names the object (`test`),
    `skipped` a field whose errors are already known."""
    for one in field_errors(error, data):
        if one.steps[:1] != (skipped,):
            yield _located(one, data, what)


def _located(error: FieldError, data: Map, what: str) -> tuple[Location, str, str]:
    steps, location = locate(data, error.steps)
    if error.is_missing:
        steps = (*steps, error.steps[-1])
        return location, f"`{dotted(steps)}` is missing", f"every {_owner(steps, what)} needs it"
    name = f"`{dotted(steps)}`" if steps else f"this {what}"
    if error.message:
        problem, _, advice = error.message.partition("; ")
        known = (known for sign, known in _ADVICE.items() if sign in problem)
        return location, f"{name}: {problem}", advice or next(known, "correct it")
    advice = f"write {' or '.join(error.expected) or 'something else'}"
    if error.expected == ("a text",) and isinstance(error.value, int | float):
        advice += f', in quotes: "{str(error.value).lower()}"'
    return location, f"{name} is {describe_value(error.value)}", advice


def _owner(steps: Steps, what: str) -> str:
    if len(steps) == 1:
        return what
    return "item" if isinstance(steps[-2], int) else f"`{steps[-2]}`"


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
    return cut(repr(value) if isinstance(value, str) else str(value), 60)
