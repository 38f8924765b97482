"""The figures of the suites against base: the table, and differences with their intervals."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.formatting import (
    UNKNOWN,
    counted,
    delta,
    moved,
    percent,
    plural,
    score,
    shown_cost,
    shown_time,
    time,
)
from agentevals_action.model.comparison import (
    Difference,
    Increase,
    Outcome,
    SmallestDrop,
    SuiteComparison,
)
from agentevals_action.model.result import SuiteSummary
from agentevals_action.model.run import Figure
from agentevals_action.model.trace import total
from agentevals_action.reports.view.build import rank, worst_first
from agentevals_action.reports.view.cost import agent_cost, compare_costs
from agentevals_action.reports.view.groups import is_accepted
from agentevals_action.reports.view.variants import column_title, describe_variants
from agentevals_action.results.summary import interval

_SIGNS = ("❌", "⚠️", "✅")
#: Explains the lines of `difference_lines`.
NOISE_NOTE = (
    "Mean differences per sample with their 95 % intervals, without fresh samples. "
    "A difference whose interval contains 0 is not a change."
)
#: Explains the lines of `describe_drop`.
DROP_NOTE = (
    "If the pass rate of all tests falls so far, at least one test is confirmed as a regression in "
    "80 % of the cases. Tests that failed in all of five samples of base or more do not count."
)


@dataclass(frozen=True)
class SuiteRow:
    """One row, with `base → head` where they differ; `sign` shows the state at a glance, `path` is
    empty in the sum, `head` has head's counts, `interval` is that of head's pass rate."""

    head: SuiteSummary | None
    sign: str
    path: str
    name: str
    pass_rate: str
    interval: str
    pass_all: str
    score: str
    regressed: str
    variants: Sequence[str]
    cost: str
    time: str


@dataclass(frozen=True)
class SuiteTable:
    """The first suites, the worst first, then the sum of all; `left` counts the other suites. A
    column that has nothing known is not shown; `variants` is the title of the variants' column."""

    rows: tuple[SuiteRow, ...]
    left: str
    has_base: bool
    has_pass_all: bool
    has_cost: bool
    variants: str


def suite_table(suites: Sequence[SuiteComparison], limit: int) -> SuiteTable | None:
    """The table of at most `limit` suites, None without suites."""
    if not suites:
        return None
    ordered, variants = worst_first(suites), column_title(suites)
    rows = [
        _row([suite], suite.path, suite.head, suite.base, describe_variants(suite, variants))
        for suite in ordered[:limit]
    ]
    if len(suites) > 1:
        heads, bases = [suite.head for suite in suites], [suite.base for suite in suites]
        rows.append(_row(ordered, "", _total(heads), _total(bases)))
    left = len(suites) - limit
    sides = [side for suite in suites for side in (suite.head, suite.base) if side]
    return SuiteTable(
        rows=tuple(rows),
        left=f"… and {counted(left, 'more suite')}" if left > 0 else "",
        has_base=any(suite.base or suite.run.base.problem for suite in suites),
        has_pass_all=any(side.pass_all is not None for side in sides),
        has_cost=any(agent_cost(side).usd is not None for side in sides),
        variants=variants,
    )


def _row(
    suites: Sequence[SuiteComparison],
    path: str,
    head: SuiteSummary | None,
    base: SuiteSummary | None,
    variants: Sequence[str] = (),
) -> SuiteRow:
    """The row of one suite or of several, the worst first."""
    has_base = base is not None or any(suite.run.base.problem for suite in suites)
    rates = (base.pass_rate if base else None, head.pass_rate if head else None)
    alls = (base.pass_all if base else None, head.pass_all if head else None)
    before, after = agent_cost(base) if has_base else None, agent_cost(head)
    costs = _difference(suites, lambda suite: suite.cost)
    is_same_cost = is_noise(costs, before.per_sample if before else None, after.per_sample)
    return SuiteRow(
        head=head,
        sign=_SIGNS[rank(suites[0])],
        path=path,
        name=suites[0].run.label if path else counted(len(suites), "suite"),
        pass_rate=moved(percent, *rates) if has_base else percent(rates[1]),
        interval=_interval(head),
        pass_all=moved(percent, *alls) if has_base else percent(alls[1]),
        score=_score(base, head, has_base, _difference(suites, lambda suite: suite.score)),
        regressed=_regressed(suites),
        variants=variants,
        cost=compare_costs(before, after, is_same_cost) + _condition(suites, "cost"),
        time=time(head.duration_ms if head else None) + _condition(suites, "latency"),
    )


