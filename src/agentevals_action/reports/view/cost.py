"""What agents took, in dollars and tokens, and how it moved against base; and what the run itself
cost."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentevals_action.formatting import NOISE, cost, step
from agentevals_action.model.comparison import Review, SuiteComparison
from agentevals_action.model.result import SampleResult, SuiteSummary


@dataclass(frozen=True)
class Amount:
    """The sum of what samples tell of themselves, None when none does: `told` of `samples` do, over
    `tests` tests."""

    total: float | None = None
    told: int = 0
    samples: int = 0
    tests: int = 0

    @property
    def partial(self) -> bool:
        """Whether samples are missing in the sum, so that it is at least that much."""
        return self.total is not None and self.told < self.samples

    @property
    def each(self) -> float | None:
        """What one sample took, None when unknown."""
        return None if self.total is None or not self.told else self.total / self.told


def agent_cost(summary: SuiteSummary | None) -> Amount:
    """US dollars that the agents of a suite cost, as if no reply had come out of the cache."""
    if summary is None:
        return Amount()
    return Amount(summary.agent_cost_usd, summary.samples_with_cost, summary.samples, summary.total)


def agent_tokens(summary: SuiteSummary | None) -> Amount:
    """Tokens that the agents of a suite read and wrote; one kind alone is no sum."""
    if summary is None:
        return Amount()
    both = (
        None
        if summary.input_tokens is None or summary.output_tokens is None
        else summary.input_tokens + summary.output_tokens
    )
    return Amount(both, summary.samples_with_tokens, summary.samples, summary.total)


def against(
    words: Callable[[float | None], str], base: Amount | None, head: Amount, noise: bool = False
) -> str:
    """`base → head (+12%)`, head's alone when there is no base or no difference that shows; unknown
    is a dash. What is `noise` is said to be that, unless the two are sums over another number of
    samples.

    Where the two have another number of samples a test, it is what each sample took. Of a sum that
    is not whole (`≥`) no share is told."""
    if base is None:
        return _told(words, head)
    each = base.samples * head.tests != head.samples * base.tests and None not in (
        base.each,
        head.each,
    )
    before, after = (base.each, head.each) if each else (base.total, head.total)
    unit = " a sample" if each else ""
    told = (words(before), words(after)) if each else (_told(words, base), _told(words, head))
    whole = not (base.partial or head.partial)
    moved = step(before, after) if whole else None
    if told[0] == told[1] or moved == 0:
        return f"{told[1]}{unit}"
    if noise and whole and (each or base.samples == head.samples):
        return f"{told[0]} → {told[1]}{unit} ({NOISE})"
    return f"{told[0]} → {told[1]}{unit}{f' ({moved:+,}%)'.replace('-', '−') if moved is not None else ''}"


def _told(words: Callable[[float | None], str], amount: Amount) -> str:
    return f"{'≥ ' if amount.partial else ''}{words(amount.total)}"


@dataclass(frozen=True)
class Spent:
    """What was paid: US dollars (None when no reply tells), replies of agents and judges, how many
    came out of the cache (for nothing) and how many do not tell what they cost."""

    cost_usd: float | None
    replies: int
    cached: int
    unpriced: int

    def words(self, what: str = "this run") -> str:
        """`This run cost $0.31; 40 of 120 replies came from the cache.`; empty when no cost is
        known and no reply was cached."""
        parts = []
        if self.cost_usd or (self.cost_usd is not None and not self.unpriced):
            worth = (
                "nothing"
                if not self.cost_usd
                else f"${self.cost_usd:,.2f}"
                if self.cost_usd >= 0.1
                else cost(self.cost_usd)
            )
            parts.append(f"{what} cost {'at least ' if self.unpriced else ''}{worth}")
        if self.unpriced and (self.cost_usd or self.cached):
            parts.append(f"what {self._share(self.unpriced)} cost is not known")
        if self.cached:
            parts.append(f"{self._share(self.cached)} came from the cache")
        told = "; ".join(parts)
        return f"{told[0].upper()}{told[1:]}." if told else ""

    def _share(self, number: int) -> str:
        return f"{number:,} of {self.replies:,} {'reply' if self.replies == 1 else 'replies'}"


def spent_by(summaries: Iterable[SuiteSummary]) -> Spent:
    """What suites cost together."""
    runs = list(summaries)
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    return Spent(
        cost_usd=sum(costs) if costs else None,
        replies=sum(run.replies for run in runs),
        cached=sum(run.cached_replies for run in runs),
        unpriced=sum(run.unpriced_replies for run in runs),
    )


def of_review(review: Review) -> Spent:
    """What a review cost: head, and of the base what was run in it; stored results cost when they
    were made."""
    spent = [spent_by(suite.head for suite in review.suites if suite.head)]
    for suite in review.suites:
        source = suite.origin.source if suite.origin else review.baseline.source
        if source == "rerun" and suite.base:
            spent.append(spent_by([suite.base]))
        else:
            spent.append(_of_samples(_fresh(suite)))
    costs = [one.cost_usd for one in spent if one.cost_usd is not None]
    return Spent(
        cost_usd=sum(costs) if costs else None,
        replies=sum(one.replies for one in spent),
        cached=sum(one.cached for one in spent),
        unpriced=sum(one.unpriced for one in spent),
    )


def _fresh(suite: SuiteComparison) -> list[SampleResult]:
    """Samples of base that were taken to confirm a fall."""
    return [
        sample for test in suite.tests if test.evidence for sample in test.evidence.base_samples
    ]


def _of_samples(samples: Iterable[SampleResult]) -> Spent:
    told = list(samples)
    costs = [one.cost_usd for one in told if one.cost_usd is not None]
    return Spent(
        cost_usd=sum(costs) if costs else None,
        replies=sum(one.replies for one in told),
        cached=sum(one.cached_replies for one in told),
        unpriced=sum(one.unpriced_replies for one in told),
    )
