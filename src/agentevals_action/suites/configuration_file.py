"""Reads the inputs that `.agentevals.yaml` at the repository's root may hold, so that a review on a
developer's machine has the same ones as the pull request."""

import os
from pathlib import Path

from pydantic import ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.quarantine import FILE
from agentevals_action.settings import Settings
from agentevals_action.suites.files.diagnostics import Findings
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_settings_map

#: The inputs that the file may hold, as a text or a list of texts.
INPUTS = ("watch", "suites", "targets", "cassettes")


def with_configuration(settings: Settings, root: Path) -> Settings:
    """The settings, with the inputs of the file in the repository at `root` that were not given;
    InvalidInput with the location of each error."""
    root, findings = root.resolve(), Findings()
    if not os.path.lexists(root / FILE):
        return settings
    data = read_settings_map(root / FILE, root, FILE, "`watch` or `quarantine`", findings)
    found = {
        name: _read(name, data, findings)
        for name in INPUTS
        if name in data and name not in settings.model_fields_set
    }
    if findings.errors:
        number = counted(len(findings.errors), "error")
        errors = [str(error) for error in findings.errors]
        raise InvalidInput(f"{number} in {FILE}, nothing was run", errors=errors)
    return settings.model_copy(update=found)


def _read(name: str, data: Map, findings: Findings) -> object:
    value = data[name]
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        problem = f"`{name}` is {describe_value(value)}"
        findings.error(data.value_location(name), problem, "write a text, or a list of texts")
        return None
    try:
        return getattr(Settings.model_validate({name: "\n".join(texts)}), name)
    except ValidationError as error:
        (found,) = error.errors(include_url=False)
        problem = f"`{name}` is {describe_value(value)}"
        findings.error(data.value_location(name), problem, str(found["ctx"]["error"]))
        return None
