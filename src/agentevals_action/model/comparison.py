"""Head against base, test by test, and what follows from it for the gate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import SampleResult, SuiteRun, SuiteSummary, TestResult


class Change(StrEnum):
    """What became of a test between base and head."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    STILL_FAILING = "still failing"
    FLAKY = "flaky"
    UNDECIDED = "inconclusive"
    NEW = "new"
    REMOVED = "removed"
    QUESTION_CHANGED = "question changed"
    NOT_COMPARABLE = "not comparable"
    HEAD_ERROR = "error on head"
    BASE_ERROR = "error on base"


@dataclass(frozen=True)
class History:
    """How often a test held (`successes`) among samples that could be told (`trials`)."""

    successes: int
    trials: int

    @property
    def failures(self) -> int:
        """How often it did not."""
        return self.trials - self.successes

    @property
    def rate(self) -> float | None:
        """Share of samples that held, 0-1; None without any."""
        return self.successes / self.trials if self.trials else None

    def __add__(self, other: "History") -> "History":
        return History(self.successes + other.successes, self.trials + other.trials)


#: No sample at all.
NOTHING = History(0, 0)


@dataclass(frozen=True)
class Difference:
    """A paired difference of means, head minus base: `low` and `high` bound its 95 % interval,
    `detectable` is the smallest difference that as many questions would show at 80 % power. `pairs`
    counts questions, `clusters` what is independent among them."""

    mean: float
    low: float
    high: float
    detectable: float
    pairs: int
    clusters: int

    @property
    def is_change(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


class Finding(StrEnum):
    """What fresh samples said of a verdict that fell."""

    REGRESSED = "regressed"
    CLEARED = "flaky"
    UNDECIDED = "inconclusive"
    ERROR = "error"


@dataclass(frozen=True)
class Evidence:
    """What confirming a suspicion came to. `base` counts the samples of base that it is judged by,
    `head` the fresh ones of head (or, where one answer is enough, those that there were); a success
    is a sample that keeps what fell. `needed` failures of head make a regression (None: no number
    would), `chance` is the probability (0-1) of as many as were seen if nothing had changed.
    `reason` says what could not be had."""

    finding: Finding
    base: History
    head: History
    head_samples: tuple[SampleResult, ...] = ()
    base_samples: tuple[SampleResult, ...] = ()
    needed: int | None = None
    chance: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class TestComparison:
    """One test on both sides; `base` is already graded by head's evaluators when `regraded`.

    `gates_lost` are gates that held on base and failed on head, `gates_removed` those that base
    declared and head does not. `reason` says in words why it was not compared, if it was not.
    `evidence` is what confirming a verdict that fell came to: `head` and `base` then hold the fresh
    samples too. In `quarantine` it counts for nothing; a regression with `accepted_by` (a login)
    does not block."""

    __test__ = False  # pytest: a noun of ours, no test case

    id: str
    change: Change
    head: TestResult | None
    base: TestResult | None
    regraded: bool = False
    gates_lost: tuple[str, ...] = ()
    gates_removed: tuple[str, ...] = ()
    reason: str = ""
    evidence: Evidence | None = None
    quarantine: Quarantine | None = None
    accepted_by: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether it is a regression that counts: not accepted and not in quarantine."""
        is_waived = bool(self.accepted_by) or self.quarantine is not None
        return self.change is Change.REGRESSED and not is_waived


@dataclass(frozen=True)
class SuiteComparison:
    """One suite on both sides. `base_path` differs from `path` after a rename. `problem` says why
    the base has no results for it though it should, `note` why it has none rightly (new suite,
    broken on base). `score` (0-1), `cost` (US dollars) and `duration` (milliseconds) are paired
    differences a sample over the tests that were compared, None where too little is known."""

    path: str
    name: str
    tests: tuple[TestComparison, ...]
    head: SuiteSummary | None
    base: SuiteSummary | None
    base_path: str | None = None
    problem: str = ""
    note: str = ""
    score: Difference | None = None
    cost: Difference | None = None
    duration: Difference | None = None
    origin: "Origin | None" = None

    def head_run(self) -> SuiteRun | None:
        """What head came to, without the comparison."""
        results = tuple(test.head for test in self.tests if test.head)
        return SuiteRun(self.path, self.name, results, self.head) if self.head else None


class Outcome(StrEnum):
    """The word that everything else follows from."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True)
class Decision:
    """The outcome and, in words, every reason for it; `exit_code` and `conclusion` (of the check
    run) follow the policy. `waived` says in words what did not count though it would have: accepted
    regressions, tests in quarantine."""

    outcome: Outcome
    exit_code: int
    conclusion: str
    reasons: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedFile:
    """A file that the change touches, POSIX paths relative to the repository; `previous_path` only
    when it was renamed."""

    path: str
    status: str
    previous_path: str | None = None


@dataclass(frozen=True)
class Selection:
    """A suite that runs, and why: `reasons` in words (`changed: evals/EVAL.yaml`), `files` the
    changed files that touched it."""

    path: str
    reasons: tuple[str, ...]
    files: tuple[str, ...] = ()
    base_path: str | None = None


@dataclass(frozen=True)
class Rung:
    """A source of base results that was asked and gave nothing, or not for all suites, and why."""

    source: str
    problem: str


@dataclass(frozen=True)
class BaselineInfo:
    """Where the base's results come from. `wanted` is False when there is nothing to compare with
    (`reason` says why); `problem` says why a base that exists could not be had. `commit_time` is
    ISO 8601. `tried` are the sources before it."""

    source: str
    wanted: bool
    commit: str | None = None
    commit_time: str | None = None
    reason: str = ""
    problem: str = ""
    tried: tuple[Rung, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where one suite's base results come from: `source` as in the input `baseline`, `commit` the
    one that was run (`distance` commits before the base, 0 for the base itself, None where that is
    not known), `time` of its latest sample (ISO 8601), `samples` how many the test with the fewest
    has, `stale` whether they are older than `baseline-max-age`."""

    source: str
    commit: str | None = None
    distance: int | None = None
    time: str | None = None
    samples: int = 1
    stale: bool = False


@dataclass(frozen=True)
class BaseRun:
    """What a baseline store gives: results by suite path on head, and for suites without results
    why (`missing`: there was none or it is broken there, rightly nothing to compare; `problems`: it
    could not be had). `origins` tell where each suite's come from."""

    info: BaselineInfo
    suites: Mapping[str, SuiteRun] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)


@dataclass(frozen=True)
class Review:
    """Everything that a report may tell, nothing rendered yet.

    `invalid` are faults of suites that the change touches, `warnings` those of others and suite
    warnings. `gone_suites` are paths of suites that base has and head has not. `notices` are plain
    sentences for the reader (a permission that is missing, …)."""

    head_sha: str
    base_sha: str | None
    decision: Decision
    selections: tuple[Selection, ...] = ()
    suites: tuple[SuiteComparison, ...] = ()
    baseline: BaselineInfo = BaselineInfo(source="none", wanted=False)
    invalid: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    gone_suites: tuple[str, ...] = ()
    suites_in_repository: int = 0
    notices: tuple[str, ...] = ()
    samples: int = 1
    duration_ms: float = 0.0
