"""The ladder of sources: each is asked only for the suites that those before it could not give, and
what it could not is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from agentevals_action.baselines.base import Baseline
from agentevals_action.model.comparison import BaselineInfo, BaseRun, Origin, Rung, Selection
from agentevals_action.model.result import SuiteRun

#: Suites whose reasons are told one by one.
_SHOWN = 3


@dataclass(frozen=True)
class Auto:
    """`rungs` are the sources by their names, in the order in which they are asked."""

    info: BaselineInfo
    rungs: Sequence[tuple[str, Baseline]]

    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head.

        A suite that no source gives has a problem: that of the rerun where there was one, else of
        the last that was asked; it counts as new in no case. A rerun in which a suite scored
        nothing stands only if no later source has the suite."""
        climb = _Climb(tuple(selections))
        for source, baseline in self.rungs:
            if climb.open:
                climb.step(source, await baseline.results(climb.open))
        return climb.ended(self.info)


@dataclass
class _Climb:
    open: tuple[Selection, ...]
    runs: dict[str, SuiteRun] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    of_rerun: set[str] = field(default_factory=set)
    tried: list[Rung] = field(default_factory=list)
    unscored: dict[str, tuple[SuiteRun, Origin]] = field(default_factory=dict)

    def step(self, source: str, given: BaseRun) -> None:
        """Takes what a source gave, and remembers why it did not give the rest."""
        reasons: dict[str, str] = {}
        for selection in self.open:
            path = selection.path
            run = given.suites.get(path)
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
                self.unscored.setdefault(path, (run, given.origins.get(path) or Origin(source)))
            else:
                self.runs[path], self.origins[path] = run, given.origins.get(path) or Origin(source)
        self.open = tuple(selection for selection in self.open if selection.path in reasons)
        if reasons:
            self.tried.append(Rung(source, _told(reasons)))
        for path, reason in reasons.items():
            if path not in self.of_rerun:
                self.problems[path] = reason
        self.of_rerun |= reasons.keys() if source == "rerun" else set()

    def ended(self, info: BaselineInfo) -> BaseRun:
        """All that was found; one problem of all suites alike is the base's own."""
        for selection in self.open:
            if found := self.unscored.get(selection.path):
                self.runs[selection.path], self.origins[selection.path] = found
        problems = {
            one.path: self.problems.get(one.path, "there is no source to ask")
            for one in self.open
            if one.path not in self.runs
        }
        sources = {where.source for where in self.origins.values()}
        info = replace(
            info,
            source=sources.pop() if len(sources) == 1 else info.source,
            tried=tuple(self.tried),
        )
        alike = set(problems.values())
        if len(alike) == 1 and not self.runs and not self.missing:
            return BaseRun(replace(info, problem=alike.pop()))
        return BaseRun(info, self.runs, self.missing, problems, self.origins)


def _told(reasons: Mapping[str, str]) -> str:
    """The reasons of a source, one for all suites or suite by suite."""
    alike = list(dict.fromkeys(reasons.values()))
    if len(alike) == 1:
        return alike[0]
    words = [f"`{path}`: {reason}" for path, reason in list(reasons.items())[:_SHOWN]]
    more = len(reasons) - len(words)
    return "; ".join(
        [*words, *([f"and {more} more suite{'' if more == 1 else 's'}"] if more else [])]
    )
