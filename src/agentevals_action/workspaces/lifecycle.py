"""The folders that agents work in: made from template and repositories, shared or fresh, with hooks around and what was done in them."""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Reset, Suite, Test, Workspace
from agentevals_action.workspaces.changes import Changes
from agentevals_action.workspaces.files import LeavingLink, copy_tree, remove
from agentevals_action.workspaces.git import Git
from agentevals_action.workspaces.hooks import Facts, Hooks
from agentevals_action.workspaces.repos import Repositories

_NAME = 60  # characters of a test's id in the name of a folder that is kept


class Workspaces:
    """The folders of one run, in a folder of its own below `scratch`; nothing is made before the first is needed.

    `environment` is all that hooks may see, `withheld` the names that were kept from it; `notice` takes sentences for the reader.
    With `keep`, the folder of a test that failed is copied there, as the agent left it.
    """

    def __init__(
        self,
        scratch: Path,
        environment: Mapping[str, str],
        withheld: tuple[str, ...],
        run_id: str,
        notice: Callable[[str], None],
        keep: Path | None = None,
    ) -> None:
        self._scratch, self._environment, self._withheld = scratch, environment, withheld
        self._run_id, self._notice, self._keep = run_id, notice, keep
        self._run: _Run | None = None
        self._shared: dict[Hashable, _Folder] = {}

    def lane(self, suite: Suite, test: Test) -> Hashable | None:
        """What tests that share a folder have in common: they must be run one after another. None for a test that shares none."""
        workspace = test.workspace
        if workspace is None or workspace.per_test:
            return None
        return (suite.root, suite.path, test.id if workspace.own else None)

    async def enter(self, suite: Suite, test: Test, sample: int) -> "Attempt":
        """The folder of a test, made or taken over, after its hooks; AttemptError of kind `workspace` when it cannot be had.

        A shared folder that could not be made is an error of every test that it serves.
        """
        if test.workspace is None:
            raise TypeError(f"the test {test.id} has no workspace")
        self._run = self._run or self._begin()
        lane = self.lane(suite, test)
        if lane is None:
            folder = _Folder(self._run, test.workspace, suite.path, test)
        else:
            folder = self._shared.setdefault(lane, _Folder(self._run, test.workspace, suite.path, test if test.workspace.own else None))
        attempt = Attempt(self._run, folder, test, f"{_slug(suite.path)}/{_slug(test.id)}{f'-{sample + 1}' if sample else ''}")
        try:
            await folder.ready()
            await attempt.begin()
        except AttemptError:
            await attempt.leave(failed=True, begun=False)
            raise
        return attempt

    async def close(self) -> None:
        """Runs `after_all` of every shared folder, a failure of it being a notice, and removes everything."""
        if self._run is None:
            return
        for folder in self._shared.values():
            await folder.end()
        self._shared.clear()
        await self._run.repositories.close()
        await asyncio.to_thread(remove, self._run.folder)
        self._run = None

    def _begin(self) -> "_Run":
        with _told("a folder for workspaces cannot be made"):
            folder = Path(tempfile.mkdtemp(prefix="workspaces-", dir=self._scratch)).resolve()
        git = Git(folder / "git", self._environment)
        hooks = Hooks(self._environment, self._withheld)
        return _Run(folder, git, Repositories(git, folder / "repositories"), hooks, self._run_id, self._notice, self._keep)


class _Run(Struct, frozen=True):
    """What all folders of a run are made with."""

    folder: Path
    git: Git
    repositories: Repositories
    hooks: Hooks
    run_id: str
    notice: Callable[[str], None]
    keep: Path | None


