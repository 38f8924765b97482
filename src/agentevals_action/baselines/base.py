"""The interfaces of the sources of base results, and the code that they share."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from agentevals_action.baselines.stored_run import complete_run
from agentevals_action.errors import HostError
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, BaseRun
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.history import Remembered
from agentevals_action.model.result import Fingerprint, SuiteRun, TestResult
from agentevals_action.model.review import Selection
from agentevals_action.model.suite import BrokenSuite, Suite

#: Commits between a baseline and the base, at most.
MOST_BACK = 50


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
class Lineage:
    """A commit and its ancestors: `distances` are the fewest steps back by SHA, nearest first, the
    commit itself 0. `problem` states why ancestors are missing."""

    distances: Mapping[str, int]
    problem: str = ""


def build_lineage(commit: str, parents: Mapping[str, Sequence[str]], problem: str = "") -> Lineage:
    """The ancestors of a commit over all its parents, at most `MOST_BACK` back; `parents` may hold
    more commits, or fewer."""
    distances = {commit: 0}
    waiting = deque([commit])
    while waiting:
        current = waiting.popleft()
        if distances[current] == MOST_BACK:
            continue
        for parent in parents.get(current, ()):
            if parent not in distances:
                distances[parent] = distances[current] + 1
                waiting.append(parent)
    return Lineage(distances, problem)


class CommitHistory(Protocol):
    """The history before a commit. HostError or GitError when it is not available at all."""

    def lineage(self, commit: str) -> Lineage:
        """The commit's ancestors, as far back as a baseline may be."""
        ...

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """The change between two commits, or the reason why it is unknown."""
        ...


class ResultStore(Protocol):
    """The stored results of the default branch."""

    def read(self, suites: Collection[str]) -> Remembered:
        """The stored results of these suites (paths); HostError when they cannot be read."""
        ...


@dataclass(frozen=True)
class BaseTree:
    """The base's own tree: `suites` by path, and the fingerprints (by test id) that results of a
    suite must have to be results of that tree."""

    info: BaselineInfo
    suites: Mapping[str, Suite | BrokenSuite]
    expected: Callable[[Suite], Mapping[str, Fingerprint]]


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


def origin_of(
    source: str,
    run: SuiteRun,
    commit: str | None,
    distance: int | None = None,
    freshness: Freshness | None = None,
) -> BaselineOrigin:
    """The origin of a suite's results, with the time of the latest and the samples of the test
    with the fewest."""
    times = {
        moment: result.timestamp
        for result in run.results
        if (moment := parse_time(result.timestamp))
    }
    time = times[max(times)] if times else None
    samples = min((len(result.samples) for result in run.results), default=0)
    is_stale = freshness is not None and freshness.is_stale(time)
    return BaselineOrigin(source, commit, distance, time, samples, is_stale)


def parse_time(text: str | None) -> datetime | None:
    """A time (ISO 8601), in UTC where it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


#: The stored results of one suite and their origin, or the reason why there are none.
Found = tuple[SuiteRun, BaselineOrigin] | str


@dataclass(frozen=True)
class StoredBaseline(ABC):
    """A source that reads results of earlier runs."""

    source: ClassVar[str]
    reruns: ClassVar[bool] = False

    tree: BaseTree
    freshness: Freshness

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        return await asyncio.to_thread(self._results, selections)

    def _results(self, selections: Sequence[Selection]) -> BaseRun:
        suites, missing = split_selections(self.tree.suites, selections)
        try:
            found = self._find(suites) if suites else {}
        except HostError as error:
            found = dict.fromkeys(suites, str(error))
        stored = {path: given for path, given in found.items() if not isinstance(given, str)}
        return BaseRun(
            replace(self.tree.info, source=self.source),
            suites={path: run for path, (run, _) in stored.items()},
            missing=missing,
            problems={path: given for path, given in found.items() if isinstance(given, str)},
            origins={path: origin for path, (_, origin) in stored.items()},
        )

    def _complete(
        self, suite: Suite, results: Sequence[TestResult], commit: str | None, distance: int | None
    ) -> Found:
        """The results of a commit, `distance` commits before the base, as a run of the base."""
        run = complete_run(suite, results, self.tree.expected(suite))
        if isinstance(run, str):
            return run
        return run, origin_of(self.source, run, commit, distance, self.freshness)

    @abstractmethod
    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        """The results of the base's suites, by path on head; HostError applies to all of them."""
