"""What a store of base results is to a review, and what its stores share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from agentevals_action.model.comparison import BaselineInfo, BaseRun, Origin, Selection
from agentevals_action.model.result import Fingerprint, SuiteRun
from agentevals_action.model.suite import BrokenSuite, Suite


class Baseline(Protocol):
    """Gives the base's results for the selected suites; what it cannot give it says in the run's
    `problems`, it does not raise."""

    @property
    def reruns(self) -> bool:
        """Whether the base's suites are run now."""
        ...

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        ...


@dataclass(frozen=True)
class BaseTree:
    """The base as its own tree has it: `suites` by path, and the fingerprints (by test id) that
    results of one of them must have to be results of that tree."""

    info: BaselineInfo
    suites: Mapping[str, Suite | BrokenSuite]
    expected: Callable[[Suite], Mapping[str, Fingerprint]]


@dataclass(frozen=True)
class Freshness:
    """From what age results are stale: `days` before `now` (with a time zone)."""

    now: datetime
    days: float = 14.0

    def is_stale(self, time: str | None) -> bool:
        """Whether a time (ISO 8601) lies further back; one that is unknown does not."""
        moment = instant(time)
        return moment is not None and (self.now - moment).total_seconds() > self.days * 86_400


@dataclass(frozen=True)
class Sorted:
    """The base's suites by their path on head, and why others are rightly not there."""

    wanted: Mapping[str, Suite] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def sorted_out(
    suites: Mapping[str, Suite | BrokenSuite], selections: Sequence[Selection]
) -> Sorted:
    """Which of the selected suites the base has, renamed ones under their name there."""
    wanted: dict[str, Suite] = {}
    missing: dict[str, str] = {}
    for selection in selections:
        suite = suites.get(selection.base_path or selection.path)
        if suite is None:
            missing[selection.path] = "the suite is new"
        elif isinstance(suite, BrokenSuite):
            missing[selection.path] = (
                f"the suite is broken on base ({suite.errors[0]}), so its tests count as new"
            )
        else:
            wanted[selection.path] = suite
    return Sorted(wanted, missing)


def origin(
    source: str,
    run: SuiteRun,
    commit: str | None,
    distance: int | None = None,
    freshness: Freshness | None = None,
) -> Origin:
    """Where a suite's results come from, with the time of the latest and the samples of the test
    that has fewest."""
    times = [result.timestamp for result in run.results if instant(result.timestamp)]
    time = max(
        times, key=lambda one: instant(one) or datetime.min.replace(tzinfo=UTC), default=None
    )
    samples = min((len(result.samples) for result in run.results), default=0)
    return Origin(
        source,
        commit,
        distance,
        time,
        samples,
        stale=freshness is not None and freshness.is_stale(time),
    )


def instant(time: str | None) -> datetime | None:
    """A time (ISO 8601) as such, in UTC where it names no zone; None for what is no time."""
    try:
        moment = datetime.fromisoformat(time) if time else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
