"""The table of suites."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.escaping import code
from agentevals_action.formatting import (
    NOISE,
    UNKNOWN,
    cost,
    counted,
    delta,
    moved,
    percent,
    score,
    shown_cost,
    shown_time,
    time,
    tokens,
)
from agentevals_action.model.comparison import Difference, SuiteComparison
from agentevals_action.model.result import SuiteSummary
from agentevals_action.model.usage import total
from agentevals_action.reports.view.baseline import is_noise, pool_differences
from agentevals_action.reports.view.cost import (
    Amount,
    Format,
    agent_cost,
    agent_tokens,
    compare_amounts,
)
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.ordering import FINE, rank, worst_first
from agentevals_action.reports.view.waivers import is_accepted
from agentevals_action.results.rates import interval

_MANY = 7  # suites, from which on the table has only the worst
_OPEN = 10  # of these
_SIGNS = ("❌", "⚠️", "✅")
#: Spaces at which a cell must not break: all but those before an arrow, a unit and a change.
_NO_BREAK = re.compile(r" (?![→(]|per sample)")


@dataclass(frozen=True)
class SuiteRow:
    """One row; `sign` shows the state at a glance, `interval` is that of head's pass rate."""

    sign: str
    suite: str
    pass_rate: str
    interval: str
    score: str
    regressed: str
    cost: str
    tokens: str
    time: str


@dataclass(frozen=True)
class Columns:
    """Which optional columns are shown, because they contain anything known."""

    regressed: bool
    cost: bool
    tokens: bool
    time: bool = True


@dataclass(frozen=True)
class SuiteTable:
    """Suites, the worst first, then their sum; `left` counts the others. A folded table has a
    `title`."""

    columns: Columns
    rows: tuple[SuiteRow, ...]
    left: str
    title: str = ""


def suite_tables(
    suites: Sequence[SuiteComparison], links: Links, limit: int
) -> tuple[SuiteTable | None, SuiteTable | None]:
    """The table of at most `limit` suites. With many suites it has only those of the worst rank
    (none if all are fine), without cost and time, and a second, folded table has the others too."""
    if not suites:
        return None, None
    found = _columns(suites)
    everything = _table(found, suites, suites, links, limit)
    if len(suites) < _MANY:
        return everything, None
    narrow = Columns(found.regressed, cost=False, tokens=False, time=False)
    worst = min(map(rank, suites))
    shown = [suite for suite in suites if rank(suite) == worst < FINE]
    short = _table(narrow, shown, suites, links, min(limit, _OPEN))
    title = f"All {counted(len(suites), 'suite')}, with {'cost and ' if found.cost else ''}time"
    return short, replace(everything, title=title)


def _table(
    columns: Columns,
    shown: Sequence[SuiteComparison],
    suites: Sequence[SuiteComparison],
    links: Links,
    limit: int,
) -> SuiteTable:
    rows = [
        _row([one], linked(code(one.path), links.head_file(one.path)), one.head, one.base)
        for one in worst_first(shown)[:limit]
    ]
    if len(suites) > 1:
        heads, bases = [one.head for one in suites], [one.base for one in suites]
        title = f"**{counted(len(suites), 'suite')}**"
        rows.append(_row(worst_first(suites), title, _total(heads), _total(bases)))
    left = len(shown) - limit
    return SuiteTable(
        columns, tuple(rows), f"… and {counted(left, 'more suite')}" if left > 0 else ""
    )


def _columns(suites: Sequence[SuiteComparison]) -> Columns:
    sides = [side for suite in suites for side in (suite.head, suite.base) if side]
    return Columns(
        regressed=any(suite.base or suite.problem for suite in suites),
        cost=any(agent_cost(side).total is not None for side in sides),
        tokens=any(agent_tokens(side).total is not None for side in sides),
    )


def _row(
    suites: Sequence[SuiteComparison],
    name: str,
    head: SuiteSummary | None,
    base: SuiteSummary | None,
) -> SuiteRow:
    """The row of one suite or of several, the worst first."""
    has_base = base is not None or any(suite.problem for suite in suites)

    def amount(
        words: Format,
        amount_of: Callable[[SuiteSummary | None], Amount],
        difference: Difference | None = None,
    ) -> str:
        before, after = amount_of(base) if has_base else None, amount_of(head)
        noise = is_noise(difference, before.per_sample if before else None, after.per_sample)
        return _cell(compare_amounts(words, before, after, noise))

    rates = (base.pass_rate if base else None, head.pass_rate if head else None)
    return SuiteRow(
        sign=_SIGNS[rank(suites[0])],
        suite=name,
        pass_rate=_cell(moved(percent, *rates)) if has_base else percent(rates[1]),
        interval=_interval(head),
        score=_score(base, head, has_base, _difference(suites, lambda suite: suite.score)),
        regressed=_regressed(suites),
        cost=amount(cost, agent_cost, _difference(suites, lambda suite: suite.cost)),
        tokens=amount(tokens, agent_tokens),
        time=_cell(time(head.duration_ms if head else None)),
    )


def _interval(head: SuiteSummary | None) -> str:
    """The 95 % interval of a pass rate in whole percent; empty without a scored test."""
    scored = head.total - head.errored if head else 0
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
    change = delta(before, after)
    if is_noise(difference, before, after):
        change = NOISE if score(before) != score(after) else ""
    return _cell(moved(score, before, after)) + (f" ({_cell(change)})" if change else "")


def _regressed(suites: Sequence[SuiteComparison]) -> str:
    if not any(suite.base for suite in suites):
        return UNKNOWN
    tests = [test for suite in suites for test in suite.tests]
    regressed = sum(test.is_regression for test in tests)
    accepted = sum(map(is_accepted, tests))
    shown = f"**{regressed}**" if regressed else "0"
    return f"{shown} ({accepted}&nbsp;accepted)" if accepted else shown


def _difference(
    suites: Sequence[SuiteComparison], of: Callable[[SuiteComparison], Difference | None]
) -> Difference | None:
    if len(suites) == 1:
        return of(suites[0])
    return pool_differences(of(suite) for suite in suites if suite.base)


def _cell(figures: str) -> str:
    return _NO_BREAK.sub("&nbsp;", figures)


def _total(summaries: Sequence[SuiteSummary | None]) -> SuiteSummary | None:
    """The sum of all suites; None if one is missing, because sums of different suites differ."""
    known = [summary for summary in summaries if summary is not None]
    if not known or len(known) < len(summaries):
        return None
    names = (
        *("total", "passed", "borderline", "failed", "errored"),
        *("samples", "samples_with_cost", "samples_with_tokens"),
    )
    sums = {name: sum(getattr(one, name) for one in known) for name in names}
    scored = sums["total"] - sums["errored"]
    points = sum((one.average_score or 0) * (one.total - one.errored) for one in known)
    return SuiteSummary(
        eval_path="",
        dataset="",
        pass_rate=sums["passed"] / scored if scored else None,
        average_score=points / scored if scored else None,
        # Of the rounded figures, so that the rows add up to the sum.
        usage=total(
            (replace(one.usage, cost_usd=shown_cost(one.usage.cost_usd)) for one in known),
            partial=True,
        ),
        duration_ms=sum(shown_time(one.duration_ms) for one in known),
        **sums,
    )
