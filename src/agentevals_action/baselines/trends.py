"""The development of the suites over the stored runs of the default branch: a point for each run,
the flake rate of each test, and the file that keeps them. Points are kept longer than samples."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agentevals_action.baselines.history import FINGERPRINTS, FORGOTTEN_DAYS, SAMPLES
from agentevals_action.baselines.history_format import Sha, StoredModel, Time, json_text
from agentevals_action.escaping import plain
from agentevals_action.model.history import PastSample, SuiteHistory
from agentevals_action.model.result import Fingerprint, SampleResult, SuiteRun
from agentevals_action.results.rates import percentile
from agentevals_action.results.scoring import combine_samples

#: Points of a suite, points of all suites and suites, at most.
POINTS, ALL_POINTS, SUITES = 500, 10_000, 500
#: Flaky tests that are listed of a suite and of all suites, and as many in quarantine, at most.
TESTS, ALL_TESTS = 50, 500
_TEXT = 200  # characters of an id or of a reason

_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Point(StoredModel):
    """A run of a suite on a commit. `passed` and `errored` count some of its `tests`. The mean
    `score` is 0-1; `cost` (US dollars, mean) and the percentiles of the time (milliseconds) are
    those of the agent per sample; None if unknown. `question`, `grading` and `agent` count the
    tests with another fingerprint of that name than in their run before."""

    time: Time
    commit: Sha
    tests: _Count
    passed: _Count
    errored: _Count = 0
    score: _Share | None = None
    cost: _Amount | None = None
    p50: _Amount | None = None
    p95: _Amount | None = None
    question: _Count = 0
    grading: _Count = 0
    agent: _Count = 0
    quarantined: _Count = 0

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        # Accident: a file that was edited by hand has a pass rate over 100 %.
        if self.passed + self.errored > self.tests:
            raise ValueError("more tests passed or ended in an error than there are")
        return self

    @property
    def scored(self) -> int:
        """The number of tests that were scored."""
        return self.tests - self.errored


class FlakyTest(StoredModel):
    """The samples of the latest version of a test, in order: `flips` of the neighbours differ in
    whether they `passed`."""

    id: str
    passed: _Count
    samples: _Count
    flips: _Count

    @property
    def rate(self) -> float:
        """The flake rate: the share (0-1) of neighbouring samples that differ."""
        return self.flips / max(self.samples - 1, 1)


class QuarantinedTest(StoredModel):
    """A test in quarantine at the last run; `expires` is a date."""

    id: str
    owner: str
    reason: str
    expires: str


class SuiteTrend(StoredModel):
    """The runs of the suite at `path`, oldest first; its flaky tests, the worst first, of `flaky`
    in all; and its quarantine."""

    path: str
    name: str
    points: Annotated[tuple[Point, ...], Field(min_length=1)]
    flaky: _Count = 0
    tests: tuple[FlakyTest, ...] = ()
    quarantine: tuple[QuarantinedTest, ...] = ()


class _File(StoredModel):
    version: Literal[1]
    suites: tuple[SuiteTrend, ...] = ()


@dataclass(frozen=True)
class RatePoint:
    """The pass rate of all suites after the runs of a commit: each suite at its last run."""

    time: str
    commit: str
    passed: int
    scored: int


def read_trends(text: str) -> tuple[SuiteTrend, ...]:
    """The suites of a file, by path. ValueError for a file that is not valid."""
    return _File.model_validate_json(text).suites


def format_trends(trends: Sequence[SuiteTrend]) -> str:
    """The file of these suites."""
    file = _File(version=1, suites=tuple(trends)).model_dump(mode="json", exclude_defaults=True)
    return json_text(file)


def bounded(trends: Iterable[SuiteTrend]) -> tuple[SuiteTrend, ...]:
    """The suites that ran last, by path, with the last points of each and its worst tests."""
    newest = sorted(trends, key=lambda trend: trend.points[-1].time, reverse=True)[:SUITES]
    points, tests = (most // max(len(newest), 1) for most in (ALL_POINTS, ALL_TESTS))
    return tuple(
        trend.model_copy(
            update={
                "points": trend.points[-min(POINTS, points) :],
                "tests": trend.tests[:tests],
                "quarantine": trend.quarantine[:tests],
            }
        )
        for trend in sorted(newest, key=lambda trend: trend.path)
    )


def with_run(
    before: SuiteTrend | None,
    run: SuiteRun,
    fresh: SuiteHistory,
    stored: SuiteHistory | None,
    joined: SuiteHistory,
    quarantine: Sequence[QuarantinedTest],
) -> SuiteTrend:
    """The trend of a suite after a run. `fresh` is the history of the run alone, `stored` the one
    before it, `joined` both. Without a trend of `before`, the stored runs are points too."""
    point = _point(run, fresh, stored, len(quarantine))
    points = before.points if before else tuple(_stored_points(stored)) if stored else ()
    others = (one for one in points if (one.time, one.commit) != (point.time, point.commit))
    return _trend(joined, (*others, point), quarantine)


def of_history(stored: SuiteHistory) -> SuiteTrend | None:
    """The trend that the stored samples of a suite give; None if no run is complete."""
    points = tuple(_stored_points(stored))
    return _trend(stored, points) if points else None


def _trend(
    history: SuiteHistory, points: Iterable[Point], quarantine: Sequence[QuarantinedTest] = ()
) -> SuiteTrend:
    flaky = sorted(_flaky(history), key=lambda test: (-test.rate, test.id))
    return SuiteTrend(
        path=history.path,
        name=history.name,
        points=tuple(sorted(points, key=lambda one: (one.time, one.commit))),
        flaky=len(flaky),
        tests=tuple(flaky[:TESTS]),
        quarantine=tuple(quarantine[:TESTS]),
    )


def _point(
    run: SuiteRun, fresh: SuiteHistory, stored: SuiteHistory | None, quarantined: int
) -> Point:
    latest = {name: several[0] for name, several in stored.tests.items()} if stored else {}
    changed: Counter[str] = Counter()
    for name, (series, *_) in fresh.tests.items():
        if before := latest.get(name):
            changed.update(_differing(before.fingerprint, series.fingerprint))
    sample = fresh.samples()[0]
    samples = [one.trace_summary for result in run.results for one in result.main_samples]
    traces = list(filter(None, samples))
    cost, p50, p95 = _spent([one.cost_usd for one in traces], [one.duration_ms for one in traces])
    summary = run.summary
    return Point(
        time=sample.time,
        commit=sample.commit,
        tests=summary.total,
        passed=summary.passed,
        errored=summary.errored,
        score=summary.average_score,
        cost=cost,
        p50=p50,
        p95=p95,
        **changed,
        quarantined=quarantined,
    )


def _stored_points(history: SuiteHistory) -> Iterator[Point]:
    """The points of stored runs of which nothing was dropped: those that have samples of all tests
    that the suite had then."""
    runs: defaultdict[tuple[str, str], dict[str, list[PastSample]]] = defaultdict(dict)
    changed: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    lives, complete_since = {}, ""
    for name, several in history.tests.items():
        ordered = sorted(several, key=lambda series: series.samples[0].at)
        first = ordered[0].samples[0].time
        lives[name] = (first, max(series.used for series in ordered))
        if len(ordered) == FINGERPRINTS or any(len(one.samples) == SAMPLES for one in ordered):
            complete_since = max(complete_since, first)
        for one in ordered:
            for sample in one.samples:
                runs[sample.time, sample.commit].setdefault(name, []).append(sample)
        for one, other in pairwise(ordered):
            start = other.samples[0]
            differing = _differing(one.fingerprint, other.fingerprint)
            changed[start.time, start.commit].update(differing)
    for (time, commit), tests in sorted(runs.items()):
        expected = {name for name, (first, last) in lives.items() if first <= time <= last}
        if time >= complete_since and tests.keys() == expected:
            yield _stored_point(time, commit, list(tests.values()), changed[time, commit])


def _stored_point(
    time: str, commit: str, tests: Sequence[Sequence[PastSample]], changed: Mapping[str, int]
) -> Point:
    verdicts = [
        combine_samples(
            [
                SampleResult(score=one.score, verdict=one.verdict, gates_failed=one.gates_failed)
                for one in samples
            ]
        )[1]
        for samples in tests
    ]
    samples = [sample for several in tests for sample in several]
    cost, p50, p95 = _spent([one.cost_usd for one in samples], [one.duration_ms for one in samples])
    means = [sum(one.score for one in several) / len(several) for several in tests]
    return Point(
        time=time,
        commit=commit,
        tests=len(tests),
        passed=verdicts.count("pass"),
        score=sum(means) / len(means),
        cost=cost,
        p50=p50,
        p95=p95,
        **changed,
    )


def _differing(one: Fingerprint, other: Fingerprint) -> list[str]:
    names = ("question", "grading", "agent")
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _spent(
    costs: Iterable[float | None], durations: Iterable[float | None]
) -> tuple[float | None, float | None, float | None]:
    """The mean cost, and the median and the 95th percentile of the time, over the known values.

    Accident: an agent reports a negative number, or one that makes a sum infinite."""
    known, times = (
        [value for value in values if value is not None and 0 <= value < math.inf]
        for values in (costs, durations)
    )
    mean = sum(cost / len(known) for cost in known) if known else None
    return mean, percentile(times, 0.5), percentile(times, 0.95)


def _flaky(history: SuiteHistory) -> Iterator[FlakyTest]:
    for name, (series, *_) in history.tests.items():
        passed = [sample.verdict == "pass" for sample in series.samples]
        if flips := sum(one != other for one, other in pairwise(passed)):
            yield FlakyTest(
                id=plain(name, _TEXT), passed=sum(passed), samples=len(passed), flips=flips
            )


def overall(trends: Iterable[SuiteTrend], most: int) -> tuple[RatePoint, ...]:
    """The pass rate over the last commits, at most so many. A suite that did not run for
    `FORGOTTEN_DAYS` does not count: it may not exist any more."""
    points = sorted(
        (
            (point.time, point.commit, trend.path, point)
            for trend in trends
            for point in trend.points
        ),
        key=lambda entry: entry[:3],
    )
    latest: dict[str, Point] = {}
    found: dict[str, RatePoint] = {}
    for time, commit, path, point in points:
        latest[path] = point
        since = _days_before(time, FORGOTTEN_DAYS)
        counted = [one for one in latest.values() if one.time >= since]
        found.pop(commit, None)  # a commit that ran again is as recent as its last run
        found[commit] = RatePoint(
            time,
            commit,
            sum(one.passed for one in counted),
            sum(one.scored for one in counted),
        )
    return tuple(one for one in found.values() if one.scored)[-most:]


def _days_before(time: str, days: int) -> str:
    """A time in the form of the stored ones, which sort as texts."""
    try:
        before = datetime.fromisoformat(time) - timedelta(days=days)
    except OverflowError:  # a file that was edited by hand has a time in the year 1
        return ""
    return before.isoformat(timespec="milliseconds").replace("+00:00", "Z")
