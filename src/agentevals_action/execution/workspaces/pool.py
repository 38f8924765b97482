"""The workspaces of one run: which tests share a folder, and the life of each folder: template,
repositories, hooks, resets."""

import contextlib
import secrets
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.diff import FolderDiff
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import HookCommands
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.execution.workspaces.skills import Copies, copy_files, list_copies
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.workspace import Reset, Workspace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.tree_files import LeavingLink, copy_tree
from agentevals_action.system.isolation import TRAVERSABLE, in_thread_as, new_folder
from agentevals_action.system.protection import share_with_group
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder


class WorkspacePool:
    """The workspaces of one run of a suite in the tree `root`, in new folders below `scratch` that
    are made when they are needed.

    `notice` takes sentences for the reader, `copy_template` copies a template into a new folder.
    `repositories` are the repositories of the tree, which other runs use, too."""

    def __init__(
        self,
        scratch: Path,
        children: ChildContext,
        run_id: str,
        notice: Callable[[str], None],
        copy_template: Callable[[Path, Path], None],
        root: Path,
        repositories: Repositories,
    ) -> None:
        self.folder = scratch.resolve() / f"workspaces-{secrets.token_hex(8)}"
        self.user = children.isolation.choose_user(root)
        self.git = Git(self.folder / "git", children.environment, self.user)
        self.repositories = repositories
        self.hooks = HookCommands(run_id, children, self.user)
        self.notice, self.copy_template = notice, copy_template
        self._shared: dict[Hashable, WorkspaceFolder] = {}

    def shared_key(self, suite: Suite, test: Test) -> Hashable | None:
        """The key of the folder that a test shares; tests with one key run one after another. None
        for a test that shares no folder."""
        workspace = test.workspace
        if workspace is None or workspace.per_test:
            return None
        return (suite.path, test.id if workspace.own else None)

    async def enter(self, suite: Suite, test: Test) -> "WorkspaceFolder":
        """The folder of a test, new or used before, after the hooks that run before the agent.

        Raises AttemptError of kind `workspace`. A shared folder that could not be made is an error
        of every test that uses it."""
        if test.workspace is None:
            raise TypeError(f"the test {test.id} has no workspace")
        self._make_folder()
        key = self.shared_key(suite, test)
        owner = test if key is None or test.workspace.own else None
        copies = list_copies(suite, test)
        folder = WorkspaceFolder(self, test.workspace, suite.path, owner, copies)
        if key is not None:
            folder = self._shared.setdefault(key, folder)
        await folder.enter(test)
        return folder

    async def close(self) -> None:
        """Runs `after_all` of every shared folder and removes everything. A failed hook is a
        notice."""
        for folder in self._shared.values():
            await folder.end()
        self._shared.clear()
        await in_thread(remove_folder, self.folder)

    def _make_folder(self) -> None:
        if self.folder.exists():
            return
        with _errors("a folder for workspaces cannot be made"):
            self.folder.mkdir(0o700)
            if self.user:  # it may not list the folders
                self.folder.chmod(TRAVERSABLE)


