"""Workspaces of suites in temporary repositories, entered and left as a run does."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.execution.judge_trees import JudgeTrees
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.pool import WorkspaceFolder, WorkspacePool
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import NO_ISOLATION, Isolation
from tests.support import suites

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@dataclass
class Run:
    """One run over the suite at `EVAL.yaml` of `root`; `notices` are what it noticed."""

    suite: Suite
    workspaces: WorkspacePool
    notices: list[str] = field(default_factory=list)

    @property
    def tests(self) -> tuple[Test, ...]:
        """The suite's tests."""
        return tuple(self.suite.tests)

    async def enter(self, number: int = 0) -> WorkspaceFolder:
        """The folder of a test, before its agent runs."""
        return await self.workspaces.enter(self.suite, self.tests[number])

    async def leave(self, folder: WorkspaceFolder, number: int = 0) -> None:
        """Ends the sample of a test."""
        await folder.leave(self.tests[number])


def run(
    root: Path,
    scratch: Path,
    environment: Mapping[str, str] = ENVIRONMENT,
    path: str = "EVAL.yaml",
    isolation: Isolation = NO_ISOLATION,
) -> Run:
    """A run that has not begun yet."""
    scratch.mkdir(parents=True, exist_ok=True)
    notices: list[str] = []
    children = ChildContext(environment, withheld=("API_KEY",), isolation=isolation)
    copy = JudgeTrees({}).copy_template
    git = Git(scratch / "git", environment, isolation.choose_user(root))
    repositories = Repositories(git, scratch / "repositories")
    pool = WorkspacePool(scratch, children, "run-1", notices.append, copy, root, repositories)
    return Run(suites.load_valid(root, path), pool, notices)


def suite(
    root: Path, workspace: str, files: Mapping[str, str | bytes] | None = None, tests: str = ""
) -> Path:
    """A repository with a suite of two tests, `a` and `b`, or those given, in this workspace (YAML,
    indented by two)."""
    tests = (
        tests
        or "  - {id: a, input: first, criteria: c, metadata: {level: 1}}\n  - {id: b, input: second, criteria: c}\n"
    )
    own = {
        ".agentv/targets.yaml": suites.TARGETS,
        "EVAL.yaml": f"name: suite\nworkspace:\n{workspace}\ntests:\n{tests}",
    }
    return suites.write(root, {**own, **(files or {})})


async def changed(root: Path, scratch: Path, work: Callable[[Path], Awaitable[None] | None]) -> str:
    """The diff of what `work` does in the folder of the first test."""
    made = run(root, scratch)
    folder = await made.enter()
    done = work(folder.path)
    if done is not None:
        await done
    diff = await folder.changes()
    await made.leave(folder)
    await made.workspaces.close()
    return diff
