"""`history.html`: the stored runs of the default branch as one page that opens without a server and
fetches nothing."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from agentevals_action.baselines.history import FINGERPRINTS, FORGOTTEN_DAYS, SAMPLES
from agentevals_action.baselines.trends import (
    ALL_POINTS,
    ALL_TESTS,
    POINTS,
    TESTS,
    Point,
    RatePoint,
    SuiteTrend,
    overall,
)
from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import UNKNOWN, cost, counted, moved, percent, score, time
from agentevals_action.reports.html.layout import json_in_html, page
from agentevals_action.results.rates import interval

#: The name of the page's file.
PAGE = "history.html"
_COMMITS = 20  # that a reader without JavaScript sees
_SHA = 12  # characters of a commit
_TEXT = 200  # characters of a text
_BOUNDS = (
    f"This page has at most the last {POINTS} runs of a suite and {ALL_POINTS:,} runs of all "
    f"suites. It lists at most {TESTS} flaky tests of a suite and {ALL_TESTS} of all suites, and "
    "as many in quarantine. Flake rates are over the stored samples: at most the last "
    f"{SAMPLES} of each test with an unchanged question, grading and agent. Runs that were stored "
    "before the first version of this page are there as far as all their samples still are: the "
    f"last {FINGERPRINTS} versions of each test."
)


def history_page(trends: Sequence[SuiteTrend], commits_url: str = "") -> str:
    """The page. `commits_url` is the address of a commit without its SHA; without it, commits are
    no links."""
    rates = overall(trends, POINTS)
    data = {
        "commits": commits_url,
        "overall": [_rate(one) for one in rates],
        "suites": [
            {"path": trend.path, "points": [_point(one) for one in trend.points]}
            for trend in trends
        ],
    }
    context = {
        "headline": _headline(rates),
        "days": FORGOTTEN_DAYS,
        "suites": [_suite(trend) for trend in trends],
        "commits": [_commit(one) for one in reversed(rates[-_COMMITS:])],
        "flaky": list(_flaky(trends)),
        "quarantine": list(_quarantine(trends)),
        "bounds": _BOUNDS,
    }
    return page("history", "History of the evaluation suites", json_in_html(data), context)


def _headline(rates: Sequence[RatePoint]) -> str:
    if not rates:
        return "No run of the default branch is stored yet."
    last = rates[-1]
    return f"{_pass_rate(last.passed, last.scored)} at commit {last.commit[:_SHA]}."


def _pass_rate(passed: int, scored: int) -> str:
    if not scored:
        return "no test was scored"
    low, high = interval(passed, scored)
    bounds = f"95 % interval {percent(low)} to {percent(high)}"
    rate = percent(passed / scored)
    return f"{rate} of the tests passed: {passed:,} of {scored:,}, {bounds}"


def _rate(one: RatePoint) -> list[str | float]:
    low, high = interval(one.passed, one.scored)
    return [one.time, one.commit[:_SHA], one.passed, one.scored, round(low, 4), round(high, 4)]


def _point(one: Point) -> list[str | float | None]:
    """The order is that of `POINT` in `history.js`."""
    low, high = interval(one.passed, one.scored)
    return [
        one.time,
        one.commit[:_SHA],
        one.passed,
        one.scored,
        round(low, 4),
        round(high, 4),
        one.errored,
        _rounded(one.score, 4),
        _rounded(one.cost, 7),
        _rounded(one.p50, 1),
        _rounded(one.p95, 1),
        one.question,
        one.grading,
        one.agent,
        one.quarantined,
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _suite(trend: SuiteTrend) -> dict[str, str]:
    """A suite at its last run; rate, score, cost and time with those of the run before."""
    last = trend.points[-1]
    before = trend.points[-2] if len(trend.points) > 1 else last
    errors = f", {counted(last.errored, 'error')}" if last.errored else ""
    return {
        "path": plain(trend.path, _TEXT),
        "link": f"#suite={quote(visible(trend.path), safe='')}",
        "last": f"{last.time[:10]}, {last.commit[:_SHA]}",
        "rate": moved(percent, _share(before), _share(last)),
        "tests": f"{last.passed:,} of {last.scored:,}{errors}",
        "score": moved(score, before.score, last.score),
        "cost": moved(cost, before.cost, last.cost),
        "time": moved(time, before.p95, last.p95),
        "flaky": f"{trend.flaky:,}",
    }


def _share(point: Point) -> float | None:
    return point.passed / point.scored if point.scored else None


def _commit(one: RatePoint) -> dict[str, str]:
    """The pass rate of all suites after a commit, for readers without JavaScript."""
    return {
        "name": f"{one.time[:10]}, {one.commit[:_SHA]}",
        "rate": f"{percent(one.passed / one.scored)} ({one.passed:,} of {one.scored:,})",
    }


def _flaky(trends: Sequence[SuiteTrend]) -> Iterator[dict[str, str | int]]:
    """The tests whose samples differ; `number` is the index of the suite."""
    found = [(test, number) for number, trend in enumerate(trends) for test in trend.tests]
    found.sort(key=lambda one: (-one[0].rate, one[1], one[0].id))
    for test, number in found:
        trend = trends[number]
        is_held = any(one.id == test.id for one in trend.quarantine)
        yield {
            "id": plain(test.id, _TEXT),
            "suite": plain(trend.path, _TEXT),
            "number": number,
            "rate": percent(test.rate),
            "passed": f"{test.passed} of {test.samples}",
            "note": "in quarantine" if is_held else UNKNOWN,
        }


def _quarantine(trends: Sequence[SuiteTrend]) -> Iterator[dict[str, str | int]]:
    """The tests in quarantine; `number` is the index of the suite."""
    for number, trend in enumerate(trends):
        for test in trend.quarantine:
            texts = {"id": test.id, "suite": trend.path, "owner": test.owner}
            texts |= {"reason": test.reason, "expires": test.expires}
            yield {"number": number, **{name: plain(text, _TEXT) for name, text in texts.items()}}
