"""One workspace folder: template, repositories, hooks, resets."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.diff import FolderDiff
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import HookRunner
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Test
from agentevals_action.model.workspace import Reset, Workspace
from agentevals_action.system.files.tree_files import LeavingLink, copy_tree
from agentevals_action.system.isolation import ChildUser, file_access_as, new_folder
from agentevals_action.system.protection import share_with_group
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder


@dataclass(frozen=True)
class WorkspaceTools:
    """What the folders of one user are made with, in `folder`. `copy_template` copies a template
    into a new folder, `notice` takes sentences for the reader."""

    folder: Path
    git: Git
    repositories: Repositories
    hooks: HookRunner
    notice: Callable[[str], None]
    copy_template: Callable[[Path, Path], None]
    user: ChildUser | None = None


@contextlib.contextmanager
def workspace_errors(problem: str) -> Iterator[None]:
    """Converts errors of the file system to AttemptError of kind `workspace`."""
    try:
        yield
    except (OSError, LeavingLink, RecursionError) as error:
        raise AttemptError("workspace", f"{problem}: {error}") from error


class WorkspaceFolder:
    """A workspace folder. `owner` is the test that it belongs to, None for the folder of the suite
    at the path `suite`. Until it is made, and after it was removed, there is no `diff`."""

    def __init__(
        self, tools: WorkspaceTools, workspace: Workspace, suite: str, owner: Test | None
    ) -> None:
        self._tools, self._workspace, self._suite, self._owner = tools, workspace, suite, owner
        self._error: AttemptError | None = None
        self._pristine = Path()
        self.path = Path()
        self.diff: FolderDiff | None = None

    async def make(self) -> None:
        """Makes the folder if it does not exist. Raises AttemptError, and the same again after a
        first failure."""
        if self._error:
            raise self._error.copy()
        if self.diff and self.path.is_dir() and not self.path.is_symlink():
            return
        try:
            await self.drop()
            await self._make()
        except AttemptError as error:
            self._error = error
            await self.drop()
            raise

    async def _make(self) -> None:
        tools, workspace = self._tools, self._workspace
        with workspace_errors("a folder for the workspace cannot be made"):
            self.path = new_folder("", tools.folder, tools.user) / "workspace"
            ours = new_folder("of-", tools.folder, tools.user)
            self._pristine = ours / "pristine"
            if workspace.template:
                await self._in_thread(tools.copy_template, workspace.template, self.path)
            else:
                await self._in_thread(self.path.mkdir)
            if tools.user:  # its judges may run the tests of a project, which write there
                self.path.parent.chmod(0o750)
                await share_with_group(self.path, tools.user)
        for repo in workspace.repos:
            await tools.repositories.check_out(repo, self.path)
        objects = [await tools.repositories.objects(repo) for repo in workspace.repos]
        diff = FolderDiff(tools.git, self.path, ours / "states", objects)
        await diff.adopt()
        await tools.hooks.run("before_all", workspace, self.path, self._owner)
        if workspace.reset != "none" or workspace.reset_before != "none":
            with workspace_errors("the workspace cannot be copied for its resets"):
                await self._in_thread(_copy, self.path, self._pristine)
        self.diff = diff

    async def _in_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        """Works on files of the folder with the rights of its user."""

        def run() -> None:
            with file_access_as(self._tools.user):
                work(*arguments)

        await in_thread(run)

    async def reset(self, mode: Reset) -> None:
        """Restores the state after `before_all`. `fast` keeps ignored files. Raises
        AttemptError."""
        if mode == "none" or self.diff is None:
            return
        ignored = await self.diff.ignored() if mode == "fast" else []
        with workspace_errors("the workspace cannot be reset"):
            await self._in_thread(self._restore, ignored)

    def _restore(self, ignored: list[str]) -> None:
        fresh = self.path.with_name("fresh")
        remove_folder(fresh)
        _copy(self._pristine, fresh)
        for path in ignored:
            target = fresh / path
            # A link on the way could lead anywhere.
            if target.parent.resolve() == fresh.resolve() / Path(path).parent:
                _remove_any(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.path / path).rename(target)
        _remove_any(self.path)  # an agent may have replaced the folder by a link or a file
        fresh.rename(self.path)

    async def end(self) -> None:
        """Runs `after_all` and removes the folder. A failed hook is a notice."""
        if self.diff:
            try:
                await self._tools.hooks.run("after_all", self._workspace, self.path, self._owner)
            except AttemptError as error:
                self._tools.notice(f"{self._suite}: {error.sentence}")
        await self.drop()

    async def drop(self) -> None:
        """Removes the folder; it is made again when it is needed."""
        if self.path != Path():
            await in_thread(remove_folder, self.path.parent)
            await in_thread(remove_folder, self._pristine.parent)
        self.diff = None


def _copy(folder: Path, target: Path) -> None:
    copy_tree(folder, target, complete=True)


def _remove_any(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        remove_folder(path)
