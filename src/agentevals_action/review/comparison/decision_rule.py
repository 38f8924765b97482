"""The decision rule: a test whose verdict fell is a suspect, and fresh samples decide whether it is
a regression. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from agentevals_action.errors import InvalidInput
from agentevals_action.model.comparison import NOTHING, Counts, Evidence, Finding
from agentevals_action.model.result import PASS_SCORE, Key, SampleResult, TestResult, Verdict
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.review.comparison.statistics import Prior, failures_needed, fit_prior, tail
from agentevals_action.settings import MAX_SAMPLES

RANK = {"fail": 0, "borderline": 1, "pass": 2}
#: Fresh samples of head in the first step. If all of them hold, the fall was noise.
FIRST_SAMPLES = 3
#: Samples of base below which its history is too short to decide by, if more can be taken.
MIN_HISTORY = 5
#: What raised the suspicion, counted as a sample of base in case nothing has changed: one failure,
#: because a run with more samples adds no information about a single one.
SUSPICION = Counts(0, 1)


#: Results by the suite's path on head, and then by the test's id.
RowsBySuite = Mapping[str, Mapping[str, TestResult]]
#: The prior of a suite (by its path on head) for a class of verdict.
Priors = Callable[[str, Verdict], Prior]


@dataclass(frozen=True)
class Requirement:
    """What a sample must keep to be as good as base: the class of the verdict, and the gates that
    held on base and failed on head."""

    verdict: Verdict
    gates: frozenset[str]

    def holds_in(self, sample: SampleResult) -> bool | None:
        """Whether a sample keeps the requirement. None for a sample that could not be scored."""
        if sample.verdict is None:
            return None
        return RANK[sample.verdict] >= RANK[self.verdict] and self.gates.isdisjoint(
            sample.gates_failed
        )

    def count(self, samples: Iterable[SampleResult]) -> Counts:
        """How many of the scored samples keep the requirement."""
        scored = [held for sample in samples if (held := self.holds_in(sample)) is not None]
        return Counts(sum(scored), len(scored))


@dataclass(frozen=True)
class Suspect:
    """A test whose verdict fell, with the results that raised the suspicion (without fresh
    samples). `requirement` is what it lost."""

    suite: str
    head: TestResult
    base: TestResult
    requirement: Requirement

    @property
    def key(self) -> Key:
        """The suite's path on head and the test's id."""
        return self.suite, self.head.eval_id


def as_head_scores(base: TestResult) -> TestResult:
    """A result of base as head's evaluators score it."""
    return base.by_head or base


def gates_kept(result: TestResult) -> frozenset[str]:
    """The gates that a result declares and that hold."""
    return frozenset(gate.name for gate in result.gates).difference(result.gates_failed)


def find_lost_requirement(head: TestResult, base: TestResult) -> Requirement | None:
    """What head lost against base: a lower class of verdict, or a failed gate that held on base.
    None when nothing fell or a side has no verdict."""
    if head.verdict is None or base.verdict is None:
        return None
    lost = gates_kept(base).intersection(head.gates_failed)
    if RANK[head.verdict] >= RANK[base.verdict] and not lost:
        return None
    return Requirement(base.verdict, lost)


def steadiest(
    requirement: Requirement, head: TestResult, base: Iterable[SampleResult]
) -> Requirement:
    """The requirement by the samples of base: what fell or, if base meets that too seldom and head
    fell below it too, the class `borderline`.

    A test that alternates between `pass` and `borderline` and then always fails has regressed, even
    though a single `pass` of it proves little.
    """
    if requirement.verdict != "pass" or head.verdict != "fail":
        return requirement
    samples = tuple(base)
    lower = Requirement("borderline", requirement.gates)
    rate, lower_rate = requirement.count(samples).rate, lower.count(samples).rate
    if rate is None or lower_rate is None:
        return requirement
    return lower if rate < PASS_SCORE and lower_rate > rate else requirement


