"""`history.html`: the stored runs of the default branch as one page that opens without a server and
fetches nothing."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from agentevals_action.baselines.trends import (
    FORGOTTEN_DAYS,
    Point,
    RatePoint,
    SuiteTrend,
    overall,
)
from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import cost, counted, moved, percent
from agentevals_action.reports.html.layout import json_in_html, page
from agentevals_action.results.rates import interval

#: The name of the page's file.
PAGE = "history.html"
#: Flaky tests that are listed, at most.
FLAKY_TESTS = 500
_COMMITS = 20  # that a reader without JavaScript sees
_SHA = 12  # characters of a commit
_TEXT = 200  # characters of a text


def history_page(trends: Sequence[SuiteTrend], commits_url: str = "") -> str:
    """The page. `commits_url` is the address of a commit without its SHA; without it, commits are
    no links."""
    rates = overall(trends)
    data = {
        "commits": commits_url,
        "overall": [_rate(rate) for rate in rates],
        "suites": [
            {"path": trend.path, "points": [_point(point) for point in trend.points]}
            for trend in trends
        ],
    }
    context = {
        "headline": _headline(rates),
        "days": FORGOTTEN_DAYS,
        "suites": [_suite(trend) for trend in trends],
        "commits": [_commit(rate) for rate in reversed(rates[-_COMMITS:])],
        "flaky": list(_flaky(trends)),
        "most_flaky": FLAKY_TESTS,
    }
    return page("history", "History of the evaluation suites", json_in_html(data), context)


def _headline(rates: Sequence[RatePoint]) -> str:
    if not rates:
        return "No run of the default branch is stored yet."
    last = rates[-1]
    return f"{_pass_rate(last.passed, last.scored)} at commit {last.commit[:_SHA]}."


def _pass_rate(passed: int, scored: int) -> str:
    low, high = interval(passed, scored)
    bounds = f"95 % interval {percent(low)} to {percent(high)}"
    return f"{percent(passed / scored)} of the tests passed: {passed:,} of {scored:,}, {bounds}"


def _rate(rate: RatePoint | Point) -> list[str | float]:
    """The order is that of `RATE` in `history.js`."""
    low, high = interval(rate.passed, rate.scored)
    return [rate.time, rate.commit[:_SHA], rate.passed, rate.scored, round(low, 4), round(high, 4)]


def _point(point: Point) -> list[str | float | None]:
    """The order is that of `POINT` in `history.js`."""
    price = None if point.cost is None else round(point.cost, 7)
    changes = (point.question, point.grading, point.agent)
    return [*_rate(point), point.errored, price, *changes]


def _suite(trend: SuiteTrend) -> dict[str, str]:
    """A suite at its last run; rate and cost with those of the run before."""
    last = trend.points[-1]
    before = trend.points[-2] if len(trend.points) > 1 else last
    errors = f", {counted(last.errored, 'error')}" if last.errored else ""
    return {
        "path": plain(trend.path, _TEXT),
        "link": f"#suite={quote(visible(trend.path), safe='')}",
        "last": f"{last.time[:10]}, {last.commit[:_SHA]}",
        "rate": moved(percent, _share(before), _share(last)),
        "tests": f"{last.passed:,} of {last.scored:,}{errors}",
        "cost": moved(cost, before.cost, last.cost),
        "flaky": f"{len(trend.flaky):,}",
    }


def _share(point: Point) -> float | None:
    return point.passed / point.scored if point.scored else None


def _commit(rate: RatePoint) -> dict[str, str]:
    """The pass rate of all suites after a commit, for readers without JavaScript."""
    return {
        "name": f"{rate.time[:10]}, {rate.commit[:_SHA]}",
        "rate": f"{percent(rate.passed / rate.scored)} ({rate.passed:,} of {rate.scored:,})",
    }


def _flaky(trends: Sequence[SuiteTrend]) -> Iterator[dict[str, str | int]]:
    """The tests whose samples differ; `number` is the index of the suite."""
    found = [(test, number) for number, trend in enumerate(trends) for test in trend.flaky]
    found.sort(key=lambda entry: (-entry[0].rate, entry[1], entry[0].id))
    for test, number in found[:FLAKY_TESTS]:
        yield {
            "id": plain(test.id, _TEXT),
            "suite": plain(trends[number].path, _TEXT),
            "number": number,
            "rate": percent(test.rate),
            "passed": f"{test.passed} of {test.samples}",
        }
