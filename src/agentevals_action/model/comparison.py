"""Head against base, test by test, and what follows from it for the gate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentevals_action.model.fault import Fault
from agentevals_action.model.result import SuiteRun, SuiteSummary, TestResult


class Change(StrEnum):
    """What became of a test between base and head."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    STILL_FAILING = "still failing"
    NEW = "new"
    REMOVED = "removed"
    QUESTION_CHANGED = "question changed"
    NOT_COMPARABLE = "not comparable"
    HEAD_ERROR = "error on head"
    BASE_ERROR = "error on base"


@dataclass(frozen=True)
class TestComparison:
    """One test on both sides; `base` is already graded by head's evaluators when `regraded`.

    `gates_lost` are gates that held on base and failed on head, `gates_removed` those that base declared and head does not.
    `reason` says in words why it was not compared, if it was not.
    """

    __test__ = False  # pytest: a noun of ours, no test case

    id: str
    change: Change
    head: TestResult | None
    base: TestResult | None
    regraded: bool = False
    gates_lost: tuple[str, ...] = ()
    gates_removed: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class SuiteComparison:
    """One suite on both sides. `base_path` differs from `path` after a rename. `problem` says why the base has no results for it
    though it should, `note` why it has none rightly (new suite, broken on base)."""

    path: str
    name: str
    tests: tuple[TestComparison, ...]
    head: SuiteSummary | None
    base: SuiteSummary | None
    base_path: str | None = None
    problem: str = ""
    note: str = ""


class Outcome(StrEnum):
    """The word that everything else follows from."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True)
class Decision:
    """The outcome and, in words, every reason for it; `exit_code` and `conclusion` (of the check run) follow the policy."""

    outcome: Outcome
    exit_code: int
    conclusion: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedFile:
    """A file that the change touches, POSIX paths relative to the repository; `previous_path` only when it was renamed."""

    path: str
    status: str
    previous_path: str | None = None


@dataclass(frozen=True)
class Selection:
    """A suite that runs, and why: `reasons` in words (`changed: evals/EVAL.yaml`), `files` the changed files that touched it."""

    path: str
    reasons: tuple[str, ...]
    files: tuple[str, ...] = ()
    base_path: str | None = None


@dataclass(frozen=True)
class BaselineInfo:
    """Where the base's results come from. `wanted` is False when there is nothing to compare with (`reason` says why);
    `problem` says why a base that exists could not be had. `commit_time` is ISO 8601."""

    source: str
    wanted: bool
    commit: str | None = None
    commit_time: str | None = None
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True)
class BaseRun:
    """What a baseline store gives: results by suite path on base, and for suites without results why
    (`missing`: there was none or it is broken there, rightly nothing to compare; `problems`: it could not be had)."""

    info: BaselineInfo
    suites: Mapping[str, SuiteRun] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Review:
    """Everything that a report may tell, nothing rendered yet.

    `invalid` are faults of suites that the change touches, `warnings` those of others and suite warnings. `gone_suites` are paths of
    suites that base has and head has not. `notices` are plain sentences for the reader (a permission that is missing, …).
    """

    head_sha: str
    base_sha: str | None
    decision: Decision
    selections: tuple[Selection, ...] = ()
    suites: tuple[SuiteComparison, ...] = ()
    baseline: BaselineInfo = BaselineInfo(source="none", wanted=False)
    invalid: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    gone_suites: tuple[str, ...] = ()
    suites_in_repository: int = 0
    notices: tuple[str, ...] = ()
    samples: int = 1
    duration_ms: float = 0.0
