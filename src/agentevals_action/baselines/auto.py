"""All sources in order: each is asked only for the suites that the sources before it did not
give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
        """Results by the suite's path on head. A suite that no source gives has the problem of the
        last source; it never counts as new."""
        runs: dict[str, SuiteRun] = {}
        origins: dict[str, BaselineOrigin] = {}
        missing: dict[str, str] = {}
        problems = {selection.path: "there is no source of results" for selection in selections}
        incomplete = []
        for name, source in self.sources:
            wanted = [selection for selection in selections if selection.path in problems]
            if not wanted:
                break
            given = await source.results(wanted)
            runs |= given.suites
            origins |= given.origins
            missing |= given.missing
            problems = {
                path: given.problems.get(path) or given.info.problem
                for path in problems
                if path not in runs and path not in missing
            }
            if problems:
                incomplete.append(IncompleteSource(name, _summary(problems)))
        sources = {origin.source for origin in origins.values()}
        info = replace(
            self.info,
            source=sources.pop() if len(sources) == 1 else self.info.source,
            incomplete=tuple(incomplete),
        )
        different = set(problems.values())
        if len(different) == 1 and not runs and not missing:
            return BaseRun(replace(info, problem=different.pop()))
        return BaseRun(info, runs, missing, problems, origins)


def _summary(reasons: Mapping[str, str]) -> str:
    """The reason of all suites if they share one, else the reasons of the first suites."""
    different = list(dict.fromkeys(reasons.values()))
    if len(different) == 1:
        return different[0]
    parts = [f"`{path}`: {reason}" for path, reason in list(reasons.items())[:_SHOWN]]
    more = len(reasons) - len(parts)
    return "; ".join([*parts, *([f"and {counted(more, 'more suite')}"] if more else [])])
