"""Pure: a verdict that fell makes a test a suspect; what fresh samples it takes to call it a
regression, and when they are enough."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agentevals_action.model.comparison import NOTHING, History
from agentevals_action.model.result import PASS_SCORE, SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.statistics import Prior, failures_needed

RANK = {"fail": 0, "borderline": 1, "pass": 2}
#: Fresh samples of head that are looked at first; when all of them hold, the fall was noise.
LOOK = 3
#: Samples of base under which its history is too thin to judge by, where more can be had.
THICK = 5
#: What raised the suspicion, as a draw of base's if nothing has changed: one failure, however many
#: samples a run has, since a fall of their mean says no more of each.
RAISED = History(0, 1)


@dataclass(frozen=True)
class Held:
    """What a sample must keep to be no worse than base: its verdict's class, and the gates that
    held there and failed on head."""

    verdict: Verdict
    gates: frozenset[str]

    def by(self, sample: SampleResult) -> bool | None:
        """Whether a sample keeps it; None when the sample could not be told."""
        if sample.verdict is None:
            return None
        return RANK[sample.verdict] >= RANK[self.verdict] and self.gates.isdisjoint(
            sample.gates_failed
        )

    def among(self, samples: Iterable[SampleResult]) -> History:
        """How many of the samples that could be told keep it."""
        told = [held for sample in samples if (held := self.by(sample)) is not None]
        return History(sum(told), len(told))


def what_fell(head: TestResult, base: TestResult) -> Held | None:
    """What head's verdict lost against base's; None when it did not fall, or either could not be
    told.

    A fall is a lower class of verdict, or a failed gate that base declares and that held there."""
    if head.verdict is None or base.verdict is None:
        return None
    held = {gate.name for gate in base.gates} - set(base.gates_failed)
    lost = frozenset(gate for gate in head.gates_failed if gate in held)
    if RANK[head.verdict] >= RANK[base.verdict] and not lost:
        return None
    return Held(base.verdict, lost)


def steadiest(held: Held, head: TestResult, base: Iterable[SampleResult]) -> Held:
    """What is to be kept, by base's own samples: what fell, or where base keeps that too seldom the
    class below, if head fell below that too. A test that is now `pass` and now `borderline` and
    then always fails is broken, however little its passing told."""
    samples = tuple(base)
    lower = Held("borderline", held.gates)
    if held.verdict != "pass" or head.verdict != "fail":
        return held
    own, below = held.among(samples).rate, lower.among(samples).rate
    return (
        lower
        if own is not None and below is not None and own < PASS_SCORE and below > own
        else held
    )


@dataclass(frozen=True)
class Plan:
    """`horizon` fresh samples of head at most for each suspect; `level` is the chance (0-1) of a
    false regression that one suspect may take: that of the whole pull request divided by the number
    of suspects (Bonferroni)."""

    horizon: int
    level: float


class Step(StrEnum):
    """What comes next for a suspect."""

    SAMPLE_HEAD = "sample head"
    SAMPLE_BASE = "sample base"
    REGRESSED = "regressed"
    CLEARED = "flaky"
    UNDECIDED = "inconclusive"


@dataclass(frozen=True)
class Known:
    """What is known of one suspect: the base's samples, those of head that raised the suspicion,
    the fresh ones of head, and whether base can be sampled again (`base` is then to become the
    fresh ones alone, since those before took part in raising the suspicion)."""

    base: History
    raised: History
    head: History = NOTHING
    base_open: bool = False


def next_step(plan: Plan, prior: Prior, known: Known) -> Step:
    """The next step; the last three are final.

    Fresh samples of head are held against what they would be if nothing had changed. Then the
    samples that raised the suspicion are draws like base's own, and count as such: against a
    regression. The number of failures that makes one is fixed by all these and the horizon alone,
    so that stopping as soon as it is reached, or out of reach, takes no more chances than sampling
    to the end."""
    head, base = known.head, known.base
    if head.trials < min(LOOK, plan.horizon):
        return Step.SAMPLE_HEAD
    if head.failures == 0:
        return Step.CLEARED
    if base.trials < THICK and known.base_open:
        return Step.SAMPLE_BASE
    needed = failures_needed(base + known.raised, prior, plan.horizon, plan.level)
    if needed is not None and head.failures >= needed:
        return Step.REGRESSED
    left = plan.horizon - head.trials
    if needed is None or head.failures + left < needed:
        return Step.CLEARED if 2 * head.failures < head.trials else Step.UNDECIDED
    return Step.SAMPLE_HEAD
