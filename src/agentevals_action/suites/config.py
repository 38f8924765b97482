"""`.agentv/config.yaml`: patterns that add to the search for suites, and defaults below a suite's
own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agentevals_action.entries.entry import Entry, NonEmpty
from agentevals_action.model.diagnostic import Location
from agentevals_action.suites.files.diagnostics import Findings, kind
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.settings_file import read_settings_file
from agentevals_action.suites.schema_models import ListOf, Seconds

FOLDER = ".agentv"
NAME = "config.yaml"


class DefaultsEntry(Entry):
    """What applies below a suite's own `execution`."""

    target: Annotated[
        NonEmpty | None, Meta(description="Name of the target that tests are put to.")
    ] = None
    timeout_seconds: Annotated[
        Seconds | None, Meta(description="Time limit of a test in seconds, 1-3600.")
    ] = None


class ConfigEntry(Entry):
    """What is read of the file; its other fields are AgentV's own."""

    eval_patterns: Annotated[
        ListOf[NonEmpty], Meta(description="Patterns of suite files, beside the usual ones.")
    ] = ()
    defaults: Annotated[DefaultsEntry, Meta(description="Defaults below a suite's own.")] = (
        DefaultsEntry()
    )


@dataclass(frozen=True)
class Config:
    """A configuration as read; `target_location` is where it names the default target."""

    path: str
    eval_patterns: tuple[str, ...] = ()
    target: str | None = None
    target_location: Location | None = None
    timeout_seconds: float | None = None


def nearest_file(folder: Path, root: Path, name: str) -> Path | None:
    """The file `.agentv/<name>` of the folder or the nearest one above it, up to the repository
    root."""
    while True:
        candidate = folder / FOLDER / name
        if candidate.is_file():
            return candidate
        if folder == root or folder == folder.parent:
            return None
        folder = folder.parent


def read_config(file: Path, root: Path, findings: Findings) -> Config:
    """Reads one configuration; its faults go to `findings`."""
    path = file.relative_to(root).as_posix()
    data = _read(file, root, path, findings)
    if data is None:
        return Config(path)
    entry = findings.read(ConfigEntry, data, "configuration")
    if entry is None:
        return Config(path)
    named = data["defaults"].value_location("target") if entry.defaults.target else None
    return Config(
        path, entry.eval_patterns, entry.defaults.target, named, entry.defaults.timeout_seconds
    )


def _read(file: Path, root: Path, path: str, findings: Findings) -> Map | None:
    data, _ = read_settings_file(file, root, path, findings)
    if data is not None and not isinstance(data, Map):
        findings.error(
            Location(path),
            f"this file is {kind(data)}",
            "write an object with `eval_patterns` or `defaults`",
        )
        return None
    return data
