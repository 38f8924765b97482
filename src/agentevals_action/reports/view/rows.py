"""The table of suites."""

from collections.abc import Callable, Iterable, Sequence

from agentevals_action.escaping import code
from agentevals_action.model.comparison import Change, SuiteComparison
from agentevals_action.model.result import SuiteSummary
from agentevals_action.reports.view.figures import UNKNOWN, cost, counted, delta, moved, percent, score, time
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.shapes import SuiteRow

WORSE, DOUBT, FINE = "❌", "⚠️", "✅"


def rows(suites: Sequence[SuiteComparison], links: Links, limit: int) -> tuple[tuple[SuiteRow, ...], str]:
    """At most `limit` suites, those that got worse first, then the sum of all when there are several; and how many are left out."""
    ordered = sorted(suites, key=_rank)
    shown = [_row(suite, links) for suite in ordered[:limit]]
    if len(suites) > 1:
        shown.append(_sum(suites))
    left = len(suites) - limit
    return tuple(shown), f"… and {counted(left, 'more suite')}" if left > 0 else ""


def _rank(suite: SuiteComparison) -> int:
    return (WORSE, DOUBT, FINE).index(_sign(suite))


def _sign(suite: SuiteComparison) -> str:
    if any(test.change is Change.REGRESSED or (test.head and test.head.gates_failed) for test in suite.tests):
        return WORSE
    fine = suite.head and suite.head.total and suite.head.passed == suite.head.total and not suite.problem
    return FINE if fine else DOUBT


def _row(suite: SuiteComparison, links: Links) -> SuiteRow:
    return _cells(_sign(suite), linked(code(suite.path), links.head_file(suite.path)), suite.head, suite.base, suite.problem, [suite])


def _sum(suites: Sequence[SuiteComparison]) -> SuiteRow:
    worst = min(suites, key=_rank)
    base = _total([suite.base for suite in suites])
    problem = next((suite.problem for suite in suites if suite.problem), "")
    return _cells(_sign(worst), f"**{counted(len(suites), 'suite')}**", _total([suite.head for suite in suites]), base, problem, suites)


def _cells(
    sign: str, name: str, head: SuiteSummary | None, base: SuiteSummary | None, problem: str, suites: Sequence[SuiteComparison]
) -> SuiteRow:
    def both(words: Callable[[float | None], str], before: float | None, after: float | None) -> str:
        if base is None and not problem:
            return words(after)
        return moved(words, before, after)

    change = delta(base.average_score, head.average_score) if base and head else ""
    regressed = sum(test.change is Change.REGRESSED for suite in suites for test in suite.tests)
    compared = base is not None
    return SuiteRow(
        sign=sign,
        suite=name,
        pass_rate=_together(both(percent, base.pass_rate if base else None, head.pass_rate if head else None)),
        score=both(score, base.average_score if base else None, head.average_score if head else None) + (f" ({change})" if change else ""),
        regressed=(f"**{regressed}**" if regressed else "0") if compared else UNKNOWN,
        cost=both(cost, base.cost_usd if base else None, head.cost_usd if head else None),
        time=_together(time(head.duration_ms if head else None)),
    )


def _together(figure: str) -> str:
    """A figure that no column, however narrow, breaks apart."""
    return figure.replace(" ", "&nbsp;")


def _total(summaries: Iterable[SuiteSummary | None]) -> SuiteSummary | None:
    """The sum of all suites, None when one of them is missing: sums over different suites do not compare."""
    known = list(summaries)
    if not known or any(summary is None for summary in known):
        return None
    all_of = [summary for summary in known if summary is not None]
    total, errored, passed = (sum(getattr(one, name) for one in all_of) for name in ("total", "errored", "passed"))
    scored = total - errored
    points = sum((one.average_score or 0) * (one.total - one.errored) for one in all_of)
    costs = [one.cost_usd for one in all_of if one.cost_usd is not None]
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
        cost_usd=sum(costs) if costs else None,
        duration_ms=sum(one.duration_ms for one in all_of),
    )
