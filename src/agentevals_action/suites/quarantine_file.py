"""Reads `.agentevals.yaml` at the repository's root: the tests in quarantine, each with an owner, a
reason and a last day."""

import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.quarantine import FILE, Quarantine, Quarantines
from agentevals_action.model.validation.file_model import FileModel, ListOf, NonEmpty, fields_of
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, did_you_mean
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value, shorten
from agentevals_action.suites.files.yaml_reader import read_settings_map, read_yaml, settings_map

_MISNAMED = ".agentevals.yml"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


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


class Configuration(FileModel):
    """The root of the file."""

    quarantine: ListOf[QuarantineEntry] | None = Field(
        default=None, description="Tests that do not block for a while."
    )
    watch: _Globs | None = Field(
        default=None,
        description="The agent's own code: the input of that name, where the workflow does not "
        "give it.",
    )
    suites: _Globs | None = Field(
        default=None,
        description="Globs of the suite files: the input of that name, where the workflow does not "
        "give it.",
    )
    targets: NonEmpty | None = Field(
        default=None,
        description="The targets file: the input of that name, where the workflow does not give "
        "it.",
    )
    cassettes: NonEmpty | None = Field(
        default=None,
        description="The folder of the cassettes: the input of that name, where the workflow does "
        "not give it.",
    )


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
    entries = []
    for entry, expiry in _read_entries(_read_file(head, findings), findings):
        if entry.expires >= today:
            entries.append(entry)
            continue
        problem = (
            f"the quarantine of {shorten(', '.join(entry.tests))} expired on {entry.expires} "
            f"(owner {entry.owner}: {entry.reason})"
        )
        findings.error(expiry, problem, "fix the tests and remove it, or set a later day")
    known: tuple[Quarantine, ...] | None = None
    if by_base:
        read = _read_entries(_read_content(base or b"", of_base), of_base)
        known = tuple(entry for entry, _ in read if entry.expires >= today)
        for error in of_base.errors:
            problem, advice = f"on base, {error.problem}", "this entry puts nothing in quarantine"
            findings.warn(error.location, problem, advice)
        if base is None and entries:
            problem = "the base's tree is missing, so nothing is in quarantine in this review"
            findings.warn(Location(FILE), problem)
    return Quarantines(tuple(entries), known, findings.errors, findings.warnings)


def _read_file(root: Path, findings: Findings) -> Map:
    root = root.resolve()
    if not os.path.lexists(root / FILE):
        if (root / _MISNAMED).exists():
            findings.warn(Location(_MISNAMED), "this file is not read", f"call it `{FILE}`")
        return Map(FILE, (1, 1))
    return read_settings_map(root / FILE, root, FILE, "`quarantine`", findings)


def _read_content(content: bytes, findings: Findings) -> Map:
    try:
        return settings_map(read_yaml(content, FILE), FILE, "`quarantine`", findings)
    except Unreadable as error:
        findings.unreadable(error)
        return Map(FILE, (1, 1))


def _read_entries(data: Map, findings: Findings) -> tuple[tuple[Quarantine, Location], ...]:
    """The valid quarantines in a file, each with the location of its last day."""
    known = fields_of(Configuration)
    for key in data:
        if key not in known and key != "$schema":
            advice = did_you_mean(key, known, "remove it")
            # Not a warning: a misspelled `watch` would be a green check, because nothing runs.
            findings.error(data.key_location(key), f"the field `{key}` is unknown", advice)
    listed = data.get("quarantine")
    if isinstance(listed, Items):
        return tuple(_valid_entries(listed, findings))
    if listed is not None:
        problem = f"`quarantine` is {describe_value(listed)}"
        findings.error(data.value_location("quarantine"), problem, "write a list of entries")
    return ()


def _valid_entries(listed: Items, findings: Findings) -> Iterator[tuple[Quarantine, Location]]:
    """The valid entries: an invalid one does not disable the others."""
    known = fields_of(QuarantineEntry)
    for item, location in listed.located():
        if not isinstance(item, Map):
            problem = f"this entry is {describe_value(item)}"
            findings.error(location, problem, "write an object with `tests`")
            continue
        unknown = [key for key in item if key not in known]
        for key in unknown:
            # Not a warning: a misspelled `suites` would put tests of every suite in quarantine.
            problem = f"the field `{key}` of this entry is unknown"
            findings.error(item.key_location(key), problem, did_you_mean(key, known, "remove it"))
        entry = findings.read(QuarantineEntry, item, "entry")
        if entry and not unknown:
            yield entry.quarantine(item.location), item.value_location("expires")
