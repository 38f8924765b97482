"""The interfaces of the sources of base results, and the code that they share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, BaseRun
from agentevals_action.model.result import Fingerprint, SuiteRun
from agentevals_action.model.review import Selection
from agentevals_action.model.suite import BrokenSuite, Suite, Test


class Baseline(Protocol):
    """A source of the base's results for the selected suites. It does not raise: a suite whose
    results cannot be obtained is in `problems` of the run."""

    @property
    def reruns(self) -> bool:
        """Whether the base's suites are run now."""
        ...

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        ...


@dataclass(frozen=True)
class NoBaseline:
    """Gives no results; `info` states the reason."""

    info: BaselineInfo
    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """An empty run."""
        return BaseRun(self.info)


@dataclass(frozen=True)
class BaseTree:
    """The base's own tree: `suites` by path; the fingerprint that a stored result must have to be
    one of that tree (by base's rules of `watch`), and the one to compare it with head by."""

    info: BaselineInfo
    suites: Mapping[str, Suite | BrokenSuite]
    stored_fingerprint: Callable[[Suite, Test], Fingerprint]
    fingerprint: Callable[[Suite, Test], Fingerprint]


@dataclass(frozen=True)
class Freshness:
    """The age from which results are stale: `days` before `now` (with a time zone)."""

    now: datetime
    days: float = 14.0

    def is_stale(self, time: str | None) -> bool:
        """Whether a time (ISO 8601) is older; an unknown time is not."""
        moment = parse_time(time)
        return moment is not None and (self.now - moment).total_seconds() > self.days * 86_400


def split_selections(
    suites: Mapping[str, Suite | BrokenSuite], selections: Sequence[Selection]
) -> tuple[dict[str, Suite], dict[str, str]]:
    """The base's suites of the selections, and the reasons for those that the base does not have;
    both by path on head."""
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
    return wanted, missing


def origin_of(source: str, run: SuiteRun, commit: str | None) -> BaselineOrigin:
    """The origin of a suite's results, with the time of the latest and the samples of the test
    with the fewest."""
    times = {
        moment: result.timestamp
        for result in run.results
        if (moment := parse_time(result.timestamp))
    }
    time = times[max(times)] if times else None
    samples = min((len(result.samples) for result in run.results), default=0)
    return BaselineOrigin(source, commit, time=time, samples=samples)


def parse_time(text: str | None) -> datetime | None:
    """A time (ISO 8601), in UTC where it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
