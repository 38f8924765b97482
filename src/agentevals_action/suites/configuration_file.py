"""Reads the inputs that `.agentevals.yaml` at the repository's root may hold, so that a review on a
developer's machine has the same ones as the pull request."""

import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.quarantine import FILE
from agentevals_action.settings import Settings
from agentevals_action.suites.files.diagnostics import Findings
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_settings_map
from agentevals_action.suites.quarantine_file import read_quarantines

_LISTS = ("watch", "suites")
#: The inputs that the file may hold, with the values that they may have there.
INPUTS = {
    **dict.fromkeys(_LISTS, "a text, or a list of texts"),
    "targets": "the path of a targets file",
    "cassettes": "the path of a folder",
}


def with_configuration(settings: Settings, root: Path) -> Settings:
    """The settings, with the inputs of the file in the repository at `root` that were not given;
    InvalidInput with the location of each error of the file, those of its quarantine included."""
    root, findings = root.resolve(), Findings()
    if not os.path.lexists(root / FILE):
        return settings
    data = read_settings_map(root / FILE, root, FILE, "`watch` or `quarantine`", findings)
    found = {
        field: _read(name, data, findings)
        for name in INPUTS
        if name in data and (field := name.replace("-", "_")) not in settings.model_fields_set
    }
    if findings.errors:
        quarantine = read_quarantines(root, datetime.now(UTC).date()).errors
        errors = sorted({*findings.errors, *quarantine}, key=lambda error: error.location)
        number = counted(len(errors), "error")
        raise InvalidInput(f"{number} in {FILE}, nothing was run", errors=list(map(str, errors)))
    return settings.model_copy(update=found)


def _read(name: str, data: Map, findings: Findings) -> object:
    """The value of an input; None, with an error for each text that is invalid."""
    value, location = data[name], data.value_location(name)
    listed: list[tuple[object, Location]] = [(value, location)]
    if isinstance(value, Items) and value and name in _LISTS:
        listed = list(value.located())
    texts = [text for text, location in listed if _is_valid(name, text, location, findings)]
    if len(texts) < len(listed):
        return None
    return getattr(
        Settings.model_validate({name: "\n".join(map(str, texts))}), name.replace("-", "_")
    )


def _is_valid(name: str, text: object, location: Location, findings: Findings) -> bool:
    problem, advice = f"`{name}` is {describe_value(text)}", f"write {INPUTS[name]}"
    if isinstance(text, str) and text.strip():
        try:
            Settings.model_validate({name: text})
        except ValidationError as error:
            (found,) = error.errors(include_url=False)
            advice = str(found["ctx"]["error"])
        else:
            return True
    findings.error(location, problem, advice)
    return False
