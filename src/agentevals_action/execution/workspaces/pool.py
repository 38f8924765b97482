"""The workspaces of one run: which tests share a folder, and the session of each sample in one."""

import os
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.folder import (
    WorkspaceFolder,
    WorkspaceTools,
    workspace_errors,
)
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import HookRunner
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.workspace import HookName, Workspace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import TRAVERSABLE
from agentevals_action.system.protection import share_with_group
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder


class WorkspacePool:
    """The workspaces of one run of suites in the tree `root`, in new folders below `scratch` that
    are made when they are needed.

    `notice` takes sentences for the reader, `copy_template` copies a template into a new folder."""

    def __init__(
        self,
        scratch: Path,
        children: ChildContext,
        run_id: str,
        notice: Callable[[str], None],
        copy_template: Callable[[Path, Path], None],
        root: Path,
    ) -> None:
        folder = scratch.resolve() / f"workspaces-{secrets.token_hex(8)}"
        user = children.isolation.user_of(root)
        git = Git(folder / "git", children.environment, user)
        self._tools = WorkspaceTools(
            folder,
            git,
            Repositories(git, folder / "repositories"),
            HookRunner(run_id, children, user),
            notice,
            copy_template,
            user,
        )
        self._shared: dict[Hashable, WorkspaceFolder] = {}

    def shared_key(self, suite: Suite, test: Test) -> Hashable | None:
        """The key of the folder that a test shares; tests with one key run one after another. None
        for a test that shares no folder."""
        workspace = test.workspace
        if workspace is None or workspace.per_test:
            return None
        return (suite.path, test.id if workspace.own else None)

    async def enter(self, suite: Suite, test: Test) -> "WorkspaceSession":
        """Makes or reuses the folder of a test and runs the hooks before the agent.

        Raises AttemptError of kind `workspace`. A shared folder that could not be made is an error
        of every test that uses it."""
        if test.workspace is None:
            raise TypeError(f"the test {test.id} has no workspace")
        self._make_folder()
        key = self.shared_key(suite, test)
        owner = test if key is None or test.workspace.own else None
        folder = WorkspaceFolder(self._tools, test.workspace, suite.path, owner)
        if key is not None:
            folder = self._shared.setdefault(key, folder)
        session = WorkspaceSession(self._tools, folder, test, test.workspace)
        try:
            await folder.make()
            await session.begin()
        except AttemptError:
            await session.leave(begun=False)
            raise
        return session

    async def close(self) -> None:
        """Runs `after_all` of every shared folder and removes everything. A failed hook is a
        notice."""
        for folder in self._shared.values():
            await folder.end()
        self._shared.clear()
        await self._tools.repositories.close()
        await in_thread(remove_folder, self._tools.folder)

    def _make_folder(self) -> None:
        folder, user = self._tools.folder, self._tools.user
        if folder.exists():
            return
        with workspace_errors("a folder for workspaces cannot be made"):
            folder.mkdir(0o700)
            copies = folder / "repositories"
            copies.mkdir()
            if user:  # it may not list the folders
                folder.chmod(TRAVERSABLE)
                os.chown(copies, user.uid, user.uid)


@dataclass(frozen=True)
class WorkspaceSession:
    """One sample of a test in its folder."""

    _tools: WorkspaceTools
    _folder: WorkspaceFolder
    _test: Test
    _workspace: Workspace

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self._folder.path

    async def begin(self) -> None:
        """Runs the steps before the agent and records the state of the folder. Raises
        AttemptError."""
        await self._folder.reset(self._workspace.reset_before)
        await self._run_hook("before_each")
        if self._folder.diff:
            await self._folder.diff.begin()

    async def diff(self) -> str:
        """The unified diff of the changes since `begin`. From now on judges may read and write
        what the agent made, with whatever modes. Raises AttemptError."""
        if self._folder.diff is None:
            raise AttemptError("workspace", "the changes of the agent are lost: its folder is gone")
        if self._tools.user:
            await share_with_group(self.path, self._tools.user)
        return await self._folder.diff.since_begin()

    async def leave(self, begun: bool = True) -> None:
        """Runs the steps after the evaluators: `after_each`, then the reset of a shared folder or
        the removal of an own one.

        The hook runs before the reset: it may collect files of the agent, and nothing that it
        writes reaches the next test. A failure here is a notice, never a score. `begun` is False
        when the agent did not run."""
        folder, workspace = self._folder, self._workspace
        if begun:
            try:
                await self._run_hook("after_each")
            except AttemptError as error:
                self._notice(error)
        if workspace.per_test:
            await folder.end()
        elif folder.diff:
            try:
                await folder.reset(workspace.reset)
            except AttemptError as error:
                self._notice(error)
                await folder.drop()

    async def _run_hook(self, name: HookName) -> None:
        await self._tools.hooks.run(name, self._workspace, self.path, self._test)

    def _notice(self, error: AttemptError) -> None:
        test = self._test
        self._tools.notice(f"{test.location.path}: test `{test.id}`: {error.sentence}")
