"""Fills in the texts of a suite: `${{ NAME }}` from the environment, `{{ name }}` from the `vars`
of a test."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.suites.files.diagnostics import Findings
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.templating import fill_names

_REFERENCE = re.compile(r"\$\{\{\s*((?:secrets|env|vars)\.)?([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
#: The fields of a test in which `vars` are filled in, by every spelling.
_WITH_VARS = (
    "input",
    "input_messages",
    "input_files",
    "criteria",
    "expected_outcome",
    "expected_output",
    "expected_messages",
)


@dataclass(frozen=True)
class Environment:
    """The variables of the step for the texts of suites: only names in `allowed` are used, because
    a text is sent to the agent and shown in reports."""

    values: Mapping[str, str]
    allowed: frozenset[str]

    def fill(self, data: Any, findings: Findings) -> Any:
        """The data with every `${{ NAME }}` replaced; one that cannot be is an error."""

        def replace(text: str, location: Location) -> str:
            return _REFERENCE.sub(lambda match: self._value(match, location, findings), text)

        return _map_texts(data, Location(""), "${{", replace)

    def _value(self, match: re.Match[str], location: Location, findings: Findings) -> str:
        prefix, name = match.groups()
        problem = advice = ""
        if prefix:
            problem = f"`{match[0]}` is not a variable of the environment"
            advice = f"write `${{{{ {name} }}}}`, and name {name} in the input `env`"
        elif name not in self.allowed:
            problem = f"`{match[0]}` names a variable that suites may not use"
            advice = f"name {name} in the input `env`, or put a text that is meant so into a file"
        elif not self.values.get(name):
            problem = f"the variable {name} of `{match[0]}` is not set"
            advice = "set it in the workflow's `env:`"
        else:
            return self.values[name]
        findings.error(location, problem, advice)
        return match[0]


def fill_vars(entry: Map, variables: Map, findings: Findings) -> Map:
    """A test, or the root of a suite, with the variables of a test in its texts; an unknown name is
    an error."""
    values = plain(variables)

    def replace(text: str, location: Location) -> Any:
        try:
            return _positioned(fill_names(text, values), location)
        except ValueError as error:
            problem, _, advice = str(error).partition("; ")
            findings.error(location, problem, advice or "add it to `vars`")
            return text

    filled = entry.without(*(key for key in entry if key in _WITH_VARS))
    for key in entry:
        if key in _WITH_VARS:
            value = _map_texts(entry[key], entry.value_location(key), "{{", replace)
            filled.adopt(entry, key, key, value)
    return filled


def _map_texts(
    data: Any, location: Location, sign: str, replace: Callable[[str, Location], Any]
) -> Any:
    """The data with each text that contains `sign` replaced; data without one is returned as it
    is."""
    if isinstance(data, str):
        return replace(data, location) if sign in data else data
    if isinstance(data, Map):
        changed = Map(data.source, data.start)
        for key, value in data.items():
            made = _map_texts(value, data.value_location(key), sign, replace)
            if made is not value:
                changed[key] = made
        return data.replaced_by(changed) if changed else data
    if isinstance(data, Items):
        items = data.mapped(lambda value, where: _map_texts(value, where, sign, replace))
        is_same = all(made is value for made, value in zip(items, data, strict=True))
        return data if is_same else items
    return data


def _positioned(value: Any, location: Location) -> Any:
    """Data from a variable, at the location of the text that it replaces."""
    start = (location.line, location.column)
    if isinstance(value, Mapping):
        data = Map(location.path, start)
        for key, inner in value.items():
            data.put(key, _positioned(inner, location), (start, start))
        return data
    if isinstance(value, list):
        items = Items(location.path, start)
        for inner in value:
            items.put(_positioned(inner, location), start)
        return items
    return value
