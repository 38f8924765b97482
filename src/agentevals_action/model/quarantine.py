"""Waivers, which keep a regression from blocking: the quarantine, and acceptance by a label."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    Strict,
    StringConstraints,
    ValidationInfo,
)

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import Glob
from agentevals_action.validation.file_model import (
    ComputedStored,
    FileModel,
    ListOf,
    NonEmpty,
    expected,
)

#: The file of the quarantine, at the root of the repository.
FILE = ".agentevals.yaml"


def _read_globs(value: Any, info: ValidationInfo) -> Any:
    if info.context is None:  # of a stored run
        return value
    if not isinstance(value, str | list):
        raise expected("a text or a list")
    if value == []:
        raise expected("at least one item")
    return [value] if value and isinstance(value, str) else value


#: One glob, or a list of them.
Globs = Annotated[
    ListOf[Glob],
    BeforeValidator(
        _read_globs,
        json_schema_input_type=NonEmpty | Annotated[list[NonEmpty], Field(min_length=1)],
    ),
]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Quarantine(FileModel):
    """One entry of the file: tests that run, are reported and do not block until `expires` is over
    (that day included, UTC).

    `tests` are globs over test ids, `suites` globs over suite paths (empty: every suite); in both
    `!glob` excludes, and the last glob that matches decides. `owner` is responsible for it."""

    noun = "quarantine"

    tests: Globs = Field(description="Glob over test ids, or a list of them; `!glob` excludes.")
    owner: _Words = Field(description="The person who is responsible for it.")
    reason: _Words = Field(description="Why these tests may fail.")
    expires: Annotated[date, Strict(False)] = Field(
        description="The last day (UTC) of the quarantine, as YYYY-MM-DD; after it, the entry is "
        "an error."
    )
    suites: Globs = Field(
        default=(),
        description="Glob over suite paths from the repository's root, or a list of them; every "
        "suite when left out.",
    )
    location: ComputedStored[Location] = Location(FILE)


@dataclass(frozen=True)
class Quarantines:
    """The entries that hold today: `head` of the tree under test, `base` of the base's tree. With
    both, a test is in quarantine if entries of both sides cover it, so that no change puts its own
    test in quarantine; if `base` is None, head's entries alone decide.

    `errors` are about head's file, expired entries included; `warnings` about both files."""

    head: tuple[Quarantine, ...] = ()
    base: tuple[Quarantine, ...] | None = None
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Acceptance:
    """The acceptance of the regressions of the current head: the login of the user who put `label`
    on the pull request. With a `problem`, a sentence, the label exists and accepts nothing."""

    by: str
    label: str
    problem: str = ""