def _condition(suites: Sequence[SuiteComparison], figure: Figure) -> str:
    """The sign of the worst condition on a figure; empty if all are met."""
    increases = (increase for suite in suites for increase in suite.increases)
    outcomes = {increase.outcome for increase in increases if increase.figure == figure}
    failed = " ❌" if Outcome.FAILED in outcomes else ""
    return failed or (" ⚠️" if Outcome.INCONCLUSIVE in outcomes else "")


def _interval(head: SuiteSummary | None) -> str:
    """The 95 % interval of a pass rate in whole percent; empty without a scored test."""
    scored = head.scored if head else 0
    if head is None or not scored:
        return ""
    low, high = interval(head.passed, scored)
    return f"{100 * low:.0f}–{100 * high:.0f}%"


def _score(
    base: SuiteSummary | None,
    head: SuiteSummary | None,
    has_base: bool,
    difference: Difference | None,
) -> str:
    before, after = base.average_score if base else None, head.average_score if head else None
    if not has_base:
        return score(after)
    change = "" if is_noise(difference, before, after) else score_change(difference, before, after)
    return moved(score, before, after) + (f" ({change})" if change else "")


def _regressed(suites: Sequence[SuiteComparison]) -> str:
    if not any(suite.base for suite in suites):
        return UNKNOWN
    tests = [test for suite in suites for test in suite.tests]
    regressed, accepted = sum(test.is_regression for test in tests), sum(map(is_accepted, tests))
    return f"{regressed} ({accepted} accepted)" if accepted else str(regressed)


def _difference(
    suites: Sequence[SuiteComparison], of: Callable[[SuiteComparison], Difference | None]
) -> Difference | None:
    if len(suites) == 1:
        return of(suites[0])
    return pool_differences(of(suite) for suite in suites if suite.base)


def _total(summaries: Sequence[SuiteSummary | None]) -> SuiteSummary | None:
    """The sum of all suites; None if one is missing, because sums of different suites differ."""
    known = [summary for summary in summaries if summary is not None]
    if not known or len(known) < len(summaries):
        return None
    names = (
        *("total", "passed", "borderline", "failed", "errored", "advisory"),
        *("samples", "samples_with_cost"),
    )
    sums = {name: sum(getattr(summary, name) for summary in known) for name in names}
    scored = sum(summary.scored for summary in known)
    points = sum((summary.average_score or 0) * summary.scored for summary in known)
    shares = [(summary.pass_all, summary.scored) for summary in known if summary.scored]
    alls = [share * count for share, count in shares if share is not None]
    has_alls = 0 < len(alls) == len(shares)
    times = [summary.duration_ms for summary in known if summary.duration_ms is not None]
    return SuiteSummary(
        eval_path="",
        dataset="",
        pass_rate=sums["passed"] / scored if scored else None,
        average_score=points / scored if scored else None,
        pass_all=sum(alls) / scored if has_alls else None,
        # Of the rounded figures, so that the rows add up to the sum.
        usage=total(
            (
                replace(summary.usage, cost_usd=shown_cost(summary.usage.cost_usd))
                for summary in known
            ),
            partial=True,
        ),
        duration_ms=sum(map(shown_time, times)) if times else None,
        **sums,
    )


def difference_lines(suite: SuiteComparison) -> tuple[str, ...]:
    """The differences of a suite that its figures show."""
    means = (side.average_score if side else None for side in (suite.base, suite.head))
    in_table = score_change(suite.score, *means)
    figures = (
        ("score", suite.score, _score_words, ("higher", "lower"), in_table),
        ("cost", suite.cost, _dollars, ("more expensive", "cheaper"), ""),
        ("time", suite.duration, time, ("slower", "faster"), ""),
    )
    differences = (
        f"{name} {_describe(change, words, comparatives, mean or _signed(change.mean, words))}"
        for name, change, words, comparatives, mean in figures
        if change and _is_visible(change, words)
    )
    return (*differences, *map(_describe_increase, suite.increases))


