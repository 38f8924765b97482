"""Repositories of workspaces: each source is cloned once a run and checked out from that copy."""

import asyncio
import itertools
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import NETWORK_SECONDS, Git
from agentevals_action.model.workspace import Repo
from agentevals_action.system.isolation import file_access_as

_QUIET_CLONE = ("clone", "--quiet", "--template=")
_QUIET_FETCH = ("fetch", "--quiet", "--no-tags", "origin")


class Repositories:
    """The copies of one run, in `folder`. A source that failed once is not fetched again."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git, self._folder = git, folder
        self._copies: dict[str, asyncio.Task[Path]] = {}
        self._commits: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._numbers = itertools.count(1)

    async def check_out(self, repo: Repo, workspace: Path) -> None:
        """Clones a repository into a workspace, with a copy of all objects and a detached HEAD.
        Raises AttemptError."""
        with file_access_as(self._git.user):
            path = _checked_path(repo, workspace)
        copy, commit = await self._copy(str(repo.source)), await self._commit(repo)
        git = self._git
        clone = (*_QUIET_CLONE, "--no-checkout", "--no-hardlinks", "--", str(copy), str(path))
        await git.run(*clone, cwd=workspace, timeout=NETWORK_SECONDS)
        if await self._find(path, commit) is None:
            await git.run(*_QUIET_FETCH, commit, cwd=path, timeout=NETWORK_SECONDS)
        await git.run("remote", "set-url", "origin", str(repo.source), cwd=path)
        await git.run("checkout", "--quiet", "--detach", commit, cwd=path, timeout=NETWORK_SECONDS)

    async def objects(self, repo: Repo) -> Path:
        """The folder of the objects of a checked out repository; it exists until the end of the
        run."""
        return await self._copy(str(repo.source)) / "objects"

    async def close(self) -> None:
        """Cancels what is still being fetched."""
        tasks = [*self._copies.values(), *self._commits.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Tasks are shielded: they go on for the other tests when one that waits is cancelled.
    async def _copy(self, source: str) -> Path:
        if source not in self._copies:
            self._copies[source] = asyncio.create_task(self._clone(source))
        return await asyncio.shield(self._copies[source])

    async def _commit(self, repo: Repo) -> str:
        key = (str(repo.source), repo.commit or "HEAD")
        if key not in self._commits:
            self._commits[key] = asyncio.create_task(self._resolve(*key))
        return await asyncio.shield(self._commits[key])

    async def _clone(self, source: str) -> Path:
        copy = self._folder / str(next(self._numbers))
        words = (*_QUIET_CLONE, "--bare", "--no-local", "--", source, str(copy))
        try:
            await self._git.run(*words, cwd=self._folder, timeout=NETWORK_SECONDS)
        except AttemptError as error:
            problem = f"the repository {source} could not be cloned: {error}"
            advice = (
                "only what needs no credentials can be cloned; "
                "check the rest out in the workflow, and name its folder"
            )
            raise AttemptError("workspace", problem, advice) from error
        return copy

    async def _resolve(self, source: str, revision: str) -> str:
        copy = await self._copy(source)
        found = await self._find(copy, revision)
        if found is None:
            # No branch or tag leads to the commit, or the reference is of another type
            # (`refs/pull/1/head`).
            reference = f"refs/asked-for/{next(self._numbers)}"
            words = (*_QUIET_FETCH, f"+{revision}:{reference}")
            try:
                await self._git.run(*words, cwd=copy, timeout=NETWORK_SECONDS)
            except AttemptError as error:
                problem = f"the repository {source} has no commit `{revision}` ({error})"
                raise AttemptError("workspace", problem) from error
            found = await self._find(copy, reference)
        if found is None:
            problem = f"`{revision}` of the repository {source} is not a commit"
            raise AttemptError("workspace", problem)
        return found

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
