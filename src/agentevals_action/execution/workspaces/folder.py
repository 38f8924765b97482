"""A folder that agents work in: made from template and repositories, shared or fresh, with hooks
around and what was done in it."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.diff import Changes
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import Facts, Hooks
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Reset, Test, Workspace
from agentevals_action.system.temp_dirs import remove_folder
from agentevals_action.system.tree_files import LeavingLink, copy_tree


@dataclass(frozen=True)
class Run:
    """What all folders of a run are made with."""

    folder: Path
    git: Git
    repositories: Repositories
    hooks: Hooks
    run_id: str
    notice: Callable[[str], None]
    keep: Path | None

    def folder_for(self, workspace: Workspace, suite: str, test: Test | None) -> "Folder":
        """A folder that is still to be made: a test's own, or the suite's where there is no test;
        `suite` is its path."""
        return Folder(self, workspace, suite, test)

    def attempt_in(self, folder: "Folder", test: Test, name: str) -> "Attempt":
        """One sample of a test in a folder; `name` is what its folder is called where it is
        kept."""
        return Attempt(self, folder, test, name)

    async def close(self) -> None:
        """Removes everything."""
        await self.repositories.close()
        await asyncio.to_thread(remove_folder, self.folder)


def begin(
    scratch: Path,
    environment: Mapping[str, str],
    withheld: tuple[str, ...],
    run_id: str,
    notice: Callable[[str], None],
    keep: Path | None,
) -> Run:
    """A run whose folders lie in a new one below `scratch`; AttemptError of kind `workspace` when
    it cannot be made."""
    with _told("a folder for workspaces cannot be made"):
        folder = Path(tempfile.mkdtemp(prefix="workspaces-", dir=scratch)).resolve()
    git = Git(folder / "git", environment)
    hooks = Hooks(environment, withheld)
    return Run(folder, git, Repositories(git, folder / "repositories"), hooks, run_id, notice, keep)


class Folder:
    """One folder over its life. `test` is the one whose own it is, None where it is the suite's."""

    def __init__(self, run: Run, workspace: Workspace, suite: str, test: Test | None) -> None:
        self._run, self._workspace, self._suite, self._test = run, workspace, suite, test
        self._refusal: AttemptError | None = None
        self.path = Path()
        self._pristine = Path()
        self.changes: Changes | None = None

    async def ready(self) -> None:
        """Makes the folder when there is none (any more); AttemptError, the same again once it
        could not be made."""
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
            self.path, ours = (
                Path(number) / "workspace",
                self._run.folder / f"of-{Path(number).name}",
            )
            self._pristine = ours / "pristine"
            if workspace.template:
                await asyncio.to_thread(copy_tree, workspace.template, self.path, "refuse")
            else:
                self.path.mkdir()
        for repo in workspace.repos:
            await self._run.repositories.check_out(repo, self.path)
        changes = Changes(self._run.git, self.path, ours / "states")
        await changes.adopt(
            [await self._run.repositories.objects(repo) for repo in workspace.repos]
        )
        if workspace.before_all:
            await self._run.hooks.run(
                "before_all", workspace.before_all, self._facts("__before_all__")
            )
        if workspace.reset != "none" or workspace.reset_before != "none":
            with _told("the workspace cannot be copied for its resets"):
                await asyncio.to_thread(copy_tree, self.path, self._pristine, "keep", git=True)
        self.changes = changes

    def _facts(self, name: str) -> Facts:
        if self._test is None:
            return Facts(str(self.path), name, self._run.run_id)
        return Facts.of_test(self.path, self._run.run_id, self._test)

    async def reset(self, mode: Reset) -> None:
        """Makes the folder what it was after `before_all`; `fast` leaves what is ignored as it is.
        AttemptError."""
        if mode == "none" or self.changes is None:
            return
        ignored = await self.changes.ignored() if mode == "fast" else []
        with _told("the workspace cannot be reset"):
            await asyncio.to_thread(self._restore, ignored)

    def _restore(self, ignored: list[str]) -> None:
        fresh = self.path.with_name("fresh")
        remove_folder(fresh)
        copy_tree(self._pristine, fresh, "keep", git=True)
        for path in ignored:
            place = fresh / path
            if (
                place.parent.resolve() == fresh.resolve() / Path(path).parent
            ):  # no link on the way, which could lead anywhere
                remove_folder(place) if place.is_dir() and not place.is_symlink() else place.unlink(
                    missing_ok=True
                )
                place.parent.mkdir(parents=True, exist_ok=True)
                (self.path / path).rename(place)
        self._clear()
        fresh.rename(self.path)

    def _clear(self) -> None:
        """Takes the folder away; an agent may have put a link or a file into its place."""
        if self.path.is_symlink() or self.path.is_file():
            self.path.unlink()
        remove_folder(self.path)

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
            await asyncio.to_thread(remove_folder, self.path.parent)
            await asyncio.to_thread(remove_folder, self._pristine.parent)
        self.changes = None


class Attempt:
    """One sample of a test in its folder `path`."""

    def __init__(self, run: Run, folder: Folder, test: Test, name: str) -> None:
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
        """The unified diff of what was done in the folder since the agent was let in; AttemptError
        when it cannot be told."""
        if self._folder.changes is None:
            raise AttemptError("workspace", "what the agent did cannot be told: its folder is gone")
        return await self._folder.changes.diff()

    async def leave(self, failed: bool, begun: bool = True) -> None:
        """Runs what comes after the grading: `after_each`, the reset of a shared folder, the end of
        a folder of one's own.

        The command comes before the reset: it may collect what the agent made, and nothing that it
        writes reaches the next test. What goes wrong here is a notice, never a score. `begun` is
        False when the agent was never let in."""
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
            # Whoever takes the folder further would follow a link to wherever an agent made it
            # lead.
            await asyncio.to_thread(copy_tree, self.path, place, "drop", git=True)
        except OSError as error:
            self._run.notice(
                f"the workspace of the test `{self._test.id}` could not be kept: {error}"
            )
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
