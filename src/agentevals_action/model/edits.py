"""Edits: what a change does to the targets that answer tests and to the evaluators that score
them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Fingerprint


@dataclass(frozen=True)
class TargetDefinition:
    """A target on one side: `fields` are those of its entry, as JSON."""

    name: str
    provider: str
    fields: Mapping[str, str]
    location: Location


@dataclass(frozen=True)
class EvaluatorDefinition:
    """An evaluator on one side. `path` are the names from the test's evaluator down, joined by `/`.
    `fields` are its fields as JSON, `files` the digests of its files by path: those that it names,
    and those that its program imports. `judge` is the target that judges."""

    path: str
    fields: Mapping[str, str]
    files: Mapping[str, str]
    location: Location
    judge: TargetDefinition | None = None


@dataclass(frozen=True)
class TestDefinition:
    """What decides about a test on one side. `evaluators` are by path, `gates` the names of its
    gates, `references` the texts (JSON) that its evaluators compare with. With `has_program`, a
    program scores the answer."""

    __test__ = False  # pytest: not a test case

    id: str
    location: Location
    fingerprint: Fingerprint
    agent: TargetDefinition | None
    evaluators: Mapping[str, EvaluatorDefinition]
    gates: frozenset[str]
    references: Mapping[str, str]
    has_program: bool = False


class EditKind(StrEnum):
    """The part of a test that an edit affects, as a noun; in the order of reports."""

    GATE = "required gate"
    EVALUATOR = "evaluator"
    JUDGE = "judge target"
    TARGET = "target"
    REFERENCE = "reference"


@dataclass(frozen=True)
class FieldEdit:
    """One changed field, with its values as text; None for a value that is missing or that must not
    be shown."""

    name: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class Edit:
    """One edit. `name` is the path of the evaluator, the name of the target, or the field of the
    reference. `action` is `changed`, `added` or `removed`, `files` are the changed files of an
    evaluator, relative to the repository. `location` is on head, or on base for what was removed.
    `tests` are the ids of all tests with this edit."""

    kind: EditKind
    name: str
    action: str
    location: Location
    fields: tuple[FieldEdit, ...] = ()
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteEdits:
    """The edits of a suite. `rescored` are the ids of the tests with the same question and another
    scoring on both sides, `by_program` those of them that a program of base scores."""

    edits: tuple[Edit, ...] = ()
    rescored: frozenset[str] = field(default_factory=frozenset)
    by_program: frozenset[str] = field(default_factory=frozenset)
