"""A run without its rows: what ran, why, and what decides, as `run.json` has it; and the edits of
a change to tests, to the evaluators that score them, and to their targets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agentevals_action.model.baseline import BaselineInfo, BaseSuite
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.judge import CALIBRATION_FILE, Floor
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantines
from agentevals_action.model.result import CAMEL_CASE
from agentevals_action.model.skill import name_suite
from agentevals_action.model.variant import Variant

#: Jobs of a matrix, at most: https://docs.github.com/en/actions/reference/limits
MAX_SHARDS = 256


@dataclass(frozen=True)
class Shard:
    """One of `total` shards, numbered from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


#: What a suite takes on each side: US dollars, milliseconds.
Figure = Literal["cost", "latency"]


@dataclass(frozen=True)
class Policy:
    """The settings that decide: `fail_on` contains `gates`, `regressions`, `failures`, `pairwise`
    or `never`; `min_pass_rate` and `min_pass_all` are 0–1 over the scored tests; `on_inconclusive`
    is `fail`, `neutral` or `pass`. `max_cost_increase` and `max_latency_increase` are shares of
    base's figure (0.2 is 20 %). `accept_label` appears in the reasons only. `untouched` is
    `neutral` if a change that affects no suite makes the check neutral. At most `confirm` fresh
    samples are taken of a suspect, `alpha` (0–1) is the probability of a false regression for the
    whole run. With `asks_person`, a person can repeat the run with keys: the check run of an
    inconclusive run asks for that, and blocks. A judge under the `judge_floor` is
    advisory."""

    fail_on: frozenset[str]
    min_pass_rate: float | None = None
    on_inconclusive: Literal["fail", "neutral", "pass"] = "fail"
    accept_label: str = "agentevals:accept"
    untouched: str = "pass"
    confirm: int = 6
    alpha: float = 0.05
    asks_person: bool = False
    min_pass_all: float | None = None
    judge_floor: tuple[Floor, ...] = ()
    max_cost_increase: float | None = None
    max_latency_increase: float | None = None

    @property
    def limits(self) -> Mapping[Figure, float]:
        """By how much each figure of a suite may rise, as a share of base's figure."""
        limits: dict[Figure, float | None] = {
            "cost": self.max_cost_increase,
            "latency": self.max_latency_increase,
        }
        return {figure: limit for figure, limit in limits.items() if limit is not None}

    @property
    def level(self) -> float:
        """The probability (0–1) of a false block that each condition may have: `alpha`, divided
        equally among the regressions and the pairs of answers, if they block, and the `limits`."""
        conditions = len(self.fail_on & {"regressions", "pairwise"}) + len(self.limits)
        return self.alpha / max(conditions, 1)

    def different_inputs(self, other: "Policy") -> list[str]:
        """The inputs that have another value in another policy."""
        names = [field.name for field in fields(self) if field.name != "asks_person"]
        different = [name for name in names if getattr(self, name) != getattr(other, name)]
        return [name.replace("_", "-") for name in different]


@dataclass(frozen=True)
class Selection:
    """A suite that runs: `reasons` as phrases (`changed: evals/EVAL.yaml`), `files` the changed
    files that affect it."""

    path: str
    reasons: tuple[str, ...]
    files: tuple[str, ...] = ()
    base_path: str | None = None


@dataclass(frozen=True)
class CommentTemplate:
    """A user's template of the comment; `name` is its path."""

    name: str
    text: str


class EditKind(StrEnum):
    """What an edit changes, as a noun; in the order of reports."""

    GATE = "required gate"
    EVALUATOR = "evaluator"
    TARGET = "target"
    RUNNER = "runner"
    VARIANT = "variant"
    TEST = "test"


@dataclass(frozen=True)
class Edit:
    """One edit. `name` is the path of names of an evaluator, the name of a target or of a runner,
    or the id of a test whose reference changed. `action` is `changed`, `added` or `removed`.
    `location` is on head, or on base for what was removed. `tests` are the ids of all tests with
    this edit; empty for a runner."""

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