def _describe_increase(increase: Increase) -> str:
    """`max-cost-increase of 10% failed: +34% over 60 tests (at least +18%), in fresh samples …`"""
    rises = []
    for words, rise in (("", increase.first), ("in fresh samples ", increase.fresh)):
        if rise:
            low = f" (at least {_points(rise.low)})" if rise.low is not None else ""
            rises.append(f"{words}{_points(rise.ratio)} over {counted(rise.pairs, 'test')}{low}")
    facts = "; ".join(filter(None, [", ".join(rises), increase.reason]))
    limit = f"max-{increase.figure}-increase of {percent(increase.limit)}"
    return f"{limit}, {increase.outcome}: {facts}"


def _points(ratio: float) -> str:
    """A ratio as a signed change in percent."""
    return f"{ratio - 1:+.1%}".replace("-", "−")


def describe_drop(drop: SmallestDrop) -> str:
    """What a suite can find: `20 tests, 1 sample: pass rate 0.9 → 0.24, in 80 % of the cases`."""
    size = f"{counted(drop.tests, 'test')}, {counted(drop.samples, 'sample')}"
    if not drop.confirm:
        words = "one sample decides (`confirm: 0`): every drop blocks, and so does noise"
    elif drop.head is not None:
        words = f"pass rate {drop.base:.2g} → {drop.head:.2g}, in 80 % of the cases"
    else:
        words = (
            f"no drop of the pass rate from {drop.base:.2g}: raise `confirm`, add tests, or "
            "repair those that fail on base"
        )
    give = plural(drop.steady, "gives", "give")
    steady = counted(drop.steady, "test", f"always {give} the same result: every drop")
    parts = ((drop.tests, f"{size}: {words}"), (drop.steady, steady))
    return "; ".join(part for count, part in parts if count) or "nothing: no test passes on base"


def score_change(difference: Difference | None, base: float | None, head: float | None) -> str:
    """The difference of two mean scores as they are shown, so that it has one value in a report and
    a reader who subtracts gets the same; empty if the paired difference is of other tests."""
    if difference is None or base is None or head is None:
        return delta(base, head)
    is_of_these = abs(head - base - difference.mean) < 1e-6
    return delta(base, head) if is_of_these else ""


def is_noise(difference: Difference | None, base: float | None, head: float | None) -> bool:
    """Whether two figures must not be called different.

    Their difference lies in the interval of the compared tests, which contains 0."""
    if difference is None or difference.is_change or base is None or head is None:
        return False
    return round(difference.low, 9) <= round(head - base, 9) <= round(difference.high, 9)


def pool_differences(differences: Iterable[Difference | None]) -> Difference | None:
    """The difference over several suites, which are independent; None if one is unknown."""
    every = list(differences)
    known = [difference for difference in every if difference is not None]
    if not known or len(known) < len(every):
        return None
    pairs = sum(part.pairs for part in known)
    mean = sum(part.mean * part.pairs for part in known) / pairs
    half = math.hypot(*((part.high - part.mean) * part.pairs for part in known)) / pairs
    detectable = math.hypot(*(part.detectable * part.pairs for part in known)) / pairs
    clusters = sum(part.clusters for part in known)
    return Difference(mean, mean - half, mean + half, detectable, pairs, clusters)


def _is_visible(difference: Difference, words: Callable[[float], str]) -> bool:
    values = [difference.mean]
    if words is _score_words and not difference.is_change:
        values += [difference.low, difference.high]
    return any(words(abs(value)) != words(0.0) for value in values)


def _describe(
    difference: Difference, words: Callable[[float], str], comparatives: tuple[str, str], mean: str
) -> str:
    low, high = _bound(difference.low, words), _bound(difference.high, words)
    change = f"{mean} ({low} to {high})" if low != high else mean
    if difference.is_change:
        return f"{change}: {comparatives[difference.mean < 0]} than on base"
    detects = f"this suite can detect changes from {words(difference.detectable)}"
    if words is _score_words and difference.detectable > 1:
        detects = "this suite has too few tests to detect any change"
    return f"{change}: not significant; {detects}"


def _signed(value: float, words: Callable[[float], str]) -> str:
    text = words(abs(value))
    return text if text == words(0.0) else f"{'+' if value > 0 else '−'}{text}"


def _bound(value: float, words: Callable[[float], str]) -> str:
    # A bound other than 0 is not shown as 0, because the interval would seem to contain it.
    if value and words(abs(value)) == words(0.0):
        return "just above 0" if value > 0 else "just below 0"
    return _signed(value, words)


def _score_words(value: float) -> str:
    if value == 0 or value >= 0.005:
        return f"{value:.2f}"
    return f"{value:.1g}" if value >= 0.00005 else "0.00"


def _dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
