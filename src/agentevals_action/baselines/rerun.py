"""The base run now, in a worktree of its own, with the base's own suites, targets and agent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.comparison import BaselineInfo, BaseRun, Selection
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.suite import BrokenSuite, Suite


@dataclass(frozen=True)
class Rerun:
    """`root` is the base's tree and `suites` what it has, by path; `prepare` makes the tree ready, `run` runs suites there."""

    info: BaselineInfo
    root: Path
    prepare: Callable[[Path], Awaitable[None]]
    run: Callable[[Sequence[Suite]], Awaitable[Sequence[SuiteRun]]]
    suites: Mapping[str, Suite | BrokenSuite] = field(default_factory=dict)
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        wanted: dict[str, Suite] = {}
        missing: dict[str, str] = {}
        for selection in selections:
            suite = self.suites.get(selection.base_path or selection.path)
            if suite is None:
                missing[selection.path] = "the suite is new"
            elif isinstance(suite, BrokenSuite):
                missing[selection.path] = f"the suite is broken on base ({suite.faults[0]}), so its tests count as new"
            else:
                wanted[selection.path] = suite
        if not wanted:
            return BaseRun(self.info, missing=missing)
        try:
            await self.prepare(self.root)
        except AgentEvalsError as error:
            return BaseRun(replace(self.info, problem=error.sentence))
        runs = {run.path: run for run in await self.run(tuple(wanted.values()))}
        return BaseRun(self.info, {path: runs[suite.path] for path, suite in wanted.items()}, missing)