@dataclass(frozen=True)
class RunVariant:
    """A variant that runs, or whose results are stored: `tests` are the ids of its tests, `stored`
    the ids among them of tests whose results are from an earlier run."""

    variant: Variant
    tests: tuple[str, ...]
    stored: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSuite:
    """A suite of head that runs. `tests` are the ids of all its tests, also of tests that other
    shards run; for the suite of a `runner` (its name), of the tests that it reported. `base` is
    what is known of the suite on base. `question_files` are the changed files in the question of a
    test, by its id, `suite_question_files` the changed files in all questions. `variants` are its
    other arms; with a `variant`, the tests ran in this arm alone. The tests in `steady` (ids) give
    the same result each time, the tests in `comparing` (ids) have pairwise evaluators.
    `judges_lost` are the names of pairwise evaluators whose judge decides on base alone, because
    the change edits it."""

    selection: Selection
    name: str
    tests: tuple[str, ...]
    runner: str = ""
    base: BaseSuite = BaseSuite()  # noqa: RUF009  # frozen
    edits: tuple[Edit, ...] = ()
    question_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suite_question_files: tuple[str, ...] = ()
    variants: tuple[RunVariant, ...] = ()
    variant: str = ""
    steady: tuple[str, ...] = ()
    comparing: tuple[str, ...] = ()
    judges_lost: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The suite's path on head."""
        return self.selection.path

    @property
    def label(self) -> str:
        """Its name for people, with the name of the runner, or of the arm that ran alone."""
        name, other = name_suite(self.path), self.runner or self.variant
        return f"{name} ({other})" if other else name

    @property
    def base_path(self) -> str:
        """The suite's path on base."""
        return self.selection.base_path or self.path


class Level(StrEnum):
    """What follows from a note. If nothing ran (`refused`), or a suite that the change affects has
    an `error`, the outcome is invalid. After a `problem`, something is missing, and a pass becomes
    inconclusive. Nothing follows from a `warning` or a `notice`."""

    REFUSED = "refused"
    ERROR = "error"
    PROBLEM = "problem"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True)
class Note:
    """A fact about a run for its reader: a sentence about the run, or a diagnostic about a file."""

    level: Level
    fact: Diagnostic | str


def is_of_suite(diagnostic: Diagnostic) -> bool:
    """Whether a diagnostic is about a suite, not about a file that all suites share."""
    return PurePosixPath(diagnostic.location.path).name not in (FILE, CALIBRATION_FILE)


def notes(level: Level, facts: Iterable[Diagnostic | str]) -> tuple[Note, ...]:
    """A note for each fact."""
    return tuple(Note(level, fact) for fact in facts)


class Run(BaseModel):
    """Everything about a run of head and base except its rows; the content of `run.json`.

    `head_sha` is the commit of the reports, `commit` the commit that is checked out (a merge
    commit), `time` the start (ISO 8601, UTC). `inputs` is a digest of the inputs and tests that
    shards have in common. `rows` are the numbers of rows of head and base. `gone_suites` are paths
    of suites that only base has. `notes` are what a reader must know. `uncommitted` are the paths
    that differed from `head_sha` when a working tree was run. `test_globs` selected the tests
    (`shard 1/3` is one part of them), empty if all ran. `template` renders the comment, None is the
    packaged template. `claims` states that an untrusted run made the results, in a sentence; else
    it is empty."""

    model_config = ConfigDict(**CAMEL_CASE, frozen=True, extra="forbid")

    version: Literal[1] = 1
    head_sha: str
    base_sha: str | None = None
    commit: str = ""
    time: str = ""
    shard: Shard | None = None
    inputs: str = ""
    rows: tuple[int, int] = (0, 0)
    policy: Policy
    samples: int = 1
    suites: tuple[RunSuite, ...] = ()
    baseline: BaselineInfo = BaselineInfo("none", wanted=False)
    gone_suites: tuple[str, ...] = ()
    suites_in_repository: int = 0
    quarantines: Quarantines = Quarantines()
    acceptance: Acceptance | None = None
    notes: tuple[Note, ...] = ()
    duration_ms: float = 0.0
    uncommitted: tuple[str, ...] = ()
    test_globs: tuple[str, ...] = ()
    template: CommentTemplate | None = None
    claims: str = ""

    def with_notes(self, level: Level, facts: Iterable[Diagnostic | str]) -> "Run":
        """Adds notes."""
        return self.model_copy(update={"notes": (*self.notes, *notes(level, facts))})

    def diagnostics(self, level: Level) -> tuple[Diagnostic, ...]:
        """The facts of a level that are about a file."""
        return tuple(
            note.fact
            for note in self.notes
            if note.level is level and isinstance(note.fact, Diagnostic)
        )

    def sentences(self, level: Level) -> tuple[str, ...]:
        """The facts of a level, as sentences."""
        return tuple(str(note.fact) for note in self.notes if note.level is level)

    @property
    def head_label(self) -> str:
        """What stands before head's commit in reports: `head`, or `working tree of` where files
        differed from it."""
        return "working tree of" if self.uncommitted else "head"

    @property
    def selections(self) -> tuple[Selection, ...]:
        """Why each suite ran."""
        return tuple(suite.selection for suite in self.suites)
