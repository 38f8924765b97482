"""The base run now, in a worktree of its own, with the base's own suites, targets and agent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from agentevals_action.baselines.base import origin, sorted_out
from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.comparison import BaselineInfo, BaseRun, Selection
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.suite import BrokenSuite, Suite


@dataclass(frozen=True)
class Rerun:
    """`root` is the base's tree and `suites` what it has, by path; `prepare` makes the tree ready,
    `run` runs suites there."""

    info: BaselineInfo
    root: Path
    prepare: Callable[[Path], Awaitable[None]]
    run: Callable[[Sequence[Suite]], Awaitable[Sequence[SuiteRun]]]
    suites: Mapping[str, Suite | BrokenSuite] = field(default_factory=dict)
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        found = sorted_out(self.suites, selections)
        if not found.wanted:
            return BaseRun(self.info, missing=found.missing)
        try:
            await self.prepare(self.root)
        except AgentEvalsError as error:
            return BaseRun(replace(self.info, problem=error.sentence), missing=found.missing)
        by_path = {run.path: run for run in await self.run(tuple(found.wanted.values()))}
        runs = {path: by_path[suite.path] for path, suite in found.wanted.items()}
        origins = {path: origin("rerun", run, self.info.commit, 0) for path, run in runs.items()}
        return BaseRun(self.info, runs, found.missing, origins=origins)
