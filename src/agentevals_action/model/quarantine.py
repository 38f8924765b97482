"""Waivers, which keep a regression from blocking: the quarantine, and acceptance by a label."""

from dataclasses import dataclass, field
from datetime import date

from agentevals_action.model.diagnostic import Diagnostic, Location

#: The file of the quarantine, at the root of the repository.
FILE = ".agentevals.yaml"


@dataclass(frozen=True)
class Quarantine:
    """One entry of the file: tests that run, are reported and do not block until `expires` is over
    (that day included, UTC).

    `tests` are globs over test ids, `suites` globs over suite paths (empty: every suite); in both
    `!glob` takes out again and the last that matches decides. `owner` answers for it."""

    tests: tuple[str, ...]
    owner: str
    reason: str
    expires: date
    suites: tuple[str, ...] = ()
    location: Location = field(default_factory=lambda: Location(FILE))


@dataclass(frozen=True)
class Quarantines:
    """The entries that hold today: `head` of the tree under test, `base` of the base's tree. With
    both, a test is in quarantine when each side covers it, so that no change puts its own test
    there; `base` None means that head's alone decide.

    `errors` are of head's file, expired entries included; `warnings` of either."""

    head: tuple[Quarantine, ...] = ()
    base: tuple[Quarantine, ...] | None = None
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Acceptance:
    """The acceptance of the regressions of the current head: the login of the user who put `label`
    on the pull request. With a `problem`, a sentence, the label is there and accepts nothing."""

    by: str
    label: str
    problem: str = ""