def samples_for_majority(failures: int, trials: int, limit: int) -> int:
    """The number of further samples after which the majority of a failing test's fresh samples may
    be known, 0 if it is known.

    There are at most `limit` fresh samples; fewer than three decide nothing. A failure needs more
    than half of the limit, so that further samples cannot change it."""
    if limit < MIN_MAJORITY:
        return 0
    until_held = max(MIN_MAJORITY, 2 * failures + 1) - trials
    until_failed = max(MIN_MAJORITY - trials, limit // 2 + 1 - failures)
    return max(min(until_held, until_failed, limit - trials), 0)


@dataclass(frozen=True)
class ConfirmationPlan:
    """At most `horizon` fresh samples of head for each suspect. `level` is the probability (0–1) of
    a false regression for one suspect: that of the pull request divided by the number of suspects
    (Bonferroni). None in a shard, which does not know that number and takes all samples."""

    horizon: int
    level: float | None


class Step(StrEnum):
    """What to sample next for a suspect."""

    SAMPLE_HEAD = "sample head"
    SAMPLE_BASE = "sample base"


@dataclass(frozen=True)
class SuspectSamples:
    """The samples of one suspect: of base, and the fresh samples of head. If base can be sampled
    again (`base_open`), fresh samples replace `base`, because its earlier samples took part in
    raising the suspicion."""

    base: Counts
    head: Counts = NOTHING
    base_open: bool = False


def next_step(plan: ConfirmationPlan, prior: Prior, samples: SuspectSamples) -> Step | Finding:
    """The next step for a suspect, or what its samples show.

    The fresh samples of head are compared with what is expected if nothing has changed. In that
    case the sample that raised the suspicion is a draw like those of base and counts as one. The
    number of failures that makes a regression depends on these counts and the horizon only, so that
    stopping early does not add false regressions.
    """
    head, base = samples.head, samples.base
    if head.trials < min(FIRST_SAMPLES, plan.horizon):
        return Step.SAMPLE_HEAD
    if head.failures == 0:
        return Finding.CLEARED
    if base.trials < MIN_HISTORY and samples.base_open:
        return Step.SAMPLE_BASE
    left, needed = plan.horizon - head.trials, None
    if plan.level is not None:
        needed = failures_needed(base + SUSPICION, prior, plan.horizon, plan.level)
    if needed is not None and head.failures >= needed:
        return Finding.REGRESSED
    takes_all = plan.level is None and left > 0
    can_decide = needed is not None and head.failures + left >= needed
    # An undecided test is inconclusive without a success (`TestComparison.is_unproven`).
    can_succeed = needed is None and left and not head.successes and not base.failures
    if can_decide or can_succeed or takes_all:
        return Step.SAMPLE_HEAD
    return Finding.CLEARED if 2 * head.failures < head.trials else Finding.UNDECIDED


@dataclass(frozen=True)
class FreshSamples:
    """The fresh samples of a test. `problem` states why samples of head are missing,
    `base_problem` why samples of base are."""

    head: tuple[SampleResult, ...] = ()
    base: tuple[SampleResult, ...] = ()
    problem: str = ""
    base_problem: str = ""


def weigh(
    suspect: Suspect, fresh: FreshSamples, base_open: bool = False
) -> tuple[Requirement, SuspectSamples]:
    """The requirement, and the samples counted by it. Fresh samples of base replace earlier samples
    if they are enough. Base's samples alone determine the requirement: head has no influence."""
    history: Sequence[SampleResult] = fresh.base
    if suspect.requirement.count(history).trials < MIN_HISTORY:
        history = (*suspect.base.samples, *history)
    requirement = steadiest(suspect.requirement, suspect.head, history)
    base, head = map(requirement.count, (history, fresh.head))
    return requirement, SuspectSamples(base, head, base_open)


def compute_priors(bases: RowsBySuite) -> Priors:
    """The priors of suites from all their base results as head's evaluators score them, without the
    samples of a confirmation."""

    @cache
    def prior(suite: str, verdict: Verdict) -> Prior:
        requirement = Requirement(verdict, frozenset())
        rows = map(as_head_scores, bases.get(suite, {}).values())
        return fit_prior(requirement.count(row.main_samples) for row in rows)

    return prior


def assess(
    suspect: Suspect, fresh: FreshSamples, plan: ConfirmationPlan, priors: Priors
) -> Evidence:
    """The evidence of the fresh samples; `plan` has a level."""
    requirement, samples = weigh(suspect, fresh)
    prior, history = priors(suspect.suite, requirement.verdict), samples.base + SUSPICION
    finding = next_step(plan, prior, samples)
    # Samples that could have decided it are missing: an error, not a result.
    is_incomplete = fresh.problem or (finding is Finding.UNDECIDED and fresh.base_problem)
    if is_incomplete or isinstance(finding, Step):
        finding = Finding.ERROR
    needed = chance = None
    if plan.level is not None:
        needed = failures_needed(history, prior, plan.horizon, plan.level)
    if samples.head.trials:
        chance = tail(history, prior, samples.head.trials, samples.head.failures)
    return Evidence(
        finding=finding,
        base=samples.base,
        head=samples.head,
        base_samples=fresh.base,
        needed=needed,
        chance=chance,
        reason="; ".join(filter(None, (fresh.problem, fresh.base_problem))),
    )


def require_decidable(samples: int, horizon: int, alpha: float) -> None:
    """Raises InvalidInput if the settings can confirm no regression, and would let every change
    pass: not even that of the only test of a suite, which passes in all samples of base and in no
    fresh sample of head. The inputs are `samples`, `confirm` and `alpha`."""
    base = max(samples, MIN_HISTORY)
    history = Counts(base, base) + SUSPICION
    prior = fit_prior([Counts(samples, samples)])

    def decides(count: int) -> bool:
        return failures_needed(history, prior, count, alpha) is not None

    if horizon == 0 or decides(horizon):
        return
    enough = next((count for count in range(horizon + 1, MAX_SAMPLES + 1) if decides(count)), None)
    larger = f"`confirm` from {enough} up" if enough else "a larger `alpha`"
    raise InvalidInput(
        f"the inputs `confirm: {horizon}` and `alpha: {alpha:g}` can confirm no regression, "
        "not even of a test that always passes on base and never on head",
        f"write {larger}, or `confirm: 0`, which lets one sample decide",
    )
