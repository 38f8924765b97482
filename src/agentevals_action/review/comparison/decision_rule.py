"""The decision rule: a test whose verdict fell is a suspect, and fresh samples decide whether it is
a regression. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

from agentevals_action.errors import InvalidInput
from agentevals_action.model.comparison import NOTHING, Counts, Evidence
from agentevals_action.model.result import PASS_SCORE, SampleResult, TestResult, Verdict
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


#: A suite's path on head and a test's id.
Key = tuple[str, str]
Evidences = Mapping[Key, Evidence]


@dataclass(frozen=True)
class Kept:
    """What a sample must keep to be as good as base: the class of the verdict, and the gates that
    held on base and failed on head."""

    verdict: Verdict
    gates: frozenset[str]

    def by(self, sample: SampleResult) -> bool | None:
        """Whether a sample keeps it. None for a sample that could not be scored."""
        if sample.verdict is None:
            return None
        return RANK[sample.verdict] >= RANK[self.verdict] and self.gates.isdisjoint(
            sample.gates_failed
        )

    def history(self, samples: Iterable[SampleResult]) -> Counts:
        """How many of the scored samples keep it."""
        scored = [kept for sample in samples if (kept := self.by(sample)) is not None]
        return Counts(sum(scored), len(scored))


@dataclass(frozen=True)
class Suspect:
    """A test whose verdict fell, with the results that raised the suspicion. `kept` is what it
    lost. A `deterministic` test gives the same result each time, so that one sample is enough."""

    suite: str
    head: TestResult
    base: TestResult
    kept: Kept
    deterministic: bool = False

    @property
    def key(self) -> Key:
        """The suite's path on head and the test's id."""
        return self.suite, self.head.eval_id


def to_sample(suspects: Sequence[Suspect], horizon: int) -> Sequence[Suspect]:
    """The suspects about which fresh samples reveal something, at most `horizon` for each."""
    return [suspect for suspect in suspects if not suspect.deterministic and horizon]


def gates_kept(result: TestResult) -> frozenset[str]:
    """The gates that a result declares and that hold."""
    return frozenset(gate.name for gate in result.gates).difference(result.gates_failed)


def find_fall(head: TestResult, base: TestResult) -> Kept | None:
    """What head lost against base: a lower class of verdict, or a failed gate that held on base.
    None when nothing fell or a side has no verdict."""
    if head.verdict is None or base.verdict is None:
        return None
    lost = gates_kept(base).intersection(head.gates_failed)
    if RANK[head.verdict] >= RANK[base.verdict] and not lost:
        return None
    return Kept(base.verdict, lost)


def steadiest(kept: Kept, head: TestResult, base: Iterable[SampleResult]) -> Kept:
    """What must be kept, chosen by the samples of base: what fell or, if base keeps that too seldom
    and head fell below it too, the class `borderline`.

    A test that alternates between `pass` and `borderline` and then always fails has regressed, even
    though a single `pass` of it proves little.
    """
    if kept.verdict != "pass" or head.verdict != "fail":
        return kept
    samples = tuple(base)
    lower = Kept("borderline", kept.gates)
    rate, lower_rate = kept.history(samples).rate, lower.history(samples).rate
    if rate is None or lower_rate is None:
        return kept
    return lower if rate < PASS_SCORE and lower_rate > rate else kept


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
    (Bonferroni)."""

    horizon: int
    level: float


class Step(StrEnum):
    """The next step for a suspect. The last three are final."""

    SAMPLE_HEAD = "sample head"
    SAMPLE_BASE = "sample base"
    REGRESSED = "regressed"
    CLEARED = "flaky"
    UNDECIDED = "inconclusive"


@dataclass(frozen=True)
class Known:
    """The samples of one suspect: those of base, those of head that raised the suspicion, the fresh
    ones of head. If base can be sampled again (`base_open`), its fresh samples replace `base`,
    because the old ones took part in raising the suspicion."""

    base: Counts
    raised: Counts
    head: Counts = NOTHING
    base_open: bool = False


def next_step(plan: ConfirmationPlan, prior: Prior, known: Known) -> Step:
    """The next step for a suspect.

    The fresh samples of head are compared with what is expected if nothing has changed. In that
    case the sample that raised the suspicion is a draw like those of base and counts as one. The
    number of failures that makes a regression depends on these counts and the horizon only, so that
    stopping early does not add false regressions.
    """
    head, base = known.head, known.base
    if head.trials < min(FIRST_SAMPLES, plan.horizon):
        return Step.SAMPLE_HEAD
    if head.failures == 0:
        return Step.CLEARED
    if base.trials < MIN_HISTORY and known.base_open:
        return Step.SAMPLE_BASE
    needed = failures_needed(base + known.raised, prior, plan.horizon, plan.level)
    if needed is not None and head.failures >= needed:
        return Step.REGRESSED
    left = plan.horizon - head.trials
    can_decide = needed is not None and head.failures + left >= needed
    # Undecided, it would be inconclusive (`TestComparison.is_unproven`): one success avoids that.
    can_succeed = needed is None and left and not head.successes and not base.failures
    if can_decide or can_succeed:
        return Step.SAMPLE_HEAD
    return Step.CLEARED if 2 * head.failures < head.trials else Step.UNDECIDED


def require_decidable(samples: int, horizon: int, alpha: float) -> None:
    """Raises InvalidInput if no regression could be confirmed, because such settings would let
    every change pass: not even that of the only test of a suite, which holds in all samples of base
    and in no fresh one of head. The inputs are `samples`, `confirm` and `alpha`."""
    base = max(samples, MIN_HISTORY)
    history = Counts(base, base) + SUSPICION
    prior = fit_prior([Counts(samples, samples)])

    def decides(count: int) -> bool:
        return failures_needed(history, prior, count, alpha) is not None

    if horizon == 0 or decides(horizon):
        return
    advice = "`confirm: 0`, which lets one sample decide"
    enough = next((count for count in range(horizon + 1, MAX_SAMPLES + 1) if decides(count)), None)
    if horizon > 1:
        advice = f"`alpha` from {_round_up(tail(history, prior, horizon, horizon))} up, or {advice}"
    if enough is not None:
        advice = f"`confirm` from {enough} up, or {advice}"
    raise InvalidInput(
        f"the inputs `confirm: {horizon}` and `alpha: {alpha:g}` can confirm no regression, "
        "not even of a test that always passes on base and never on head",
        f"write {advice}",
    )


def _round_up(value: float) -> str:
    """A probability with two significant digits that is not under the value."""
    digits = Decimal(value)
    step = Decimal(1).scaleb(digits.adjusted() - 1)
    return f"{digits.quantize(step, ROUND_CEILING):f}"
