"""`.agentevals.yaml` at the repository's root: tests that may fail for a while, each with an owner,
a reason and a last day."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agentevals_action.entries.entry import Before, Entry, NonEmpty, Seen, checks
from agentevals_action.entries.reading import fields_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Quarantine, Quarantines
from agentevals_action.suites.files.diagnostics import Findings, kind, nearest, shown
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.settings_file import read_settings_file
from agentevals_action.suites.schema_models import ListOf

_LIKELY = ".agentevals.yml"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

Globs = NonEmpty | Annotated[ListOf[NonEmpty], Meta(min_length=1)]


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Words = Annotated[str, Before(_trimmed), Meta(min_length=1)]


class QuarantineEntry(Entry):
    """Tests that are run and told, and do not block until a day is over."""

    tests: Annotated[
        Globs, Meta(description="Glob over test ids, or a list of them; `!glob` takes out again.")
    ]
    suites: Annotated[
        Globs,
        Meta(
            description="Glob over suite paths from the repository's root, or a list of them; every suite when left out."
        ),
    ] = ()
    owner: Annotated[Words, Meta(description="Who answers for it.")]
    reason: Annotated[Words, Meta(description="Why these tests may fail.")]
    expires: Annotated[
        str,
        Meta(
            description="The last day (UTC) on which it holds, as YYYY-MM-DD; when it is over, the entry is an error.",
            extra_json_schema={"format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        ),
    ]

    @checks("expires")
    @classmethod
    def _is_day(cls, value: str, _seen: Seen) -> str:
        try:
            if _DAY.fullmatch(value) and date.fromisoformat(value):
                return value
        except ValueError:
            pass  # a day that no month has: told like every other text that is no day
        raise ValueError(f"{shown(value)} is no day; write it as YYYY-MM-DD")


class ConfigurationEntry(Entry):
    """The root of the file."""

    quarantine: Annotated[
        ListOf[QuarantineEntry] | None, Meta(description="Tests that do not block for a while.")
    ] = None


@dataclass(frozen=True)
class _Read:
    """One entry as it stands in its file; `expiry` is where its day stands."""

    quarantine: Quarantine
    expiry: Location


def read_quarantines(
    head: Path, today: date, base: Path | None = None, *, by_base: bool = False
) -> Quarantines:
    """The quarantines of a tree, with all that is wrong with its file; `today` is the day in UTC.

    With `by_base` those of the base's tree count as well: what head alone says does not hold in its
    own review. Without a tree (`base` None) nothing is in quarantine then. Without `by_base`, as in
    a run of suites as they are or where there is nothing to compare with, head's file decides.
    Entries of the base that have expired there just do not hold: head may be what mends them."""
    findings = Findings()
    entries = _holding(_read(head, findings), today, findings)
    if not by_base:
        return Quarantines(entries, None, findings.errors, findings.warnings)
    if base is None:
        if entries:
            findings.warn(
                Location(FILE),
                "the base's tree could not be had, so nothing is in quarantine in this review",
            )
        return Quarantines(entries, (), findings.errors, findings.warnings)
    there = Findings()
    known = _holding(_read(base, there), today, None)
    return Quarantines(
        entries, known, findings.errors, (*findings.warnings, *map(_of_base, there.errors))
    )


def _of_base(diagnostic: Diagnostic) -> Diagnostic:
    return Diagnostic(
        diagnostic.location,
        f"on base, {diagnostic.problem}",
        "what is wrong there puts nothing in quarantine",
    )


def _holding(
    read: Sequence[_Read], today: date, findings: Findings | None
) -> tuple[Quarantine, ...]:
    """The entries whose day is not over; the others are faults."""
    for one in read:
        entry = one.quarantine
        if findings is not None and entry.expires < today:
            what = shown(", ".join(entry.tests))
            problem = f"the quarantine of {what} expired on {entry.expires} (owner {entry.owner}: {entry.reason})"
            findings.error(one.expiry, problem, "mend the tests and remove it, or set a later day")
    return tuple(one.quarantine for one in read if one.quarantine.expires >= today)


def _read(root: Path, findings: Findings) -> tuple[_Read, ...]:
    root = root.resolve()
    if not os.path.lexists(root / FILE):
        if (root / _LIKELY).exists():
            findings.warn(Location(_LIKELY), "this file is not read", f"call it `{FILE}`")
        return ()
    data, _ = read_settings_file(root / FILE, root, FILE, findings)
    if data is None:
        return ()
    if not isinstance(data, Map):
        findings.error(
            Location(FILE), f"this file is {kind(data)}", "write an object with `quarantine`"
        )
        return ()
    for key in data:
        if key not in fields_of(ConfigurationEntry) and key != "$schema":
            findings.warn(
                data.key_location(key),
                f"the field `{key}` is unknown",
                _advice(key, ConfigurationEntry),
            )
    return tuple(_entries(data, findings))


def _entries(data: Map, findings: Findings) -> Iterator[_Read]:
    listed = data.get("quarantine")
    if listed is None:
        return
    if not isinstance(listed, Items):
        findings.error(
            data.value_location("quarantine"),
            f"`quarantine` is {kind(listed)}",
            "write a list of entries",
        )
        return
    for index, item in enumerate(listed):
        if not isinstance(item, Map):
            findings.error(
                listed.item_location(index),
                f"this entry is {kind(item)}",
                "write an object with `tests`",
            )
        elif (entry := _entry(item, findings)) is not None:
            yield _Read(_quarantine(entry, item.location), item.value_location("expires"))


def _entry(item: Map, findings: Findings) -> QuarantineEntry | None:
    known = True
    for key in item:
        if key not in fields_of(QuarantineEntry):
            # No mere warning: a misspelled `suites` would put tests of every suite in quarantine.
            findings.error(
                item.key_location(key),
                f"the field `{key}` of this entry is unknown",
                _advice(key, QuarantineEntry),
            )
            known = False
    entry = findings.read(QuarantineEntry, item, "entry")
    return entry if known else None


def _quarantine(entry: QuarantineEntry, place: Location) -> Quarantine:
    return Quarantine(
        tests=_listed(entry.tests),
        suites=_listed(entry.suites),
        owner=entry.owner,
        reason=entry.reason,
        expires=date.fromisoformat(entry.expires),
        location=place,
    )


def _listed(globs: str | tuple[str, ...]) -> tuple[str, ...]:
    return (globs,) if isinstance(globs, str) else globs


def _advice(key: str, model: type[Entry]) -> str:
    meant = nearest(key, fields_of(model))
    return f"did you mean `{meant}`?" if meant else "remove it"