class WorkspaceFolder:
    """A folder of a pool. `owner` is the test that it belongs to, None for the folder of the suite
    at the path `suite`. `copies` are the files of its skills and fixtures. `path` is absolute."""

    def __init__(
        self,
        pool: WorkspacePool,
        workspace: Workspace,
        suite: str,
        owner: Test | None,
        copies: Copies = (),
    ) -> None:
        self._copies = copies
        self._pool, self._workspace, self._suite, self._owner = pool, workspace, suite, owner
        self._error: AttemptError | None = None
        self.path, self._pristine = Path(), Path()
        #: None until the folder is made, and after it was removed.
        self._diff: FolderDiff | None = None

    async def enter(self, test: Test) -> None:
        """Makes the folder if it does not exist, runs the steps before the agent, and records the
        state of the folder. Raises AttemptError."""
        try:
            diff = await self._made()
            await self._reset(self._workspace.reset_before)
            await self._pool.hooks.run("before_each", self._workspace, self.path, test)
            await diff.begin()
        except AttemptError:
            await self._tidy_up(test)
            raise

    async def changes(self) -> str:
        """The unified diff of the agent's changes. From now on judges may read and write what the
        agent made, with whatever modes. Raises AttemptError."""
        if self._diff is None:
            raise AttemptError("workspace", "the changes of the agent are lost: its folder is gone")
        if self._pool.user:
            await share_with_group(self.path, self._pool.user)
        return await self._diff.since_begin()

    async def leave(self, test: Test) -> None:
        """Runs the steps after the evaluators: `after_each`, then the reset of a shared folder or
        the removal of the test's own folder.

        The hook runs before the reset: it may collect files of the agent, and nothing that it
        writes reaches the next test. A failure here is a notice, never a score."""
        try:
            await self._pool.hooks.run("after_each", self._workspace, self.path, test)
        except AttemptError as error:
            self._notice(test, error)
        await self._tidy_up(test)

    async def end(self) -> None:
        """Runs `after_all` and removes the folder. A failed hook is a notice."""
        if self._diff:
            try:
                await self._pool.hooks.run("after_all", self._workspace, self.path, self._owner)
            except AttemptError as error:
                self._pool.notice(f"{self._suite}: {error.sentence}")
        await self._drop()

    async def _tidy_up(self, test: Test) -> None:
        if self._workspace.per_test:
            await self.end()
            return
        try:
            await self._reset(self._workspace.reset)
        except AttemptError as error:
            self._notice(test, error)
            await self._drop()

    def _notice(self, test: Test, error: AttemptError) -> None:
        self._pool.notice(f"{test.location.path}: test `{test.id}`: {error.sentence}")

    async def _made(self) -> FolderDiff:
        """Makes the folder if it does not exist. Raises AttemptError, also after a failure."""
        if self._error:
            raise self._error.copy()
        if self._diff and self.path.is_dir() and not self.path.is_symlink():
            return self._diff
        try:
            await self._drop()
            self._diff = await self._make()
        except AttemptError as error:
            self._error = error
            await self._drop()
            raise
        return self._diff

    async def _make(self) -> FolderDiff:
        pool, workspace = self._pool, self._workspace
        with _errors("a folder for the workspace cannot be made"):
            self.path = new_folder("", pool.folder, pool.user) / "workspace"
            states = new_folder("of-", pool.folder, pool.user)
            self._pristine = states / "pristine"
            if workspace.template:
                await in_thread_as(pool.user, pool.copy_template, workspace.template, self.path)
            else:
                await in_thread_as(pool.user, self.path.mkdir)
            await in_thread_as(pool.user, copy_files, self._copies, self.path)
            if pool.user:  # its judges may run the tests of a project, which write there
                self.path.parent.chmod(0o750)
                await share_with_group(self.path, pool.user)
        objects = [await pool.repositories.check_out(repo, self.path) for repo in workspace.repos]
        diff = FolderDiff(pool.git, self.path, states / "states", objects)
        await diff.adopt()
        await pool.hooks.run("before_all", workspace, self.path, self._owner)
        if workspace.reset != "none" or workspace.reset_before != "none":
            with _errors("the workspace cannot be copied for its resets"):
                await in_thread_as(pool.user, _copy, self.path, self._pristine)
        return diff

    async def _reset(self, mode: Reset) -> None:
        """Restores the state after `before_all`. `fast` keeps ignored files. Raises
        AttemptError."""
        if mode == "none" or self._diff is None:
            return
        ignored = await self._diff.ignored() if mode == "fast" else []
        with _errors("the workspace cannot be reset"):
            await in_thread_as(self._pool.user, self._restore, ignored)

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

    async def _drop(self) -> None:
        """Removes the folder; it is made again when it is needed."""
        if self.path != Path():
            await in_thread(remove_folder, self.path.parent)
            await in_thread(remove_folder, self._pristine.parent)
        self._diff = None


@contextlib.contextmanager
def _errors(problem: str) -> Iterator[None]:
    """Converts errors of the file system to AttemptError of kind `workspace`."""
    try:
        yield
    except (OSError, LeavingLink, RecursionError) as error:
        raise AttemptError("workspace", f"{problem}: {error}") from error


def _copy(folder: Path, target: Path) -> None:
    copy_tree(folder, target, complete=True)


def _remove_any(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        remove_folder(path)
