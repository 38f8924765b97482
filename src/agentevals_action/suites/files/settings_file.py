"""A YAML file beside the suites (`.agentv/…`): its data, or why it cannot be read."""

from pathlib import Path
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.yaml_reader import read_yaml_file


def read_settings_file(file: Path, root: Path, path: str, findings: Findings) -> tuple[Any, bool]:
    """The data of a file that stands at `path`, and whether it could be read; when not, `findings`
    say why."""
    if not file.resolve().is_relative_to(root):
        findings.error(
            Location(path),
            "this file leaves the repository",
            "replace the symbolic link by the file",
        )
        return None, False
    try:
        return read_yaml_file(file, path), True
    except Unreadable as error:
        findings.unreadable(error)
    except OSError as error:
        findings.error(
            Location(path), f"this file cannot be read ({error.strerror})", "make it readable"
        )
    return None, False
