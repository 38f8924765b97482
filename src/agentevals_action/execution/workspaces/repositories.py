"""Repositories of workspaces: each source is fetched once a run, and checked out of that copy
wherever it is asked for."""

import asyncio
import itertools
from pathlib import Path
from typing import TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import NETWORK_SECONDS, Git
from agentevals_action.model.suite import Repo

Value = TypeVar("Value")


class Repositories:
    """The copies of one run, in `folder`; what could not be had once is not asked for again."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git, self._folder = git, folder
        self._copies: dict[str, asyncio.Task[Path]] = {}
        self._commits: dict[tuple[str, str, int], asyncio.Task[str]] = {}
        self._numbers = itertools.count(1)

    async def check_out(self, repo: Repo, workspace: Path) -> None:
        """Clones a repository into a workspace, at its commit and on no branch, with a copy of all
        objects; AttemptError."""
        place = _place(repo, workspace)
        copy, commit = await self._copy(str(repo.source)), await self._commit(repo)
        words = (
            "clone",
            "--quiet",
            "--no-checkout",
            "--no-hardlinks",
            "--template=",
            "--",
            str(copy),
            str(place),
        )
        await self._git.run(*words, cwd=workspace, timeout=NETWORK_SECONDS)
        if (
            await self._git.find(
                "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", cwd=place
            )
            is None
        ):
            await self._git.run(
                "fetch",
                "--quiet",
                "--no-tags",
                "origin",
                commit,
                cwd=place,
                timeout=NETWORK_SECONDS,
            )
        await self._git.run("remote", "set-url", "origin", str(repo.source), cwd=place)
        if repo.sparse:
            await self._git.run("sparse-checkout", "set", "--cone", "--", *repo.sparse, cwd=place)
        await self._git.run(
            "checkout", "--quiet", "--detach", commit, cwd=place, timeout=NETWORK_SECONDS
        )

    async def objects(self, repo: Repo) -> Path:
        """The folder with the objects of a repository that was checked out; it stays for the whole
        run."""
        return await self._copy(str(repo.source)) / "objects"

    async def close(self) -> None:
        """Ends what is still being fetched."""
        tasks = [*self._copies.values(), *self._commits.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _copy(self, source: str) -> Path:
        if source not in self._copies:
            self._copies[source] = asyncio.create_task(self._cloned(source))
        return await _result(self._copies[source])

    async def _cloned(self, source: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        copy = self._folder / str(next(self._numbers))
        words = ("clone", "--quiet", "--bare", "--no-local", "--template=", "--", source, str(copy))
        try:
            await self._git.run(*words, cwd=self._folder, timeout=NETWORK_SECONDS)
        except AttemptError as error:
            hint = "only what needs no credentials can be cloned; check the rest out in the workflow, and name its folder"
            raise AttemptError(
                "workspace", f"the repository {source} could not be cloned: {error}", hint
            ) from error
        return copy

    async def _commit(self, repo: Repo) -> str:
        key = (str(repo.source), repo.commit or "HEAD", repo.ancestor)
        if key not in self._commits:
            self._commits[key] = asyncio.create_task(self._resolved(*key))
        return await _result(self._commits[key])

    async def _resolved(self, source: str, revision: str, ancestor: int) -> str:
        copy = await self._copy(source)
        found = await self._find(copy, revision)
        if found is None:
            # A commit that no branch or tag leads to, or a reference of another kind
            # (`refs/pull/1/head`).
            reference = f"refs/asked-for/{next(self._numbers)}"
            try:
                words = ("fetch", "--quiet", "--no-tags", "origin", f"+{revision}:{reference}")
                await self._git.run(*words, cwd=copy, timeout=NETWORK_SECONDS)
            except AttemptError as error:
                raise AttemptError(
                    "workspace", f"the repository {source} has no commit `{revision}` ({error})"
                ) from error
            found = await self._find(copy, reference)
        if found is None:
            raise AttemptError("workspace", f"`{revision}` of the repository {source} is no commit")
        if ancestor and (found := await self._find(copy, f"{found}~{ancestor}")) is None:
            hint = "its history may be cut off: fetch more of it (`fetch-depth: 0` in actions/checkout)"
            raise AttemptError(
                "workspace",
                f"`{revision}` of the repository {source} has no ancestor {ancestor} back",
                hint,
            )
        return found

    async def _find(self, copy: Path, revision: str) -> str | None:
        return await self._git.find(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{commit}}",
            cwd=copy,
        )


async def _result(task: "asyncio.Task[Value]") -> Value:
    """What the task gives: it goes on for the others when one of those that wait for it is
    cancelled."""
    return await asyncio.shield(task)


def _place(repo: Repo, workspace: Path) -> Path:
    place = workspace / repo.path
    try:
        if not place.resolve().is_relative_to(workspace.resolve()):
            raise AttemptError(
                "workspace", f"the repository's path {repo.path!r} leads out of the workspace"
            )
        if place.is_symlink() or (
            place.exists() and not (place.is_dir() and not any(place.iterdir()))
        ):
            raise AttemptError(
                "workspace", f"there is something at the repository's path {repo.path!r} already"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise AttemptError(
            "workspace", f"the repository's path {repo.path!r} cannot be used: {error}"
        ) from error
    return place
