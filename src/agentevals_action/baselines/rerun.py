"""The base's suites run now, in a worktree, with the base's own suites, targets and agent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from agentevals_action.baselines.base import origin_of, split_selections
from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.baseline import BaselineInfo, BaseRun
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.review import Selection
from agentevals_action.model.suite import BrokenSuite, Suite


@dataclass(frozen=True)
class RerunBaseline:
    """`root` is the base's tree and `suites` are its suites by path; `prepare` prepares the tree,
    `run` runs suites there."""

    info: BaselineInfo
    root: Path
    prepare: Callable[[Path], Awaitable[None]]
    run: Callable[[Sequence[Suite]], Awaitable[Sequence[SuiteRun]]]
    suites: Mapping[str, Suite | BrokenSuite] = field(default_factory=dict)
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        suites, missing = split_selections(self.suites, selections)
        if not suites:
            return BaseRun(self.info, missing=missing)
        try:
            await self.prepare(self.root)
        except AgentEvalsError as error:
            return BaseRun(replace(self.info, problem=error.sentence), missing=missing)
        by_path = {run.path: run for run in await self.run(tuple(suites.values()))}
        runs = {path: by_path[suite.path] for path, suite in suites.items()}
        origins = {path: origin_of("rerun", run, self.info.commit) for path, run in runs.items()}
        return BaseRun(self.info, runs, missing, origins=origins)
