"""The sources of base's results: each suite takes the first that has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from agentevals_action.formatting import counted
from agentevals_action.model.baseline import (
    BaselineInfo,
    BaselineOrigin,
    BaseResults,
    BaseSuite,
    IncompleteSource,
)
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Selection
from agentevals_action.model.suite import BrokenSuite, Suite

#: Suites whose reasons are listed one by one.
_SHOWN = 3


class Unavailable(Exception):
    """The reason why a source has no results of a suite."""


class Source(Protocol):
    """Stored results of base; `name` is as in the input `baseline`."""

    @property
    def name(self) -> str:
        """The name of the source."""
        ...

    async def find(self, suite: Suite) -> BaseSuite:
        """The results of a suite of base. Raises Unavailable."""
        ...


@dataclass(frozen=True)
class FoundSuites:
    """Base's results so far, and the suites of base (by their path on head) that no source has,
    with the last reason."""

    results: BaseResults
    left: Mapping[str, Suite]
    reasons: Mapping[str, str]


async def find_stored(
    info: BaselineInfo,
    sources: Sequence[Source],
    suites: Mapping[str, Suite | BrokenSuite],
    selections: Sequence[Selection],
) -> FoundSuites:
    """The stored results of the selected suites; `suites` are those of base by their path there."""
    left, notes = _split(suites, selections)
    found: dict[str, BaseSuite] = {}
    reasons: dict[str, str] = {}
    incomplete = []
    for source in sources:
        reasons = {}
        for path, suite in left.items():
            try:
                found[path] = await source.find(suite)
            except Unavailable as reason:
                reasons[path] = str(reason)
        left = {path: left[path] for path in reasons}
        if reasons:
            incomplete.append(IncompleteSource(source.name, _summary(reasons)))
    if info.source == "auto":
        info = replace(info, incomplete=tuple(incomplete))
    return FoundSuites(BaseResults(info, found, notes), left, reasons)


def with_rerun(
    found: FoundSuites, rerun: Mapping[str, Sequence[TestResult]], problem: str = ""
) -> BaseResults:
    """With the results of the suites that ran on base now (by their path on head); `problem` is the
    reason why base could not run."""
    results, suites = found.results, dict(found.results.suites)
    for path, rows in rerun.items():
        if rows:
            origin = origin_of("rerun", rows, results.info.commit)
            suites[path] = BaseSuite(tuple(rows), origin)
    problems = {
        path: problem or found.reasons.get(path, "") for path in found.left if path not in rerun
    }
    sources = {suite.origin.source for suite in suites.values()}
    info = results.info
    if len(sources) == 1:
        info = replace(info, source=sources.pop())
    different = set(problems.values())
    if len(different) == 1 and not suites and not results.notes:
        return BaseResults(replace(info, problem=different.pop()))
    return BaseResults(info, suites, results.notes, problems)


def _summary(reasons: Mapping[str, str]) -> str:
    """The reason of all suites if they share one, else the reasons of the first suites."""
    different = list(dict.fromkeys(reasons.values()))
    if len(different) == 1:
        return different[0]
    parts = [f"`{path}`: {reason}" for path, reason in list(reasons.items())[:_SHOWN]]
    more = len(reasons) - len(parts)
    return "; ".join([*parts, *([f"and {counted(more, 'more suite')}"] if more else [])])


def _split(
    suites: Mapping[str, Suite | BrokenSuite], selections: Sequence[Selection]
) -> tuple[dict[str, Suite], dict[str, str]]:
    """The base's suites of the selections, and the reasons for those that the base does not have;
    both by path on head."""
    wanted: dict[str, Suite] = {}
    notes: dict[str, str] = {}
    for selection in selections:
        suite = suites.get(selection.base_path or selection.path)
        if suite is None:
            notes[selection.path] = "the suite is new"
        elif isinstance(suite, BrokenSuite):
            notes[selection.path] = (
                f"the suite is broken on base ({suite.errors[0]}), so its tests count as new"
            )
        else:
            wanted[selection.path] = suite
    return wanted, notes


def origin_of(source: str, rows: Sequence[TestResult], commit: str | None) -> BaselineOrigin:
    """The origin of a suite's results, with the time of the latest and the samples of the test
    with the fewest."""
    times = {moment: row.timestamp for row in rows if (moment := parse_time(row.timestamp))}
    time = times[max(times)] if times else None
    return BaselineOrigin(
        source, commit, time=time, samples=min((len(row.samples) for row in rows), default=0)
    )


def is_stale(time: str | None, now: datetime, days: float) -> bool:
    """Whether a time (ISO 8601) is more than so many days before `now`; an unknown one is not."""
    moment = parse_time(time)
    return moment is not None and (now - moment).total_seconds() > days * 86_400


def parse_time(text: str | None) -> datetime | None:
    """A time (ISO 8601), in UTC where it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
