"""Whether the cost or the time of a suite rose by more than its limit, on the same tests, beyond
noise. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from random import Random
from statistics import fmean, median

from agentevals_action.formatting import counted, first_line, joined
from agentevals_action.model.baseline import SAME_SERVICE
from agentevals_action.model.comparison import Increase, Outcome, Rise, SuiteComparison
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.run import Figure, Policy, RunSuite

#: The result of a test on head, and on base.
Pair = tuple[TestResult, TestResult]
#: The figure of a test on base and on head.
Point = tuple[float, float]
#: The probability that an unchanged suite is sampled again, if its limit is 0: the fresh samples
#: decide, and more suspicions would cost more of them.
SUSPICION = 0.2
_FROM_ZERO = "it is 0 on base, and a rise from 0 has no percentage"
#: Targets that a reason names.
_TARGETS = 3
#: Resamples of a bootstrap: at least so many, and so many of them below its bound.
_RESAMPLES, _BELOW = 400, 20
#: Digits to which ratios are compared.
_DIGITS = 9


def with_increases(
    suites: Sequence[SuiteComparison], policy: Policy
) -> tuple[SuiteComparison, ...]:
    """The comparisons of suites with the conditions on their cost and time."""
    return tuple(
        replace(
            suite,
            increases=find_increases(
                suite.run,
                ((test.head, test.base) for test in suite.tests if test.head and test.base),
                policy,
                len(suites),
            ),
        )
        for suite in suites
    )


def find_increases(
    suite: RunSuite, results: Iterable[Pair], policy: Policy, suites: int
) -> tuple[Increase, ...]:
    """The conditions of one of `suites` suites, from its results on both sides. A test counts if it
    is scored and has the same question on both sides. Without such a test there is no condition, so
    that the repair of an invalid base can merge, unless base has a problem. In a replay the first
    samples decide."""
    pairs = [pair for pair in results if is_same_test(*pair)]
    why = first_line(suite.base.problem) or (SAME_SERVICE if suite.base.same_service else "")
    if not pairs and not why:
        return ()
    level = policy.level / suites
    confirm = 0 if is_replay(suite, pairs) else policy.confirm
    return tuple(
        _compare(pairs, figure, limit, confirm, level)
        if pairs
        else Increase(figure, limit, Outcome.INCONCLUSIVE, reason=why)
        for figure, limit in policy.limits.items()
    )


def is_replay(suite: RunSuite, pairs: Iterable[Pair]) -> bool:
    """Whether the figures of all these tests are recorded, so that fresh samples reveal nothing."""
    return all(
        head.eval_id in suite.steady and all(sample.cached for sample in head.main_samples)
        for head, _ in pairs
    )


def is_same_test(head: TestResult, base: TestResult) -> bool:
    """Whether results are of the same question, and scored, if only by an advisory judge."""
    on_head, on_base = head.fingerprint, base.fingerprint
    is_same = not (on_head and on_base) or on_head.question == on_base.question
    return is_same and "error" not in (head.state, base.state)


def _compare(
    pairs: Sequence[Pair], figure: Figure, limit: float, confirm: int, level: float
) -> Increase:
    takes = (attrgetter("main_samples"), attrgetter("suite_samples"))
    clusters, again = (_clusters(pairs, figure, take) for take in takes)
    first = measure_rise(clusters, figure, limit, max(level, SUSPICION) if confirm else level)
    fresh = measure_rise(again, figure, limit, level, SUSPICION)
    errors = (sample.error for pair in pairs for row in pair for sample in row.suite_samples)
    problem = next((error.message for error in errors if error), "")
    on_head, on_base = (
        _describe_unknown([pair[side] for pair in pairs], figure, name)
        for side, name in enumerate(("head", "base"))
    )
    outcome, reason = _decide(first, fresh if confirm else first, problem, is_known=not on_head)
    if first is None:
        reason = _FROM_ZERO if clusters else "no test has it on both sides"
    reason = "; ".join(filter(None, (reason, on_head, on_base)))
    return Increase(figure, limit, outcome, first, fresh, reason)


def _decide(
    first: Rise | None, fresh: Rise | None, problem: str, *, is_known: bool
) -> tuple[Outcome, str]:
    """The outcome, and why it is unknown. A figure that is unknown on head might have decided
    otherwise; one that is unknown on base alone is that of the change that makes it known."""
    if first is None:
        return Outcome.INCONCLUSIVE, ""
    if first.exceeds is not False:
        if first.exceeds and fresh and fresh.exceeds:
            return Outcome.FAILED, ""
        if fresh is None or problem:
            why = problem or "no fresh samples were taken"
            return Outcome.INCONCLUSIVE, f"it rose and could not be confirmed: {why}"
        if fresh.exceeds is not False:
            few = f"too few to show it ({counted(fresh.pairs, 'test')})"
            return Outcome.INCONCLUSIVE, f"it rose, and the tests are {few}"
    return (Outcome.PASSED if is_known else Outcome.INCONCLUSIVE), ""


def read_figure(sample: SampleResult, figure: Figure) -> float | None:
    """The cost of an attempt in US dollars, or its duration in milliseconds; None if unknown."""
    trace = sample.trace_summary
    if trace is None:
        return None
    return trace.cost_usd if figure == "cost" else trace.duration_ms


def _mean(samples: Sequence[SampleResult], figure: Figure, *, is_whole: bool) -> float | None:
    """The mean of the known figures; with `is_whole`, None if one is unknown."""
    figures = [read_figure(sample, figure) for sample in samples]
    known = [value for value in figures if value is not None]
    return fmean(known) if known and (len(known) == len(figures) or not is_whole) else None


def _clusters(
    pairs: Sequence[Pair], figure: Figure, take: Callable[[TestResult], Sequence[SampleResult]]
) -> Sequence[Sequence[Point]]:
    """The figures of the tests whose figures are known on both sides; the turns of a conversation
    are one cluster. On head the figure of each sample must be known, because an unknown one may be
    high; base has a history with many samples."""
    clusters: defaultdict[Hashable, list[Point]] = defaultdict(list)
    for head, base in pairs:
        on_head = _mean(take(head), figure, is_whole=True)
        on_base = _mean(take(base), figure, is_whole=False)
        if on_head is not None and on_base is not None:
            clusters[head.conversation_id or ("", head.eval_id)].append((on_base, on_head))
    return list(clusters.values())


def measure_rise(
    clusters: Sequence[Sequence[Point]],
    figure: Figure,
    limit: float,
    level: float,
    suspected: float = 1.0,
) -> Rise | None:
    """How much higher a figure is on head: the cost of all tests together, which is what is paid;
    the median of the tests' ratios of durations, because a few that wait for a vendor take longer
    by far, and would decide about a sum. None without a test, or if base has none above 0.

    The bound is that of a one-sided percentile bootstrap (Efron and Tibshirani 1993, section 13.3)
    over the clusters. Each of them rises by chance with a probability of 0.5; so few that all do
    more often than at the `level` can show nothing. `suspected` is the probability that there is
    something to confirm."""
    measure = _STATISTICS[figure]
    points = [*chain.from_iterable(clusters)]
    ratio = measure(points) if points else math.inf
    if math.isinf(ratio):
        return None
    rise = Rise(len(points), ratio, None, exceeds=False)
    if round(ratio - 1, _DIGITS) <= round(limit, _DIGITS):
        return rise
    if suspected * 0.5 ** len(clusters) > level:
        return replace(rise, exceeds=None)
    count = max(_RESAMPLES, math.ceil(_BELOW / level))
    rng = Random(0)  # noqa: S311  # the same rows give the same decision
    resampled = sorted(
        measure([*chain.from_iterable(rng.choices(clusters, k=len(clusters)))])
        for _ in range(count)
    )
    low = min(resampled[math.floor(level * (count + 1)) - 1], ratio)
    return replace(rise, low=low, exceeds=round(low - 1, _DIGITS) > round(limit, _DIGITS))


def _ratio_of_sums(points: Sequence[Point]) -> float:
    return _ratio(math.fsum(base for base, _ in points), math.fsum(head for _, head in points))


def _median_ratio(points: Sequence[Point]) -> float:
    return median(_ratio(base, head) for base, head in points)


def _ratio(base: float, head: float) -> float:
    return head / base if base else math.inf if head else 1.0


_STATISTICS: Mapping[Figure, Callable[[Sequence[Point]], float]] = {
    "cost": _ratio_of_sums,
    "latency": _median_ratio,
}


def _describe_unknown(rows: Sequence[TestResult], figure: Figure, side: str) -> str:
    """`unknown on head of 2 tests (target `default`: …)`; empty if no test's is."""
    unknown = [
        row for row in rows if _mean(row.main_samples, figure, is_whole=side == "head") is None
    ]
    targets = dict.fromkeys(f"`{row.target}`" for row in unknown if row.target)
    advice = ": give it a `price`" if figure == "cost" else ""
    of = f" (target {joined([*targets][:_TARGETS])}{advice})" if targets else ""
    return f"unknown on {side} of {counted(len(unknown), 'test')}{of}" if unknown else ""
