"""`history.html`: the stored runs of the default branch as one page that opens without a server and
fetches nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from agentevals_action.baselines.trends import Point, SuiteTrend
from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import cost, counted, moved, percent
from agentevals_action.reports.page.layout import json_in_html, page
from agentevals_action.reports.view.history import list_idle, name_trend
from agentevals_action.results.summary import interval

#: The name of the page's file.
PAGE = "history.html"
#: Tests and gates in a list, at most.
LISTED = 500
_SHA = 12  # characters of a commit
_TEXT = 200  # characters of a text


def history_page(trends: Sequence[SuiteTrend], commits_url: str = "") -> str:
    """The page. `commits_url` is the address of a commit without its SHA; without it, commits are
    no links."""
    data = {
        "commits": commits_url,
        "suites": [
            {
                "path": _address(trend),
                "name": name_trend(trend),
                "points": [_point(point) for point in trend.points],
            }
            for trend in trends
        ],
    }
    context = {
        "suites": [_suite(trend) for trend in trends],
        "flaky": list(_flaky(trends)),
        "most_flaky": LISTED,
        "idle": [(*words, lines[:LISTED]) for *words, lines in list_idle(trends)],
    }
    return page("history", "History of the evaluation suites", json_in_html(data), context)


def _address(trend: SuiteTrend) -> str:
    """The address of a suite on the page."""
    return "#".join(filter(None, (trend.path, trend.variant)))


def _point(point: Point) -> dict[str, Any]:
    """A run, with the 95 % interval of its pass rate."""
    low, high = interval(point.passed, point.scored)
    price = None if point.cost is None else round(point.cost, 7)
    shown = {"commit": point.commit[:_SHA], "scored": point.scored, "cost": price}
    return {**asdict(point), **shown, "low": round(low, 4), "high": round(high, 4)}


def _suite(trend: SuiteTrend) -> dict[str, str]:
    """A suite at its last run; rate and cost with those of the run before."""
    last = trend.points[-1]
    before = trend.points[-2] if len(trend.points) > 1 else last
    errors = f", {counted(last.errored, 'error')}" if last.errored else ""
    return {
        "name": plain(name_trend(trend), _TEXT),
        "link": f"#suite={quote(visible(_address(trend)), safe='')}",
        "last": f"{last.time[:10]}, {last.commit[:_SHA]}",
        "rate": moved(percent, before.pass_rate, last.pass_rate),
        "tests": f"{last.passed:,} of {last.scored:,}{errors}",
        "cost": moved(cost, before.cost, last.cost),
        "flaky": f"{len(trend.flaky):,}",
    }


def _flaky(trends: Sequence[SuiteTrend]) -> Iterator[dict[str, str]]:
    """The tests whose samples differ, the worst first."""
    flaky = [(test, name_trend(trend)) for trend in trends for test in trend.flaky]
    flaky.sort(key=lambda entry: (-entry[0].rate, entry[1], entry[0].id))
    for test, suite in flaky[:LISTED]:
        yield {
            "id": plain(test.id, _TEXT),
            "suite": plain(suite, _TEXT),
            "rate": percent(test.rate),
            "passed": f"{test.passed} of {test.samples}",
        }
