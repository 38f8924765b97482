"""Cost and tokens of agents against base, and the cost of the run itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentevals_action.formatting import NOISE, cost, distinct, plural, step
from agentevals_action.model.result import SampleResult, SuiteSummary, TestResult
from agentevals_action.model.review import Review

Format = Callable[[float | None], str]
_Part = SuiteSummary | TestResult | SampleResult


@dataclass(frozen=True)
class Amount:
    """A sum over the samples that state their figure (`known` of `samples`), None if none does."""

    total: float | None = None
    known: int = 0
    samples: int = 0
    tests: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether samples are missing in the sum, so that it is a lower bound."""
        return self.total is not None and self.known < self.samples

    @property
    def per_sample(self) -> float | None:
        """The mean over the known samples."""
        return None if self.total is None or not self.known else self.total / self.known

    def format(self, words: Format) -> str:
        """The sum in words; `≥` if it is a lower bound."""
        return f"{'≥ ' if self.is_partial else ''}{words(self.total)}"


def agent_cost(summary: SuiteSummary | None) -> Amount:
    """US dollars that the agents of a suite cost, as if the cache had been empty."""
    if summary is None:
        return Amount()
    return Amount(summary.agent_cost_usd, summary.samples_with_cost, summary.samples, summary.total)


def agent_tokens(summary: SuiteSummary | None) -> Amount:
    """Tokens that the agents of a suite read and wrote; unknown if one of both is unknown."""
    if summary is None:
        return Amount()
    read, written = summary.input_tokens, summary.output_tokens
    total = None if read is None or written is None else read + written
    return Amount(total, summary.samples_with_tokens, summary.samples, summary.total)


def compare_amounts(
    words: Format, base: Amount | None, head: Amount, is_noise: bool = False
) -> str:
    """`base → head (+12%)`, or head alone if there is no base or no visible difference.

    The amounts are per sample if the two sides have different numbers of samples per test. A
    partial sum has no percentage. `is_noise` applies to sums over equally many samples."""
    if base is None:
        return head.format(words)
    same_samples = base.samples * head.tests == head.samples * base.tests
    per_sample = not same_samples and None not in (base.per_sample, head.per_sample)
    unit = " per sample" if per_sample else ""
    if per_sample:
        amounts = (base.per_sample, head.per_sample)
        before, after = words(base.per_sample), words(head.per_sample)
    else:
        amounts = (base.total, head.total)
        before, after = base.format(words), head.format(words)
    is_complete = not (base.is_partial or head.is_partial)
    change = step(*amounts) if is_complete else None
    if before == after or change == 0:
        return f"{after}{unit}"
    if is_noise and is_complete and (per_sample or base.samples == head.samples):
        return f"{before} → {after}{unit} ({NOISE})"
    share = "" if change is None else f" ({change:+,}%)".replace("-", "−")
    return f"{before} → {after}{unit}{share}"


@dataclass(frozen=True)
class Spending:
    """The cost of a run in US dollars (None if no reply has a known cost) with the sources of the
    known costs, and its replies. `replayed`: the cached ones come from cassettes."""

    cost_usd: float | None
    replies: int
    cached: int
    unpriced: int
    sources: tuple[str, ...] = ()
    replayed: bool = False

    def sentence(self, subject: str = "this run") -> str:
        """`This run cost $0.31 (source: reply); 40 of 120 replies came from the cache.`

        Empty if no cost is known and no reply was cached."""
        parts = []
        if self.cost_usd or (self.cost_usd is not None and not self.unpriced):
            amount = f"${self.cost_usd:,.2f}" if self.cost_usd >= 0.1 else cost(self.cost_usd)
            amount = amount if self.cost_usd else "nothing"
            by = f" (source: {', '.join(sorted(self.sources))})" if self.sources else ""
            parts.append(f"{subject} cost {'at least ' if self.unpriced else ''}{amount}{by}")
        if self.unpriced and (self.cost_usd or self.cached):
            parts.append(f"the cost of {self._share(self.unpriced)} is unknown")
        if self.cached:
            words = f"{plural(self.cached, 'was', 'were')} replayed from cassettes"
            words = words if self.replayed else "came from the cache"
            parts.append(f"{self._share(self.cached)} {words}")
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}." if text else ""

    def _share(self, number: int) -> str:
        return f"{number:,} of {self.replies:,} {plural(self.replies, 'reply', 'replies')}"


def spent_by(parts: Iterable[_Part], *, replayed: bool = False) -> Spending:
    """The sum over suites, tests or samples."""
    parts = list(parts)
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return Spending(
        cost_usd=sum(costs) if costs else None,
        sources=distinct(part.cost_sources for part in parts),
        replies=sum(part.replies for part in parts),
        cached=sum(part.cached_replies for part in parts),
        unpriced=sum(part.unpriced_replies for part in parts),
        replayed=replayed,
    )


def spent_by_review(review: Review) -> Spending:
    """The cost of head, of the samples of base that were run for this review, and of base's
    evaluators on head's answers."""
    parts: list[_Part] = []
    for suite in review.suites:
        parts += [suite.head] if suite.head else []
        parts += [test.by_base.result for test in suite.tests if test.by_base]
        source = suite.origin.source if suite.origin else review.baseline.source
        if source == "rerun" and suite.base:
            parts.append(suite.base)
        else:
            parts += [
                sample
                for test in suite.tests
                if test.evidence
                for sample in test.evidence.base_samples
            ]
    return spent_by(parts, replayed=review.replayed)
