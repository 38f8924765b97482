"""Reads `.agentevals.yaml` at the repository's root: the tests in quarantine, and some inputs, so
that a review on a developer's machine has the same ones as the pull request."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.quarantine import FILE, Quarantine, Quarantines
from agentevals_action.model.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    Steps,
    errors_at,
    fields_of,
)
from agentevals_action.settings import Settings
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, did_you_mean
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import shorten
from agentevals_action.suites.files.yaml_reader import read_settings_map, read_yaml, settings_map

_MISNAMED = ".agentevals.yml"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_FIELDS = "`watch` or `quarantine`"

_Globs = NonEmpty | Annotated[ListOf[NonEmpty], Field(min_length=1)]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class QuarantineEntry(FileModel):
    """Tests that run and are reported, and do not block until a day is over."""

    tests: _Globs = Field(description="Glob over test ids, or a list of them; `!glob` excludes.")
    suites: _Globs = Field(
        default=(),
        description="Glob over suite paths from the repository's root, or a list of them; every "
        "suite when left out.",
    )
    owner: _Words = Field(description="The person who is responsible for it.")
    reason: _Words = Field(description="Why these tests may fail.")
    expires: Annotated[
        str, Field(json_schema_extra={"format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
    ] = Field(
        description="The last day (UTC) of the quarantine, as YYYY-MM-DD; after it, the entry is "
        "an error."
    )

    @field_validator("expires")
    @classmethod
    def _is_day(cls, value: str) -> str:
        try:
            if _DAY.fullmatch(value) and date.fromisoformat(value):
                return value
        except ValueError:
            pass  # a day that no month has is reported below
        raise ValueError(f"{shorten(value)} is not a valid day; write it as YYYY-MM-DD")

    def quarantine(self, location: Location) -> Quarantine:
        """The quarantine of the entry at this location."""
        return Quarantine(
            tests=(self.tests,) if isinstance(self.tests, str) else self.tests,
            suites=(self.suites,) if isinstance(self.suites, str) else self.suites,
            owner=self.owner,
            reason=self.reason,
            expires=date.fromisoformat(self.expires),
            location=location,
        )


def _input(words: str) -> Any:
    return Field(
        default=None,
        description=f"{words}: the input of that name, where the workflow does not give it.",
    )


class Configuration(FileModel):
    """The root of the file."""

    quarantine: ListOf[QuarantineEntry] | None = Field(
        default=None, description="Tests that do not block for a while."
    )
    watch: _Globs | None = _input("The agent's own code")
    suites: _Globs | None = _input("Globs of the suite files")
    targets: NonEmpty | None = _input("The targets file")
    cache_dir: Annotated[NonEmpty | None, Field(alias="cache-dir")] = _input(
        "Folder of the stored replies"
    )

    @field_validator("watch", "suites", "targets", "cache_dir")
    @classmethod
    def _is_valid_input(cls, value: Any, info: ValidationInfo) -> Any:
        name = str(info.field_name).replace("_", "-")
        problems: dict[Steps, str | PydanticCustomError] = {}
        for index, text in enumerate([value] if isinstance(value, str) else value or ()):
            try:
                Settings.model_validate({name: text})
            except ValidationError as error:
                (found,) = error.errors(include_url=False)
                steps: Steps = () if isinstance(value, str) else (index,)
                problems[steps] = f"{shorten(text)} is not valid; {found['ctx']['error']}"
        if problems:
            raise errors_at(problems)
        return value

    def inputs(self) -> Mapping[str, str]:
        """The inputs that the file gives, as texts by name."""
        given = self.model_dump(exclude={"quarantine"}, exclude_none=True, by_alias=True)
        return {
            name: value if isinstance(value, str) else "\n".join(value)
            for name, value in given.items()
        }


def with_configuration(settings: Settings, root: Path) -> Settings:
    """The settings, with the inputs of the file in the repository at `root` that were not given;
    InvalidInput with the location of each error of the file."""
    findings = Findings()
    configuration, _ = _read_file(root, findings)
    if findings.errors:
        number = counted(len(findings.errors), "error")
        errors = list(map(str, sorted(findings.errors)))
        raise InvalidInput(f"{number} in {FILE}, nothing was run", errors=errors)
    return settings.with_texts(configuration.inputs())


def read_quarantines(
    head: Path, today: date, base: bytes | None = None, *, by_base: bool = False
) -> Quarantines:
    """The quarantines of a tree, with the diagnostics of its file; `today` is the day in UTC.

    With `by_base`, those in the base's file (`base`, empty if there is none) are read, too: those
    that only head has are not valid in head's own review, and without the base's commit (`base`
    None) nothing is in quarantine.
    Without `by_base` (a run of suites as they are, or nothing to compare with), head's file
    decides. Entries of the base that have expired are ignored: head may be the change that fixes
    them."""
    findings, of_base = Findings(), Findings()
    valid = []
    for entry, expiry in _quarantines(*_read_file(head, findings)):
        if entry.expires >= today:
            valid.append(entry)
            continue
        problem = (
            f"the quarantine of {shorten(', '.join(entry.tests))} expired on {entry.expires} "
            f"(owner {entry.owner}: {entry.reason})"
        )
        findings.error(expiry, problem, "fix the tests and remove it, or set a later day")
    known: tuple[Quarantine, ...] | None = None
    if by_base:
        read = _quarantines(*_read_content(base or b"", of_base))
        known = tuple(entry for entry, _ in read if entry.expires >= today)
        for error in of_base.errors:
            problem, advice = f"on base, {error.problem}", "its file puts nothing in quarantine"
            findings.warn(error.location, problem, advice)
        if base is None and valid:
            problem = "the base's tree is missing, so nothing is in quarantine in this review"
            findings.warn(Location(FILE), problem)
    return Quarantines(tuple(valid), known, findings.errors, findings.warnings)


def _read_file(root: Path, findings: Findings) -> tuple[Configuration, Map]:
    root = root.resolve()
    if os.path.lexists(root / FILE):
        return _read(read_settings_map(root / FILE, root, FILE, _FIELDS, findings), findings)
    if (root / _MISNAMED).exists():
        findings.warn(Location(_MISNAMED), "this file is not read", f"call it `{FILE}`")
    return Configuration(), Map(FILE, (1, 1))


def _read_content(content: bytes, findings: Findings) -> tuple[Configuration, Map]:
    try:
        return _read(settings_map(read_yaml(content, FILE), FILE, _FIELDS, findings), findings)
    except Unreadable as error:
        findings.unreadable(error)
        return Configuration(), Map(FILE, (1, 1))


def _read(data: Map, findings: Findings) -> tuple[Configuration, Map]:
    """The configuration, empty if the file has an error, and its data."""
    # Not warnings: a misspelled `watch` would be a green check, because nothing runs, and a
    # misspelled `suites` of an entry would put tests of every suite in quarantine.
    _report_unknown(data, {*fields_of(Configuration), "$schema"}, findings)
    entries = data.get("quarantine")
    for entry in entries if isinstance(entries, Items) else ():
        if isinstance(entry, Map):
            _report_unknown(entry, fields_of(QuarantineEntry), findings)
    configuration = findings.read(Configuration, data, "file")
    return configuration if configuration and not findings.errors else Configuration(), data


def _report_unknown(data: Map, known: Collection[str], findings: Findings) -> None:
    for key in data:
        if key not in known:
            advice = did_you_mean(key, known, "remove it")
            findings.error(data.key_location(key), f"the field `{key}` is unknown", advice)


def _quarantines(configuration: Configuration, data: Map) -> Iterator[tuple[Quarantine, Location]]:
    """The quarantines of a file, each with the location of its last day."""
    for index, entry in enumerate(configuration.quarantine or ()):
        item = data["quarantine"][index]
        yield entry.quarantine(item.location), item.value_location("expires")
