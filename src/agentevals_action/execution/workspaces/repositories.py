"""Repositories of workspaces: each is cloned once a run and checked out from that copy."""

import asyncio
import itertools
import os
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import NETWORK_SECONDS, Git
from agentevals_action.model.workspace import Repo
from agentevals_action.system.isolation import file_access_as

_CLONE = ("clone", "--quiet", "--template=")
_FETCH = ("fetch", "--quiet", "--no-tags", "origin")


class Repositories:
    """The copies of one run for one tree, in `folder`, which is made when it is needed. A failed
    clone is not repeated."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git, self._folder = git, folder
        #: By source and revision: the copy, and the commit in it.
        self._copies: dict[tuple[str, str], asyncio.Task[tuple[Path, str]]] = {}
        self._numbers = itertools.count(1)

    async def check_out(self, repo: Repo, workspace: Path) -> Path:
        """Clones a repository into a workspace, with a copy of all objects and a detached HEAD;
        returns a folder of these objects, which exists until the end of the run. Raises
        AttemptError."""
        with file_access_as(self._git.user):
            path = _checked_path(repo, workspace)
        source, revision = str(repo.source), repo.commit or "HEAD"
        if (source, revision) not in self._copies:
            copying = asyncio.create_task(self._copy(source, revision))
            self._copies[source, revision] = copying
        # The copying goes on for other tests when a waiting test is cancelled.
        copy, commit = await asyncio.shield(self._copies[source, revision])
        steps: tuple[tuple[Path, tuple[str, ...]], ...] = (
            (workspace, (*_CLONE, "--no-checkout", "--no-hardlinks", "--", str(copy), str(path))),
            (path, (*_FETCH, commit)),  # which no branch may lead to
            (path, ("remote", "set-url", "origin", source)),
            (path, ("checkout", "--quiet", "--detach", commit)),
        )
        for cwd, words in steps:
            await self._git.run(*words, cwd=cwd, timeout=NETWORK_SECONDS)
        return copy / "objects"

    async def close(self) -> None:
        """Cancels what is still being fetched."""
        for task in self._copies.values():
            task.cancel()
        await asyncio.gather(*self._copies.values(), return_exceptions=True)

    async def _copy(self, source: str, revision: str) -> tuple[Path, str]:
        self._make_folder()
        copy = self._folder / str(next(self._numbers))
        words = (*_CLONE, "--bare", "--no-local", "--", source, str(copy))
        try:
            await self._git.run(*words, cwd=self._folder, timeout=NETWORK_SECONDS)
        except AttemptError as error:
            problem = f"the repository {source} could not be cloned: {error}"
            advice = (
                "only what needs no credentials can be cloned; "
                "check the rest out in the workflow, and name its folder"
            )
            raise AttemptError("workspace", problem, advice) from error
        if commit := await self._find(copy, revision):
            return copy, commit
        # No branch or tag leads to the commit, or the reference is of another type
        # (`refs/pull/1/head`).
        try:
            fetched = (*_FETCH, f"+{revision}:refs/wanted")
            await self._git.run(*fetched, cwd=copy, timeout=NETWORK_SECONDS)
        except AttemptError as error:
            problem = f"the repository {source} has no commit `{revision}` ({error})"
            raise AttemptError("workspace", problem) from error
        if commit := await self._find(copy, "refs/wanted"):
            return copy, commit
        raise AttemptError("workspace", f"`{revision}` of the repository {source} is not a commit")

    def _make_folder(self) -> None:
        if not self._folder.exists():
            self._folder.mkdir(parents=True)
            if user := self._git.user:
                os.chown(self._folder, user.uid, user.gid)

    async def _find(self, repository: Path, revision: str) -> str | None:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return await self._git.find(*words, cwd=repository)


def _checked_path(repo: Repo, workspace: Path) -> Path:
    """Where a repository is checked out. Raises AttemptError for a path that leads out of the
    workspace or is taken."""
    path, subject = workspace / repo.path, f"the repository's path {repo.path!r}"
    try:
        if not path.resolve().is_relative_to(workspace.resolve()):
            raise AttemptError("workspace", f"{subject} leads out of the workspace")
        is_empty_folder = path.is_dir() and not any(path.iterdir())
        if path.is_symlink() or (path.exists() and not is_empty_folder):
            raise AttemptError("workspace", f"there is something at {subject} already")
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise AttemptError("workspace", f"{subject} cannot be used: {error}") from error
    return path
