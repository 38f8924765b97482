"""Fills in the texts of a suite: `${{ NAME }}` from the environment, `{{ name }}` from the `vars`
of a test."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Test
from agentevals_action.suites.reading import FileReader
from agentevals_action.templating import fill_names
from agentevals_action.validation.file_model import list_spellings

_REFERENCE = re.compile(r"\$\{\{\s*((?:secrets|env|vars)\.)?([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
#: The fields of a test in which `vars` are filled in.
_WITH_VARS = ("input", "input_files", "criteria", "expected_output")

#: Replaces a text at a location by other data.
Replace = Callable[[str, Location], Any]


@dataclass(frozen=True)
class Environment:
    """The variables of the step for the texts of suites: only names in `allowed` are used, because
    a text is sent to the agent and shown in reports."""

    values: Mapping[str, str]
    allowed: frozenset[str]

    def fill(self, data: Any, reader: FileReader) -> Any:
        """The data with every `${{ NAME }}` replaced; a name without a value is an error."""

        def replace(text: str, location: Location) -> str:
            return _REFERENCE.sub(lambda match: self._value(match, location, reader), text)

        return _replaced(data, "${{", replace, reader)

    def _value(self, match: re.Match[str], location: Location, reader: FileReader) -> str:
        prefix, name = match.groups()
        if prefix:
            problem = f"`{match[0]}` is not a variable of the environment"
            advice = f"write `${{{{ {name} }}}}`, and name {name} in the input `env`"
        elif name not in self.allowed:
            problem = f"`{match[0]}` names a variable that suites may not use"
            advice = f"name {name} in the input `env`, or put a text that is meant so into a file"
        elif not self.values.get(name):
            problem = f"the variable {name} of `{match[0]}` is not set"
            advice = "set it in the environment; in a workflow, in the step's `env:`"
        else:
            return self.values[name]
        reader.error(location, problem, advice)
        return match[0]


def fill_vars(
    entry: dict[str, Any], variables: Mapping[str, Any], reader: FileReader
) -> dict[str, Any]:
    """A test, or the root of a suite, with the variables of a test in its texts; an unknown name is
    an error."""

    def replace(text: str, location: Location) -> Any:
        try:
            return fill_names(text, variables)
        except ValueError as error:
            problem, _, advice = str(error).partition("; ")
            reader.error(location, problem, advice or "add it to `vars`")
            return text

    names = list_spellings(Test)
    fields = reader.only(entry, [key for key in entry if names.get(key) in _WITH_VARS])
    filled = {**entry, **_replaced(fields, "{{", replace, reader)}
    reader.positions.copy(entry, filled)
    return filled


def _replaced(data: Any, sign: str, replace: Replace, reader: FileReader) -> Any:
    """The objects and lists with each text that contains `sign` replaced; data without one is
    returned as it is."""
    if not isinstance(data, dict | list):
        return data
    steps = data if isinstance(data, dict) else range(len(data))
    changed: dict[Any, Any] = {}
    for step in steps:
        value = data[step]
        if isinstance(value, str):
            if sign in value:
                changed[step] = replace(value, reader.positions.value(data, step))
        elif (changed_value := _replaced(value, sign, replace, reader)) is not value:
            changed[step] = changed_value
    if not changed:
        return data
    copy = data.copy()
    for step, value in changed.items():
        copy[step] = value
    reader.positions.copy(data, copy)
    return copy
