"""Edits: what a change does to tests, to the evaluators that score them, and to their targets."""

from dataclasses import dataclass, field
from enum import StrEnum

from agentevals_action.model.diagnostic import Location


class EditKind(StrEnum):
    """What an edit changes, as a noun; in the order of reports."""

    GATE = "required gate"
    EVALUATOR = "evaluator"
    TARGET = "target"
    RUNNER = "runner"
    TEST = "test"


@dataclass(frozen=True)
class Edit:
    """One edit. `name` is the path of names of an evaluator, the name of a target or of a runner,
    or the id of a test whose reference changed. `action` is `changed`, `added` or `removed`.
    `location` is on head, or on base for what was removed. `tests` are the ids of all tests with
    this edit, none of a runner."""

    kind: EditKind
    name: str
    action: str
    location: Location
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteEdits:
    """The edits of a suite. `rescored` are the ids of the tests with the same question and another
    scoring on both sides, `by_program` those of them that a program of base scores."""

    edits: tuple[Edit, ...] = ()
    rescored: frozenset[str] = field(default_factory=frozenset)
    by_program: frozenset[str] = field(default_factory=frozenset)
