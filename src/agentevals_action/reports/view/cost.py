"""The cost of agents against base, and the cost of the run itself."""

from dataclasses import dataclass

from agentevals_action.formatting import cost, plural, step
from agentevals_action.model.comparison import Review
from agentevals_action.model.result import SampleResult, SuiteSummary, TestResult
from agentevals_action.model.trace import Spending, total_spending


@dataclass(frozen=True)
class AgentCost:
    """What the agents of a suite cost in US dollars, as if the cache had been empty: the sum over
    the samples that state it (`known` of `samples`), None if none does."""

    usd: float | None = None
    known: int = 0
    samples: int = 0
    tests: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether samples are missing in the sum, so that it is a lower bound."""
        return self.usd is not None and self.known < self.samples

    @property
    def per_sample(self) -> float | None:
        """The mean over the known samples."""
        return None if self.usd is None or not self.known else self.usd / self.known

    def __str__(self) -> str:
        return f"{'≥ ' if self.is_partial else ''}{cost(self.usd)}"


def agent_cost(summary: SuiteSummary | None) -> AgentCost:
    """The cost of the agents of a suite."""
    if summary is None:
        return AgentCost()
    usage, known = summary.usage, summary.samples_with_cost
    return AgentCost(usage.cost_usd, known, summary.samples, summary.total)


def compare_costs(base: AgentCost | None, head: AgentCost, is_noise: bool = False) -> str:
    """`base → head (+12%)`, or head alone if there is no base or no visible difference.

    The costs are per sample if the two sides have different numbers of samples per test. A
    partial sum has no percentage, and a difference that `is_noise` has none; `is_noise` applies to
    sums over equally many samples."""
    if base is None:
        return str(head)
    same_samples = base.samples * head.tests == head.samples * base.tests
    if same_samples or None in (base.per_sample, head.per_sample):
        figures, before, after, unit = (base.usd, head.usd), str(base), str(head), ""
    else:
        figures, unit = (base.per_sample, head.per_sample), " per sample"
        before, after = map(cost, figures)
    is_complete = not (base.is_partial or head.is_partial)
    change = step(*figures) if is_complete else None
    if before == after or change == 0:
        return f"{after}{unit}"
    if is_noise and (unit or base.samples == head.samples):
        change = None
    share = "" if change is None else f" ({change:+,}%)".replace("-", "−")
    return f"{before} → {after}{unit}{share}"


def spending_sentence(spent: Spending, subject: str = "this run") -> str:
    """`This run cost $0.31 (source: reply); 40 of 120 replies came from the cache.` `Known cost:
    $0.31 (90 of 120 replies)` if the cost of the others is unknown.

    Empty if no cost is known and no reply was cached."""
    amount, unpriced, cached = spent.cost_usd, spent.unpriced_replies, spent.cached_replies

    def share(number: int) -> str:
        return f"{number:,} of {spent.replies:,} {plural(spent.replies, 'reply', 'replies')}"

    parts = []
    dollars = f"${amount:,.2f}" if amount and amount >= 0.1 else cost(amount)
    dollars = dollars.replace("<", "under ") if amount else "nothing"
    notes = [f"source: {', '.join(sorted(spent.cost_sources))}"] if spent.cost_sources else []
    if amount and unpriced:
        notes = [share(spent.replies - unpriced), *notes]
        parts.append(f"known cost: {dollars} ({'; '.join(notes)})")
    elif amount is not None and not unpriced:
        parts.append(" ".join([subject, "cost", dollars, *(f"({note})" for note in notes)]))
    elif unpriced and cached:
        parts.append(f"the cost of {share(unpriced)} is unknown")
    if cached:
        parts.append(f"{share(cached)} came from the cache")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def spent_by_review(review: Review) -> Spending:
    """The cost of head, of its variants, of the samples of base that were run for this review, and
    of base's evaluators on head's answers."""
    parts: list[SuiteSummary | TestResult | SampleResult] = []
    for suite in review.suites:
        parts += [suite.head] if suite.head else []
        parts += [test.by_base.result for test in suite.tests if test.by_base]
        parts += [variant.summary for variant in suite.variants if variant.summary]
        if suite.base and suite.run.base.origin and suite.run.base.origin.source == "rerun":
            parts.append(suite.base)
        else:
            parts += [
                sample
                for test in suite.tests
                for sample in (
                    *(test.evidence.base_samples if test.evidence else ()),
                    *(test.base.suite_samples if test.base else ()),
                )
            ]
    return total_spending(part.spent for part in parts)
