"""The base run now, in a worktree of its own, with the base's own suites, targets and agent."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.comparison import BaselineInfo, BaseRun, Selection
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.suite import BrokenSuite, Suite


@dataclass(frozen=True)
class Rerun:
    """`tree` opens the base's worktree and removes it again, `prepare` makes it ready, `load` reads one suite there (None when it has
    none), `run` runs them."""

    info: BaselineInfo
    tree: Callable[[], AbstractContextManager[Path]]
    prepare: Callable[[Path], Awaitable[None]]
    load: Callable[[Path, str], Suite | BrokenSuite | None]
    run: Callable[[Sequence[Suite]], Awaitable[Sequence[SuiteRun]]]

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        try:
            with self.tree() as root:
                await self.prepare(root)
                return await self._run(root, selections)
        except AgentEvalsError as error:
            return BaseRun(replace(self.info, problem=f"{error}; {error.hint}".rstrip("; ")))

    async def _run(self, root: Path, selections: Sequence[Selection]) -> BaseRun:
        suites: dict[str, Suite] = {}
        missing: dict[str, str] = {}
        for selection in selections:
            suite = self.load(root, selection.base_path or selection.path)
            if suite is None:
                missing[selection.path] = "the suite is new"
            elif isinstance(suite, BrokenSuite):
                missing[selection.path] = f"the suite is broken on base ({suite.faults[0]}), so its tests count as new"
            else:
                suites[selection.path] = suite
        runs = {run.path: run for run in await self.run(tuple(suites.values()))}
        return BaseRun(self.info, {path: runs[suite.path] for path, suite in suites.items()}, missing)
