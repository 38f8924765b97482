"""What the last successful runs of this workflow on the base branch left as artifacts, through the
host."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from agentevals_action.baselines.artifact_archive import ReportArchive, read_archive
from agentevals_action.baselines.base import BaseTree, Freshness, origin, sorted_out
from agentevals_action.baselines.stored_run import whole_run
from agentevals_action.errors import HostError
from agentevals_action.model.comparison import BaseRun, Origin, Selection
from agentevals_action.model.past import Archive, Lineage, PastRun
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.suite import Suite

#: Runs whose artifacts are looked into, and runs that are thought of, at most.
_OPENED = 4
_LOOKED_AT = 20


class Runs(Protocol):
    """The host's knowledge of earlier runs; HostError when it does not say."""

    def runs(self, branch: str) -> Sequence[PastRun]:
        """Runs that succeeded on a branch, newest first."""
        ...

    def archives(self, run: PastRun) -> Iterator[Archive]:
        """What a run left."""
        ...


@dataclass(frozen=True)
class ArtifactStore:
    """Results of commits that are the base or lie before it with nothing changed since that touches
    the suite. `branch` is the base's, empty for the default branch; `lineage` gives the base's
    ancestors, `untouched` says True of an ancestor and a suite, or why not."""

    tree: BaseTree
    freshness: Freshness
    source: Runs
    branch: str
    lineage: Callable[[], Lineage]
    untouched: Callable[[str, str], bool | str]

    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        return await asyncio.to_thread(self._results, selections)

    def _results(self, selections: Sequence[Selection]) -> BaseRun:
        info = replace(self.tree.info, source="artifact")
        found = sorted_out(self.tree.suites, selections)
        search = _Search(dict(found.wanted))
        if search.open:
            try:
                self._search(search)
            except HostError as error:
                search.refuse(search.open, str(error))
        return BaseRun(info, search.runs, found.missing, search.open_reasons(), search.origins)

    def _search(self, search: "_Search") -> None:
        lineage = self.lineage()
        on = f"on `{self.branch}`" if self.branch else "on the default branch"
        runs = self.source.runs(self.branch)
        before = sorted(
            (run for run in runs if run.commit in lineage.distances),
            key=lambda run: lineage.distances[run.commit],
        )
        if not before:
            cut = f" ({lineage.problem})" if lineage.problem else ""
            what = f"is of the base or a commit shortly before it{cut}" if runs else "is there"
            search.refuse(search.open, f"no successful run of this workflow {on} {what}")
        opened = 0
        for run in before[:_LOOKED_AT]:
            distance = lineage.distances[run.commit]
            able = {
                path: suite
                for path, suite in search.open.items()
                if self._holds(search, path, suite, run.commit, distance)
            }
            if able and opened < _OPENED:
                opened += 1
                self._open(search, run, distance, able)

    def _holds(
        self, search: "_Search", path: str, suite: Suite, commit: str, distance: int
    ) -> bool:
        answer = self.untouched(commit, suite.path) if distance else True
        if answer is not True:
            search.refuse(
                (path,), answer if isinstance(answer, str) else "the base has changed it since"
            )
        return answer is True

    def _open(self, search: "_Search", run: PastRun, distance: int, able: dict[str, Suite]) -> None:
        report = self._report(run, {suite.path for suite in able.values()})
        if isinstance(report, str):
            search.refuse(able, f"the run {run.id} on {run.commit[:12]}: {report}")
            return
        for path, suite in able.items():
            whole = whole_run(suite, report.results.get(suite.path, ()), self.tree.expected(suite))
            if isinstance(whole, str):
                search.refuse((path,), f"the run {run.id} on {run.commit[:12]}: {whole}")
            else:
                search.take(
                    path, whole, origin("artifact", whole, run.commit, distance, self.freshness)
                )

    def _report(self, run: PastRun, suites: set[str]) -> ReportArchive | str:
        reasons = []
        for archive in self.source.archives(run):
            read = archive.problem or read_archive(archive.content, suites)
            if not isinstance(read, str) and read.commit != run.commit:
                read = f"its results are of {read.commit[:12]}"
            if not isinstance(read, str):
                return read
            reasons.append(
                f"the artifact `{archive.name}` {read}"
                if archive.problem
                else f"the artifact `{archive.name}`: {read}"
            )
        return reasons[0] if reasons else "it left no artifact"


@dataclass
class _Search:
    """The suites that are still looked for, by their path on head, and what was found; of the
    reasons for each the first is told, which is of the commit nearest to the base."""

    open: dict[str, Suite]
    runs: dict[str, SuiteRun] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def refuse(self, paths: Sequence[str] | dict[str, Suite], reason: str) -> None:
        for path in paths:
            self.reasons.setdefault(path, reason)

    def take(self, path: str, run: SuiteRun, where: Origin) -> None:
        self.runs[path], self.origins[path] = run, where
        del self.open[path]

    def open_reasons(self) -> dict[str, str]:
        return {
            path: self.reasons.get(path, "no run of this workflow had its results")
            for path in self.open
        }
