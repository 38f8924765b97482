"""What does not count against a change though it fails: tests in quarantine, and regressions that
somebody accepted."""

from dataclasses import dataclass
from datetime import date

from agentevals_action.model.diagnostic import Diagnostic, Location

#: Where it stands, at the repository's root.
FILE = ".agentevals.yaml"


@dataclass(frozen=True)
class Quarantine:
    """One entry of the file: tests that are run and told, and do not block until `expires` is over
    (that day included, UTC).

    `tests` are globs over test ids, `suites` globs over suite paths (empty: every suite); in both
    `!glob` takes out again and the last that matches decides. `owner` answers for it."""

    tests: tuple[str, ...]
    owner: str
    reason: str
    expires: date
    suites: tuple[str, ...] = ()
    location: Location = Location(FILE)


@dataclass(frozen=True)
class Quarantines:
    """The entries that hold today: `head` of the tree under test, `base` of the base's tree. With
    both, a test is in quarantine when each side covers it, so that no change puts its own test
    there; `base` None means that head's alone decide.

    `faults` are of head's file, expired entries included; `warnings` of either."""

    head: tuple[Quarantine, ...] = ()
    base: tuple[Quarantine, ...] | None = None
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Acceptance:
    """Somebody takes the regressions of a change on: the login of who put `label` on the pull
    request, for the head as it is now."""

    by: str
    label: str
