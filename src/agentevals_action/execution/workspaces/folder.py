"""One workspace folder and the attempts in it: template, repositories, hooks, resets."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.diff import FolderDiff
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import HookInput, HookRunner
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Reset, Test, Workspace
from agentevals_action.system.files.tree_files import LeavingLink, copy_tree
from agentevals_action.system.isolation import UIDS, ChildUser, file_access_as, new_folder
from agentevals_action.system.protection import give_to_group, give_tree
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder


@dataclass(frozen=True)
class Run:
    """What all folders of a run are made with. They belong to `user`; `copy_template` copies a
    template into a new folder."""

    folder: Path
    git: Git
    repositories: Repositories
    hooks: HookRunner
    run_id: str
    notice: Callable[[str], None]
    copy_template: Callable[[Path, Path], None]
    keep: Path | None
    user: ChildUser | None = None


@contextlib.contextmanager
def workspace_errors(problem: str) -> Iterator[None]:
    """Converts errors of the file system to AttemptError of kind `workspace`."""
    try:
        yield
    except (OSError, LeavingLink) as error:
        raise AttemptError("workspace", f"{problem}: {error}") from error


class WorkspaceFolder:
    """A workspace folder. `owner` is the test that it belongs to, None for a suite's folder."""

    def __init__(self, run: Run, workspace: Workspace, suite: str, owner: Test | None) -> None:
        self._run, self._workspace, self._suite, self._owner = run, workspace, suite, owner
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
        run, workspace = self._run, self._workspace
        with workspace_errors("a folder for the workspace cannot be made"):
            self.path = new_folder("", run.folder, run.user) / "workspace"
            ours = new_folder("of-", run.folder, run.user)
            self._pristine = ours / "pristine"
            if workspace.template:
                await self._in_thread(run.copy_template, workspace.template, self.path)
            else:
                await self._in_thread(self.path.mkdir)
            if run.user:  # its judges may run the tests of a project, which write there
                self.path.parent.chmod(0o750)
                await self._in_thread(give_to_group, self.path)
        for repo in workspace.repos:
            await run.repositories.check_out(repo, self.path)
        diff = FolderDiff(run.git, self.path, ours / "states")
        await diff.adopt([await run.repositories.objects(repo) for repo in workspace.repos])
        if hook := workspace.before_all:
            await run.hooks.run("before_all", hook, self._input("__before_all__"))
        if workspace.reset != "none" or workspace.reset_before != "none":
            with workspace_errors("the workspace cannot be copied for its resets"):
                await self._in_thread(copy_tree, self.path, self._pristine, "keep", True)
        self.diff = diff

    async def _in_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        """Works on files of the folder with the rights of its user."""

        def run() -> None:
            with file_access_as(self._run.user):
                work(*arguments)

        await in_thread(run)

    def _input(self, name: str) -> HookInput:
        if self._owner is None:
            return HookInput(str(self.path), name, self._run.run_id)
        return HookInput.of_test(self.path, self._run.run_id, self._owner)

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
        copy_tree(self._pristine, fresh, "keep", git=True)
        for path in ignored:
            target = fresh / path
            # A link on the way could lead anywhere.
            if target.parent.resolve() == fresh.resolve() / Path(path).parent:
                _remove_any(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.path / path).rename(target)
        _remove_any(self.path)  # an agent may have replaced the folder by a link or a file
        fresh.rename(self.path)

    async def give_to_judges(self) -> None:
        """Lets judges read and write all that is in the folder. Raises AttemptError."""
        if self._run.user:
            with workspace_errors("the workspace cannot be given to the judges"):
                await self._in_thread(give_to_group, self.path)

    async def end(self) -> None:
        """Runs `after_all` and removes the folder. A failed hook is a notice."""
        hook = self._workspace.after_all
        if hook and self.diff:
            try:
                await self._run.hooks.run("after_all", hook, self._input("__after_all__"))
            except AttemptError as error:
                self._run.notice(_sentence(self._suite, error))
        await self.drop()

    async def drop(self) -> None:
        """Removes the folder; it is made again when it is needed."""
        if self.path != Path():
            await in_thread(remove_folder, self.path.parent)
            await in_thread(remove_folder, self._pristine.parent)
        self.diff = None


class Attempt:
    """One sample of a test in its folder. `name` names the copy of the folder if it is kept."""

    def __init__(self, run: Run, folder: WorkspaceFolder, test: Test, name: str) -> None:
        self._run, self._folder, self._test, self._name = run, folder, test, name
        self._workspace = test.workspace or Workspace(test.location)

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self._folder.path

    async def begin(self) -> None:
        """Runs the steps before the agent and records the state of the folder. Raises
        AttemptError."""
        await self._folder.reset(self._workspace.reset_before)
        if hook := self._workspace.before_each:
            await self._run.hooks.run("before_each", hook, self._input())
        if self._folder.diff:
            await self._folder.diff.begin()

    async def diff(self) -> str:
        """The unified diff of the changes since `begin`. From now on judges may read and write
        what the agent made, with whatever modes. Raises AttemptError."""
        if self._folder.diff is None:
            raise AttemptError("workspace", "the changes of the agent are lost: its folder is gone")
        await self._folder.give_to_judges()
        return await self._folder.diff.since_begin()

    async def leave(self, failed: bool, begun: bool = True) -> None:
        """Runs the steps after the evaluators: `after_each`, then the reset of a shared folder or
        the removal of an own one.

        The hook runs before the reset: it may collect files of the agent, and nothing that it
        writes reaches the next test. A failure here is a notice, never a score. `begun` is False
        when the agent did not run.
        """
        folder, workspace = self._folder, self._workspace
        if failed and folder.diff:
            await self._keep()
        if begun and self._run.user and (workspace.after_each or not workspace.per_test):
            try:
                await self._take_back(self._run.user)
            except AttemptError as error:
                self._notice(error)
        if begun and (hook := workspace.after_each):
            try:
                await self._run.hooks.run("after_each", hook, self._input())
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

    async def _take_back(self, user: ChildUser) -> None:
        """Gives the files that judges made to the user of the hook and of the next test."""
        with workspace_errors("the files of the judges stay theirs"):
            await in_thread(give_tree, self.path, user, (), {*UIDS} - {user.uid})

    async def _keep(self) -> None:
        if self._run.keep is None:
            return
        copy, number = self._run.keep / self._name, 1
        while copy.exists():
            number += 1
            copy = self._run.keep / f"{self._name}.{number}"
        try:
            # Links out of the folder are dropped: whoever uploads the copy would follow them.
            await in_thread(copy_tree, self.path, copy, "drop", True)
        except OSError as error:
            outcome = f"could not be kept: {error}"
        else:
            outcome = f"is kept in {copy}"
        self._run.notice(f"the workspace of the test `{self._test.id}` {outcome}")

    def _input(self) -> HookInput:
        return HookInput.of_test(self.path, self._run.run_id, self._test)

    def _notice(self, error: AttemptError) -> None:
        test = self._test
        self._run.notice(_sentence(f"{test.location.path}: test `{test.id}`", error))


def _remove_any(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        remove_folder(path)


def _sentence(location: str, error: AttemptError) -> str:
    return f"{location}: {error.sentence}"
