"""Results that successful runs of this workflow on the base branch left as artifacts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from agentevals_action.baselines.ancestry import Ancestry
from agentevals_action.baselines.artifact_archive import ReportArchive, read_archive
from agentevals_action.baselines.base import EarlierRun, EarlierRuns, Found, StoredBaseline
from agentevals_action.errors import HostError
from agentevals_action.model.suite import Suite

#: Runs whose artifacts are downloaded, and runs that are considered, at most.
_OPENED = 4
_CONSIDERED = 20


@dataclass(frozen=True)
class ArtifactBaseline(StoredBaseline):
    """Results of the base, or of an ancestor if nothing that affects the suite changed since then.
    `branch` is the base's, empty for the default branch; `changed_since` gives the reason why
    results of an ancestor do not hold for a suite, empty if they hold."""

    source: ClassVar[str] = "artifact"

    earlier: EarlierRuns
    branch: str
    ancestry: Ancestry
    changed_since: Callable[[str, str], str]

    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        found: dict[str, Found] = {}
        # The first reason of a suite counts: it is about the commit nearest to the base.
        reasons: dict[str, str] = {}
        try:
            self._search(suites, found, reasons)
        except HostError as error:
            reasons = {**dict.fromkeys(suites, str(error)), **reasons}
        unknown = "no run of this workflow has its results"
        return {path: found.get(path) or reasons.get(path, unknown) for path in suites}

    def _search(
        self, suites: Mapping[str, Suite], found: dict[str, Found], reasons: dict[str, str]
    ) -> None:
        runs = self.earlier.runs(self.branch)
        distances = self.ancestry.lineage.distances
        ancestors = [run for run in runs if run.commit in distances]
        if not ancestors:
            reasons.update(dict.fromkeys(suites, self._no_ancestor(bool(runs))))
        opened = 0
        for run in sorted(ancestors, key=lambda run: distances[run.commit])[:_CONSIDERED]:
            usable: dict[str, Suite] = {}
            for path in [path for path in suites if path not in found]:
                changed = distances[run.commit] and self.changed_since(
                    run.commit, suites[path].path
                )
                if changed:
                    reasons.setdefault(path, changed)
                else:
                    usable[path] = suites[path]
            if not usable or opened == _OPENED:
                continue
            opened += 1
            for path, given in self._open(run, usable):
                if isinstance(given, str):
                    reasons.setdefault(path, f"the run {run.id} on {run.commit[:12]}: {given}")
                else:
                    found[path] = given

    def _no_ancestor(self, are_runs: bool) -> str:
        on = f"on `{self.branch}`" if self.branch else "on the default branch"
        if not are_runs:
            return f"no successful run of this workflow {on} exists"
        problem = self.ancestry.lineage.problem
        return (
            f"no successful run of this workflow {on} is of the base or a commit shortly before it"
            + (f" ({problem})" if problem else "")
        )

    def _open(self, run: EarlierRun, suites: Mapping[str, Suite]) -> Iterable[tuple[str, Found]]:
        report = self._report(run, {suite.path for suite in suites.values()})
        for path, suite in suites.items():
            if isinstance(report, str):
                yield path, report
            else:
                distance = self.ancestry.lineage.distances[run.commit]
                results = report.results.get(suite.path, ())
                yield path, self._complete(suite, results, run.commit, distance)

    def _report(self, run: EarlierRun, suites: set[str]) -> ReportArchive | str:
        """The first readable report of the run, else the problem of its first artifact."""
        problems = []
        for archive in self.earlier.archives(run):
            if archive.problem:
                problems.append(f"the artifact `{archive.name}` {archive.problem}")
                continue
            report = read_archive(archive.content, suites)
            if not isinstance(report, str) and report.commit == run.commit:
                return report
            if not isinstance(report, str):
                report = f"its results are of {report.commit[:12]}"
            problems.append(f"the artifact `{archive.name}`: {report}")
        return problems[0] if problems else "it has no artifact"