class _Folder:
    """One folder over its life. `test` is the one whose own it is, None where it is the suite's."""

    def __init__(self, run: _Run, workspace: Workspace, suite: str, test: Test | None) -> None:
        self._run, self._workspace, self._suite, self._test = run, workspace, suite, test
        self._refusal: AttemptError | None = None
        self.path = Path()
        self._pristine = Path()
        self.changes: Changes | None = None

    async def ready(self) -> None:
        """Makes the folder when there is none (any more); AttemptError, the same again once it could not be made."""
        if self._refusal:
            raise AttemptError(self._refusal.kind, str(self._refusal), self._refusal.hint)
        if self.changes and self.path.is_dir() and not self.path.is_symlink():
            return
        try:
            await self._make()
        except AttemptError as error:
            self._refusal = error
            await self.drop()
            raise

    async def _make(self) -> None:
        await self.drop()
        workspace = self._workspace
        with _told("a folder for the workspace cannot be made"):
            number = tempfile.mkdtemp(prefix="", dir=self._run.folder)
            self.path, ours = Path(number) / "workspace", self._run.folder / f"of-{Path(number).name}"
            self._pristine = ours / "pristine"
            if workspace.template:
                await asyncio.to_thread(copy_tree, workspace.template, self.path, "refuse")
            else:
                self.path.mkdir()
        for repo in workspace.repos:
            await self._run.repositories.check_out(repo, self.path)
        changes = Changes(self._run.git, self.path, ours / "states")
        await changes.adopt([await self._run.repositories.objects(repo) for repo in workspace.repos])
        if workspace.before_all:
            await self._run.hooks.run("before_all", workspace.before_all, self._facts("__before_all__"))
        if workspace.reset != "none" or workspace.reset_before != "none":
            with _told("the workspace cannot be copied for its resets"):
                await asyncio.to_thread(copy_tree, self.path, self._pristine, "keep", git=True)
        self.changes = changes

    def _facts(self, name: str) -> Facts:
        if self._test is None:
            return Facts(str(self.path), name, self._run.run_id)
        return Facts.of_test(self.path, self._run.run_id, self._test)

    async def reset(self, mode: Reset) -> None:
        """Makes the folder what it was after `before_all`; `fast` leaves what is ignored as it is. AttemptError."""
        if mode == "none" or self.changes is None:
            return
        ignored = await self.changes.ignored() if mode == "fast" else []
        with _told("the workspace cannot be reset"):
            await asyncio.to_thread(self._restore, ignored)

    def _restore(self, ignored: list[str]) -> None:
        fresh = self.path.with_name("fresh")
        remove(fresh)
        copy_tree(self._pristine, fresh, "keep", git=True)
        for path in ignored:
            place = fresh / path
            if place.parent.resolve() == fresh.resolve() / Path(path).parent:  # no link on the way, which could lead anywhere
                remove(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)
                place.parent.mkdir(parents=True, exist_ok=True)
                (self.path / path).rename(place)
        self._clear()
        fresh.rename(self.path)

    def _clear(self) -> None:
        """Takes the folder away; an agent may have put a link or a file into its place."""
        if self.path.is_symlink() or self.path.is_file():
            self.path.unlink()
        remove(self.path)

    async def end(self) -> None:
        """Runs `after_all`, a failure being a notice, and removes the folder."""
        hook = self._workspace.after_all
        if hook and self.changes:
            try:
                await self._run.hooks.run("after_all", hook, self._facts("__after_all__"))
            except AttemptError as error:
                self._run.notice(_sentence(self._suite, error))
        await self.drop()

    async def drop(self) -> None:
        """Removes the folder and what is known of it; it is made anew when it is needed again."""
        if self.path != Path():
            await asyncio.to_thread(remove, self.path.parent)
            await asyncio.to_thread(remove, self._pristine.parent)
        self.changes = None


class Attempt:
    """One sample of a test in its folder `path`."""

    def __init__(self, run: _Run, folder: _Folder, test: Test, name: str) -> None:
        self._run, self._folder, self._test, self._name = run, folder, test, name
        self._workspace = test.workspace or Workspace(test.location)

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self._folder.path

    async def begin(self) -> None:
        """Runs what comes before the agent, and notes the state that it finds. AttemptError."""
        workspace, changes = self._workspace, self._folder.changes
        await self._folder.reset(workspace.reset_before)
        if workspace.before_each:
            await self._run.hooks.run("before_each", workspace.before_each, self._facts())
        if changes:
            await changes.begin()

    async def changes(self) -> str:
        """The unified diff of what was done in the folder since the agent was let in; AttemptError when it cannot be told."""
        if self._folder.changes is None:
            raise AttemptError("workspace", "what the agent did cannot be told: its folder is gone")
        return await self._folder.changes.diff()

    async def leave(self, failed: bool, begun: bool = True) -> None:
        """Runs what comes after the grading: `after_each`, the reset of a shared folder, the end of a folder of one's own.

        The command comes before the reset: it may collect what the agent made, and nothing that it writes reaches the next test. What
        goes wrong here is a notice, never a score. `begun` is False when the agent was never let in.
        """
        workspace, folder = self._workspace, self._folder
        if failed and folder.changes:
            await self._keep()
        if begun and workspace.after_each:
            try:
                await self._run.hooks.run("after_each", workspace.after_each, self._facts())
            except AttemptError as error:
                self._tell(error)
        if workspace.per_test:
            await folder.end()
        elif folder.changes:
            await self._reset()

    async def _reset(self) -> None:
        try:
            await self._folder.reset(self._workspace.reset)
        except AttemptError as error:
            self._tell(error)
            await self._folder.drop()

    async def _keep(self) -> None:
        if self._run.keep is None:
            return
        place = self._run.keep / self._name
        number = 1
        while place.exists():
            number += 1
            place = self._run.keep / f"{self._name}.{number}"
        try:
            # Whoever takes the folder further would follow a link to wherever an agent made it lead.
            await asyncio.to_thread(copy_tree, self.path, place, "drop", git=True)
        except OSError as error:
            self._run.notice(f"the workspace of the test `{self._test.id}` could not be kept: {error}")
        else:
            self._run.notice(f"the workspace of the test `{self._test.id}` is kept in {place}")

    def _facts(self) -> Facts:
        return Facts.of_test(self.path, self._run.run_id, self._test)

    def _tell(self, error: AttemptError) -> None:
        self._run.notice(_sentence(f"{self._test.location.path}: test `{self._test.id}`", error))


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, LeavingLink) as error:
        raise AttemptError("workspace", f"{what}: {error}") from error


def _sentence(where: str, error: AttemptError) -> str:
    return f"{where}: {error}. {error.hint}".rstrip() if error.hint else f"{where}: {error}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:_NAME] or "test"
