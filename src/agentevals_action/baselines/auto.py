"""All sources in order: each is asked only for the suites that the sources before it did not
give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from agentevals_action.baselines.base import Baseline
from agentevals_action.formatting import counted
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, BaseRun, IncompleteSource
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.review import Selection

#: Suites whose reasons are listed one by one.
_SHOWN = 3


@dataclass(frozen=True)
class AutoBaseline:
    """`sources` are the baselines with their names, in the order in which they are asked."""

    info: BaselineInfo
    sources: Sequence[tuple[str, Baseline]]
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head.

        A suite that no source gives has a problem: that of the rerun if there was one, else of the
        last source; it never counts as new. A rerun in which a suite scored nothing is used only if
        no later source has the suite."""
        search = _Search(tuple(selections))
        for name, baseline in self.sources:
            if search.open:
                search.add(name, await baseline.results(search.open))
        return search.result(self.info)


@dataclass
class _Search:
    open: tuple[Selection, ...]
    runs: dict[str, SuiteRun] = field(default_factory=dict)
    origins: dict[str, BaselineOrigin] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    rerun_problems: dict[str, str] = field(default_factory=dict)
    incomplete: list[IncompleteSource] = field(default_factory=list)
    unscored: dict[str, tuple[SuiteRun, BaselineOrigin]] = field(default_factory=dict)

    def add(self, source: str, given: BaseRun) -> None:
        reasons: dict[str, str] = {}
        for path in (selection.path for selection in self.open):
            run = given.suites.get(path)
            origin = given.origins.get(path) or BaselineOrigin(source)
            if run is None and path in given.missing:
                self.missing[path] = given.missing[path]
            elif run is None:
                reasons[path] = (
                    given.problems.get(path)
                    or given.info.problem
                    or given.info.reason
                    or "it does not have the suite"
                )
            elif run.summary.total == run.summary.errored:
                reasons[path] = "all its tests ended in errors"
                self.unscored.setdefault(path, (run, origin))
            else:
                self.runs[path], self.origins[path] = run, origin
        self.open = tuple(selection for selection in self.open if selection.path in reasons)
        if reasons:
            self.incomplete.append(IncompleteSource(source, _summary(reasons)))
        if source == "rerun":
            self.rerun_problems = reasons
        self.problems |= reasons

    def result(self, info: BaselineInfo) -> BaseRun:
        """All results; a problem that all suites share is the problem of the base."""
        problems: dict[str, str] = {}
        for path in (selection.path for selection in self.open):
            if path in self.unscored:
                self.runs[path], self.origins[path] = self.unscored[path]
            else:
                known = self.problems | self.rerun_problems
                problems[path] = known.get(path, "there is no source of results")
        sources = {origin.source for origin in self.origins.values()}
        info = replace(
            info,
            source=sources.pop() if len(sources) == 1 else info.source,
            incomplete=tuple(self.incomplete),
        )
        different = set(problems.values())
        if len(different) == 1 and not self.runs and not self.missing:
            return BaseRun(replace(info, problem=different.pop()))
        return BaseRun(info, self.runs, self.missing, problems, self.origins)


def _summary(reasons: Mapping[str, str]) -> str:
    """The reason of all suites if they share one, else the reasons of the first suites."""
    different = list(dict.fromkeys(reasons.values()))
    if len(different) == 1:
        return different[0]
    parts = [f"`{path}`: {reason}" for path, reason in list(reasons.items())[:_SHOWN]]
    more = len(reasons) - len(parts)
    return "; ".join([*parts, *([f"and {counted(more, 'more suite')}"] if more else [])])
