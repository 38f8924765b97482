"""Reads `.agentevals.yaml` at the repository's root: the tests in quarantine, the runners of
others, and some inputs, so that a review on a developer's machine has the inputs of a pull
request's review."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Globs, Quarantine, Quarantines
from agentevals_action.model.runner import Runner
from agentevals_action.settings import Settings
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.positions import Document
from agentevals_action.suites.documents.yaml_reader import read_settings_file, read_yaml
from agentevals_action.suites.find_skills import SkillSettings
from agentevals_action.suites.reading import FileReader
from agentevals_action.validation.field_errors import describe_value, shorten
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    Steps,
    errors_at,
    spelled,
)

_MISNAMED = (".agentevals.yml", "agentevals.yaml", "agentevals.yml")
_FIELDS = "`watch`, `skills`, `quarantine` or `runners`"


def _input(name: str, label: str) -> Any:
    return spelled(
        name,
        default=None,
        description=f"{label}: the input of that name, where the workflow does not give it.",
    )


class Configuration(FileModel):
    """The root of the file."""

    noun = "configuration"

    quarantine: ListOf[Quarantine] | None = Field(
        default=None, description="Tests that do not block for a while."
    )
    runners: ListOf[Runner] | None = Field(
        default=None, description="Programs of others, each with the suites that it runs."
    )
    skills: SkillSettings | None = Field(
        default=None, description="Which tests of skills run (`evals/evals.json`), and where."
    )
    watch: Globs | None = _input("watch", "The agent's own code")
    suites: Globs | None = _input("suites", "Globs of the suite files")
    targets: NonEmpty | None = _input("targets", "The targets file")
    cache_dir: NonEmpty | None = _input("cache-dir", "Folder of the stored replies")

    @field_validator("watch", "suites", "targets", "cache_dir")
    @classmethod
    def _is_valid_input(cls, value: Any, info: ValidationInfo) -> Any:
        name = str(info.field_name).replace("_", "-")
        problems: dict[Steps, str | PydanticCustomError] = {}
        for index, text in enumerate([value] if isinstance(value, str) else value or ()):
            try:
                Settings.model_validate({name: text})
            except ValidationError as error:
                (detail,) = error.errors(include_url=False)
                steps: Steps = () if isinstance(value, str) else (index,)
                problems[steps] = f"{shorten(text)} is not valid; {detail['ctx']['error']}"
        if problems:
            raise errors_at(problems)
        return value

    def inputs(self) -> Mapping[str, str]:
        """The inputs that the file gives, as texts by name."""
        given = self.model_dump(exclude={"quarantine", "runners", "skills"}, exclude_none=True)
        return {
            name.replace("_", "-"): value if isinstance(value, str) else "\n".join(value)
            for name, value in given.items()
        }


@dataclass(frozen=True)
class ConfigurationFile:
    """The content of the file, empty where it has an error, and its diagnostics."""

    content: Configuration = field(default_factory=Configuration)
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    def complete(self, settings: Settings) -> Settings:
        """The settings, with the inputs of the file that were not given; InvalidInput with the
        location of each error of the file."""
        if self.errors:
            number = counted(len(self.errors), "error")
            raise InvalidInput(
                f"{number} in {FILE}, nothing was run", errors=list(map(str, self.errors))
            )
        return settings.with_texts(self.content.inputs())

    def entries(self, today: date) -> tuple[tuple[Quarantine, ...], tuple[Quarantine, ...]]:
        """The quarantines that hold on a day (in UTC), and those that have expired."""
        entries = self.content.quarantine or ()
        holds = tuple(entry for entry in entries if entry.expires >= today)
        return holds, tuple(entry for entry in entries if entry.expires < today)


def read_quarantines(
    head: ConfigurationFile, today: date, base: bytes | None = None, *, by_base: bool = False
) -> Quarantines:
    """The quarantines of a tree, with the diagnostics of its file; `today` is the day in UTC.

    With `by_base`, the quarantines in the base's file (`base`, empty if there is none) are read,
    too: quarantines that only head has are not valid in head's own review, and without the base's
    commit (`base` None) nothing is in quarantine.
    Without `by_base` (a run of suites as they are, or nothing to compare with), head's file
    decides. Entries of the base that have expired are ignored: head may be the change that fixes
    them."""
    valid, expired = head.entries(today)
    errors, warnings = list(head.errors), list(head.warnings)
    for entry in expired:
        problem = (
            f"the quarantine of {shorten(', '.join(entry.tests))} expired on {entry.expires} "
            f"(owner {entry.owner}: {entry.reason})"
        )
        advice = "fix the tests and remove it, or set a later day"
        errors.append(Diagnostic(entry.location, problem, advice))
    of_base_valid: tuple[Quarantine, ...] | None = None
    if by_base:
        of_base = parse_configuration(base or b"")
        of_base_valid, _ = of_base.entries(today)
        for error in of_base.errors:
            problem, advice = f"on base, {error.problem}", "its file puts nothing in quarantine"
            warnings.append(Diagnostic(error.location, problem, advice))
        if base is None and valid:
            problem = "the base's tree is missing, so nothing is in quarantine in this review"
            warnings.append(Diagnostic(Location(FILE), problem))
    return Quarantines(valid, of_base_valid, tuple(errors), tuple(warnings))


def read_configuration(root: Path) -> ConfigurationFile:
    """The file of the repository at `root`, empty where there is none."""
    root = root.resolve()
    if os.path.lexists(root / FILE):
        return _validated(lambda: read_settings_file(root / FILE, root, FILE))
    warnings = (
        Diagnostic(Location(name), "this file is not read", f"call it `{FILE}`")
        for name in _MISNAMED
        if (root / name).exists()
    )
    return ConfigurationFile(warnings=tuple(warnings))


def parse_configuration(content: bytes) -> ConfigurationFile:
    """The file with this content."""
    return _validated(lambda: read_yaml(content, FILE))


def _validated(read: Callable[[], Document]) -> ConfigurationFile:
    diagnostics = DiagnosticCollector()
    try:
        document = read()
    except Unreadable as error:
        return ConfigurationFile(errors=error.errors)
    data, positions = document.data, document.positions
    if data is None:
        return ConfigurationFile()
    if not isinstance(data, dict):
        problem = f"this file is {describe_value(data)}"
        advice = f"write an object with {_FIELDS}"
        return ConfigurationFile(errors=(Diagnostic(Location(FILE), problem, advice),))
    content = FileReader(Path(), Path(), positions, diagnostics).validate(Configuration, data)
    if content is None or diagnostics.errors:
        return ConfigurationFile(errors=diagnostics.errors)
    return ConfigurationFile(content)
