"""The table of suites."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

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
    time,
    tokens,
)
from agentevals_action.model.comparison import Difference, SuiteComparison
from agentevals_action.model.result import SuiteSummary
from agentevals_action.reports.view import cost as spending
from agentevals_action.reports.view import differences, waivers
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.models import Columns, SuiteRow

WORSE, DOUBT, FINE = "❌", "⚠️", "✅"
Figure = TypeVar("Figure", int, float)

#: Where figures break, in a column however narrow: before their arrow, their unit and their change,
#: and nowhere else.
_NO_BREAK = re.compile(r" (?![→(]|a sample)")


def rows(
    suites: Sequence[SuiteComparison], links: Links, limit: int
) -> tuple[tuple[SuiteRow, ...], str]:
    """At most `limit` suites, those that got worse first, then the sum of all when there are
    several; and how many are left out."""
    ordered = sorted(suites, key=_rank)
    shown = [_row(suite, links) for suite in ordered[:limit]]
    if len(suites) > 1:
        shown.append(_sum(suites))
    left = len(suites) - limit
    return tuple(shown), f"… and {counted(left, 'more suite')}" if left > 0 else ""


def columns(suites: Sequence[SuiteComparison]) -> Columns:
    """What is known of any of the suites, on either side."""
    sides = [side for suite in suites for side in (suite.head, suite.base) if side]
    return Columns(
        regressed=any(suite.base or suite.problem for suite in suites),
        cost=any(spending.agent_cost(side).total is not None for side in sides),
        tokens=any(spending.agent_tokens(side).total is not None for side in sides),
    )


def _rank(suite: SuiteComparison) -> int:
    return (WORSE, DOUBT, FINE).index(_sign(suite))


def _sign(suite: SuiteComparison) -> str:
    if any(waivers.got_worse(test) for test in suite.tests):
        return WORSE
    fine = (
        suite.head
        and suite.head.total
        and suite.head.passed == suite.head.total
        and not suite.problem
    )
    return FINE if fine else DOUBT


def _row(suite: SuiteComparison, links: Links) -> SuiteRow:
    return _cells(
        _sign(suite),
        linked(code(suite.path), links.head_file(suite.path)),
        suite.head,
        suite.base,
        suite.problem,
        [suite],
    )


def _sum(suites: Sequence[SuiteComparison]) -> SuiteRow:
    worst = min(suites, key=_rank)
    base = _total([suite.base for suite in suites])
    problem = next((suite.problem for suite in suites if suite.problem), "")
    return _cells(
        _sign(worst),
        f"**{counted(len(suites), 'suite')}**",
        _total([suite.head for suite in suites]),
        base,
        problem,
        suites,
    )


def _cells(
    sign: str,
    name: str,
    head: SuiteSummary | None,
    base: SuiteSummary | None,
    problem: str,
    suites: Sequence[SuiteComparison],
) -> SuiteRow:
    def both(
        words: Callable[[float | None], str], before: float | None, after: float | None
    ) -> str:
        if base is None and not problem:
            return words(after)
        return _cell(moved(words, before, after))

    def taken(
        words: Callable[[float | None], str],
        amount: Callable[[SuiteSummary | None], spending.Amount],
        difference: Difference | None = None,
    ) -> str:
        before, after = amount(base) if base or problem else None, amount(head)
        same = differences.is_noise(difference, before.each if before else None, after.each)
        return _cell(spending.against(words, before, after, same))

    cost_difference = _difference(suites, lambda suite: suite.cost)
    return SuiteRow(
        sign=sign,
        suite=name,
        pass_rate=both(percent, base.pass_rate if base else None, head.pass_rate if head else None),
        score=_score(base, head, problem, _difference(suites, lambda suite: suite.score)),
        regressed=_regressed(suites),
        cost=taken(cost, spending.agent_cost, cost_difference),
        tokens=taken(tokens, spending.agent_tokens),
        time=_cell(time(head.duration_ms if head else None)),
    )


def _score(
    base: SuiteSummary | None,
    head: SuiteSummary | None,
    problem: str,
    difference: Difference | None,
) -> str:
    before, after = base.average_score if base else None, head.average_score if head else None
    if base is None and not problem:
        return score(after)
    if differences.is_noise(difference, before, after):
        change = NOISE if score(before) != score(after) else ""
    else:
        change = delta(before, after) if base and head else ""
    return _cell(moved(score, before, after)) + (f" ({_cell(change)})" if change else "")


def _regressed(suites: Sequence[SuiteComparison]) -> str:
    if not any(suite.base for suite in suites):
        return UNKNOWN
    tests = [test for suite in suites for test in suite.tests]
    regressed, accepted = (sum(map(of, tests)) for of in (waivers.regressed, waivers.accepted))
    return (f"**{regressed}**" if regressed else "0") + (
        f" ({accepted}&nbsp;accepted)" if accepted else ""
    )


def _difference(
    suites: Sequence[SuiteComparison], of: Callable[[SuiteComparison], Difference | None]
) -> Difference | None:
    """The difference of a suite, or of several together."""
    return (
        of(suites[0])
        if len(suites) == 1
        else differences.pooled(of(suite) for suite in suites if suite.base)
    )


def _cell(figures: str) -> str:
    return _NO_BREAK.sub("&nbsp;", figures)


def _total(summaries: Iterable[SuiteSummary | None]) -> SuiteSummary | None:
    """The sum of all suites, None when one of them is missing: sums over different suites do not
    compare."""
    known = list(summaries)
    if not known or any(summary is None for summary in known):
        return None
    all_of = [summary for summary in known if summary is not None]
    total, errored, passed = (
        sum(getattr(one, name) for one in all_of) for name in ("total", "errored", "passed")
    )
    scored = total - errored
    points = sum((one.average_score or 0) * (one.total - one.errored) for one in all_of)
    sums = {
        name: sum(getattr(one, name) for one in all_of)
        for name in ("samples", "samples_with_cost", "samples_with_tokens")
    }
    return SuiteSummary(
        eval_path="",
        dataset="",
        total=total,
        passed=passed,
        borderline=sum(one.borderline for one in all_of),
        failed=sum(one.failed for one in all_of),
        errored=errored,
        pass_rate=passed / scored if scored else None,
        average_score=points / scored if scored else None,
        agent_cost_usd=_known(one.agent_cost_usd for one in all_of),
        input_tokens=_known(one.input_tokens for one in all_of),
        output_tokens=_known(one.output_tokens for one in all_of),
        duration_ms=sum(one.duration_ms for one in all_of),
        **sums,
    )


def _known(figures: Iterable[Figure | None]) -> Figure | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known[1:], known[0]) if known else None
