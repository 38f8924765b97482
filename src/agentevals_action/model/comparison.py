"""A review: the comparison of head and base, test by test, and the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, computed_field

from agentevals_action.formatting import counted
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import SampleResult, SuiteSummary, TestResult, passed_by_name
from agentevals_action.model.run import Figure, Run, RunSuite, RunVariant


class ChangeKind(StrEnum):
    """The change of a test between base and head."""

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
    ADVISORY = "advisory"
    HEAD_ERROR = "error on head"
    BASE_ERROR = "error on base"


#: Changes of tests that have a result on head, and no result on base to compare it with.
NOT_COMPARED = frozenset({ChangeKind.NOT_COMPARABLE, ChangeKind.BASE_ERROR})
#: Changes of tests with the same question and grading that are not known to have got worse.
_KEPT = frozenset({ChangeKind.UNCHANGED, ChangeKind.IMPROVED, ChangeKind.FLAKY})


@dataclass(frozen=True)
class Counts:
    """The number of `successes` among the samples that were scored (`trials`)."""

    successes: int
    trials: int

    @property
    def failures(self) -> int:
        """The number of scored samples that are not successes."""
        return self.trials - self.successes

    @property
    def rate(self) -> float | None:
        """Share of successes, 0-1; None without samples."""
        return self.successes / self.trials if self.trials else None

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.successes + other.successes, self.trials + other.trials)


#: No sample at all.
NOTHING = Counts(0, 0)


@dataclass(frozen=True)
class Difference:
    """A paired difference of means, head minus base: `low` and `high` bound its 95 % interval,
    `detectable` is the smallest difference that as many questions would show at 80 % power. `pairs`
    counts the questions, `clusters` the independent groups of questions."""

    mean: float
    low: float
    high: float
    detectable: float
    pairs: int
    clusters: int

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def is_change(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class SmallestDrop:
    """What a suite can find: if the pass rate of all of its `tests` that may vary falls from `base`
    to `head` (0–1), at least one is confirmed as a regression with a probability of 80 %; `head` is
    None if no drop is found like this. Assumptions: the tests pass independently of each other,
    base can run again, and no other suite has suspects. Each test has `samples` samples on head and
    `history` samples on base; `confirm` and `alpha` are the inputs. `steady` more tests always give
    the same result. With `confirm` 0, one sample decides, and nothing is computed."""

    tests: int
    samples: int
    confirm: int
    alpha: float
    base: float = 0.9
    history: int = 1
    steady: int = 0
    head: float | None = None


class Finding(StrEnum):
    """The result of sampling a suspect again."""

    REGRESSED = "regressed"
    CLEARED = "flaky"
    UNDECIDED = "inconclusive"
    ERROR = "error"


@dataclass(frozen=True)
class Evidence:
    """The result of the confirmation of a suspect. `base` counts the samples of base that head is
    compared with, `head` the fresh samples of head (without confirmation, the existing samples); a
    success is a sample that keeps what the suspect lost. `needed` failures of head make a
    regression (None: no number does), `chance` is the probability (0-1) of the observed number
    without a change. `reason` states what could not be obtained."""

    finding: Finding
    base: Counts
    head: Counts
    base_samples: Annotated[tuple[SampleResult, ...], Field(exclude=True)] = ()
    needed: int | None = None
    chance: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class BaseScoring:
    """Head's answers as base's evaluators score them: `result` is an error if they could not be
    scored. `is_worse`: head's evaluators do not fail the answer, and base's give a lower verdict
    (lower than `pass` if none of head's decides) or fail a gate. `failed_on_base` are the failed
    gates of `result` that failed on base, too. `judges_lost` are judges of base by which head's
    answer is worse than base's, and which the change makes advisory."""

    result: TestResult
    is_worse: bool = False
    failed_on_base: tuple[str, ...] = ()
    judges_lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class TestComparison:
    """One test on both sides; with `rescored`, `base` is already scored by head's evaluators.

    `gates_lost` are gates that passed on base and failed on head, `gates_removed` gates that only
    base declares. `reason` states why the test was not compared. With `evidence`, `head` and `base`
    include the samples of the confirmation. A test in `quarantine` does not count; a regression
    with `accepted_by` (a login) does not block. `by_base` is known for a test whose evaluators the
    change edits."""

    __test__ = False  # pytest: not a test case

    id: str
    change: ChangeKind
    head: TestResult | None
    base: TestResult | None
    rescored: bool = False
    gates_lost: tuple[str, ...] = ()
    gates_removed: tuple[str, ...] = ()
    reason: str = ""
    evidence: Evidence | None = None
    quarantine: Quarantine | None = None
    accepted_by: str = ""
    by_base: BaseScoring | None = None

    @property
    def passes_by_edits(self) -> bool:
        """Whether the test passes only with the changed evaluators, and counts."""
        by_base, is_scored = self.by_base, self.head is not None and self.head.verdict is not None
        is_worse = by_base is not None and by_base.is_worse
        return is_worse and is_scored and self.quarantine is None

    @property
    def has_lost_judge(self) -> bool:
        """Whether the test is worse by a judge that decides on base alone, and counts."""
        is_waived = bool(self.accepted_by) or self.quarantine is not None
        return self.by_base is not None and bool(self.by_base.judges_lost) and not is_waived

    @property
    def evaluators_lost(self) -> tuple[str, ...]:
        """The evaluators, and the criteria of passing rubrics, that passed on base and fail on
        head, if the test passes on head and is compared."""
        head, base = self.head, self.base
        if not head or not base or head.verdict != "pass" or self.change not in _KEPT:
            return ()
        on_base, on_head = (passed_by_name(side.evaluator_results) for side in (base, head))
        deciding = [result for result in head.evaluator_results if not result.advisory]
        rubrics = [result for result in deciding if result.type == "rubric" and result.passed]
        return (
            *(name for name, passed in on_head.items() if passed is False and on_base.get(name)),
            *(miss for rubric in rubrics for miss in rubric.misses if miss in base.hits),
        )

    @property
    def is_lost(self) -> bool:
        """Whether a test that passed on base fails on head, and cannot be compared."""
        is_compared = self.change not in (*NOT_COMPARED, ChangeKind.QUESTION_CHANGED)
        if is_compared or self.quarantine or self.accepted_by or not (self.base and self.head):
            return False
        return self.base.verdict == "pass" and self.head.verdict == "fail"

    @property
    def is_regression(self) -> bool:
        """Whether the test is a regression that counts: not accepted and not in quarantine."""
        is_waived = bool(self.accepted_by) or self.quarantine is not None
        return self.change is ChangeKind.REGRESSED and not is_waived

    @property
    def failed_gates(self) -> tuple[str, ...]:
        """The failed required gates that count; none of a test in quarantine."""
        return self.head.gates_failed if self.head and self.quarantine is None else ()

    @property
    def is_unproven(self) -> bool:
        """Whether all samples of base hold and all fresh samples of head fail, and the fresh
        samples are too few for so many suspects. The test is inconclusive: if everything breaks at
        once, nothing may be certain, and the check must not be green."""
        evidence = self.evidence
        if evidence is None or evidence.finding is not Finding.UNDECIDED or self.quarantine:
            return False
        held_on_base = evidence.base.trials and not evidence.base.failures
        return bool(held_on_base and evidence.head.trials and not evidence.head.successes)


class Outcome(StrEnum):
    """The outcome of a run."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True)
class ArmDifference:
    """The suite as declared against another arm, over the `pairs` tests that are scored in both
    arms, with at least `samples` samples in each arm.

    `declared` and `variant` are means of the tests' pass rates (0-1), `difference` is the first
    minus the second (None for fewer than two tests). If each test passes as often in both arms,
    `p_help` is the probability of at least as many passes as declared, `p_hurt` of at most as many;
    neither can be under `smallest_p`, and a probability of at most `level` is significant."""

    pairs: int
    samples: int
    declared: float
    variant: float
    difference: Difference | None
    p_help: float
    p_hurt: float
    smallest_p: float
    level: float

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def helps(self) -> bool:
        """Whether it is shown that the suite as declared is better."""
        return self.p_help <= self.level

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def hurts(self) -> bool:
        """Whether it is shown that the suite as declared is worse."""
        return self.p_hurt <= self.level

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def can_show(self) -> bool:
        """Whether any result of so many tests and samples could have shown a difference."""
        return self.smallest_p <= self.level


@dataclass(frozen=True)
class VariantTest:
    """A test in both arms, without the samples of confirmations; `declared` is by the evaluators
    that the variant has, too. `reason` states why the test does not count. If it `is_left_out` (in
    quarantine, or scored by advisory judges alone), that makes no condition unknown."""

    id: str
    declared: TestResult | None
    variant: TestResult | None
    reason: str = ""
    is_left_out: bool = False

    @property
    def passes(self) -> tuple[bool, bool] | None:
        """Whether the test passes as declared, and in the variant; None if it does not count."""
        if self.reason or not (self.declared and self.variant):
            return None
        return self.declared.verdict == "pass", self.variant.verdict == "pass"


@dataclass(frozen=True)
class VariantComparison:
    """The suite as declared against a variant, test by test. `first` is by the samples of the run,
    `fresh` by the samples of the confirmation alone; None if no test was scored in both arms.

    `outcome` is that of the condition `must` (passed, failed or inconclusive), None without `must`.
    `problem` states what prevented the confirmation. `summary` are the totals of the variant."""

    run: RunVariant
    tests: tuple[VariantTest, ...]
    first: ArmDifference | None
    fresh: ArmDifference | None = None
    outcome: Outcome | None = None
    problem: str = ""
    summary: SuiteSummary | None = None

    def with_passes(self, declared: bool, variant: bool) -> tuple[VariantTest, ...]:
        """The tests that count and pass, or do not, as declared and in the variant."""
        return tuple(test for test in self.tests if test.passes == (declared, variant))

    @property
    def not_scored(self) -> tuple[VariantTest, ...]:
        """The tests that do not count."""
        return tuple(test for test in self.tests if test.passes is None)

    def needs_confirmation(self, *, is_part: bool) -> bool:
        """Whether both arms are sampled again: the suite is worse, and must not be. A part of the
        tests (`is_part`) cannot decide that: it is sampled again if it is worse in this part."""
        first = self.first
        if first is None or self.run.variant.must != "not-hurt":
            return False
        return first.hurts or (is_part and first.declared < first.variant)


#: The share of pairs by which losses must exceed wins for head's answers to be worse.
NET_LOSS = 0.2


@dataclass(frozen=True)
class PairwiseComparison:
    """Head's answers against base's by the pairwise evaluator `name`: the pairs in which head's is
    much better in both orders (`wins`), much worse (`losses`), and all others (`ties`); in `flips`
    of the ties, the judge preferred another answer in each order.

    `p_better` and `p_worse` are the probabilities of at least so many wins and losses if the two
    sides are equally good; a probability of at most `level` is significant. `better`, `worse` and
    `not_judged` are ids of tests, `problem` is why the first test in `not_judged` is there.

    `fresh` is the comparison of the fresh answers of a confirmation. `outcome` is that of the
    condition `pairwise`, None without it, or for the reason `advisory` if the judge is advisory."""

    name: str
    wins: int
    losses: int
    ties: int
    flips: int
    p_better: float
    p_worse: float
    level: float = 0.0
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    problem: str = ""
    fresh: "PairwiseComparison | None" = None
    outcome: Outcome | None = None
    advisory: str = ""

    @property
    def pairs(self) -> int:
        """The number of pairs that were judged."""
        return self.wins + self.losses + self.ties

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def finding(self) -> Literal["worse", "better", "nothing", "too few pairs"]:
        """What is shown about head's answers: `too few pairs` if no result could have shown a
        difference. `worse` also requires that losses exceed wins by a fifth of the pairs."""
        if self.p_worse <= self.level and self.losses - self.wins >= NET_LOSS * self.pairs:
            return "worse"
        if self.p_better <= self.level:
            return "better"
        return "nothing" if 0.5 ** (self.wins + self.losses) <= self.level else "too few pairs"

    def needs_confirmation(self, *, is_part: bool) -> bool:
        """Whether fresh answers are compared: head's answers are worse, and must not be. A part of
        the tests (`is_part`) cannot decide that: it needs more losses than wins."""
        is_worse = self.finding == "worse" or (is_part and self.losses > self.wins)
        return self.outcome is not None and is_worse


@dataclass(frozen=True)
class Rise:
    """How much higher a figure is on head than on base, over the `pairs` tests whose figure is
    known on both sides: `ratio` is head by base, `low` its lower bound (None if the ratio is not
    over the limit). `exceeds` is whether the bound is over the limit, None if the ratio is over it
    and no result of so few tests could show that."""

    pairs: int
    ratio: float
    low: float | None
    exceeds: bool | None


@dataclass(frozen=True)
class Increase:
    """The condition that a figure of a suite does not rise by more than `limit` (a share of base's
    figure, 0.2 is 20 %). `first` is by the samples of the run, `fresh` by the samples of the
    confirmation alone; None if nothing is known. `reason` states what is unknown."""

    figure: Figure
    limit: float
    outcome: Outcome
    first: Rise | None = None
    fresh: Rise | None = None
    reason: str = ""

    def needs_confirmation(self, *, is_part: bool) -> bool:
        """Whether both sides are sampled again: the figure rose, or too few tests could show it. A
        part of the tests (`is_part`) cannot decide that: the ratio must be over the limit in it."""
        if self.first is None:
            return False
        return self.first.exceeds is not False or (is_part and self.first.low is not None)


@dataclass(frozen=True)
class SuiteComparison:
    """One suite on both sides. `score` (0-1), `cost` (US dollars) and `duration` (milliseconds) are
    paired differences per sample over the compared tests, None if too little is known. `drop` is
    the smallest drop that the suite finds, None without a base."""

    run: RunSuite
    tests: tuple[TestComparison, ...]
    head: SuiteSummary | None
    base: SuiteSummary | None
    score: Difference | None = None
    cost: Difference | None = None
    duration: Difference | None = None
    variants: tuple[VariantComparison, ...] = ()
    pairwise: tuple[PairwiseComparison, ...] = ()
    drop: SmallestDrop | None = None
    increases: tuple[Increase, ...] = ()

    @property
    def path(self) -> str:
        """The suite's path on head."""
        return self.run.path


def describe_worse(
    tests: Sequence[TestComparison], gates: bool = True, regressions: bool = True
) -> list[str]:
    """The numbers of tests that regressed and that failed a required gate, each test in one number:
    `2 tests failed a required gate; 1 of them regressed`, or `3 tests regressed (1 of them failed a
    required gate)` and `1 more test failed a required gate`."""
    regressed = sum(test.is_regression for test in tests) if regressions else 0
    failed = [test for test in tests if gates and test.failed_gates]
    both = sum(test.is_regression for test in failed) if regressions else 0
    if 0 < both == regressed < len(failed):
        gates_failed = counted(len(failed), "test", "failed a required gate")
        return [f"{gates_failed}; {both} of them regressed"]
    phrases = []
    if regressed:
        gate = f" ({both} of them failed a required gate)" if both else ""
        gate = " and failed a required gate" if both == regressed else gate
        phrases.append(f"{counted(regressed, 'test', 'regressed')}{gate}")
    if others := len(failed) - both:
        noun = "more test" if phrases else "test"
        phrases.append(counted(others, noun, "failed a required gate"))
    return phrases


@dataclass(frozen=True)
class Decision:
    """The outcome with every reason for it as a phrase; `exit_code` and `conclusion` (of the check
    run) follow the policy. `waived` names what would count without a waiver: accepted regressions,
    and tests in quarantine."""

    outcome: Outcome
    exit_code: int
    conclusion: str
    reasons: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()


@dataclass(frozen=True)
class Review:
    """Everything that a report can show, not rendered: a run, its comparison with base, and the
    decision."""

    run: Run
    decision: Decision
    suites: tuple[SuiteComparison, ...] = ()

    @property
    def has_base(self) -> bool:
        """Whether there is something to compare with, even if it could not be obtained."""
        return self.run.baseline.wanted or any(suite.base for suite in self.suites)
