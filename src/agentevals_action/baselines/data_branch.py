"""The data branch: the results of the runs of the default branch, read and written with git in a
repository of its own, so that the workspace's clone stays as it is."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agentevals_action.baselines.run_files import BADGE, FOLDER, RunFiles
from agentevals_action.errors import GitError
from agentevals_action.system import temp_dirs
from agentevals_action.system.git import GitRepository

#: Attempts to write while other runs write, too; the longest pause between attempts, in seconds.
MAX_ATTEMPTS = 10
_MAX_PAUSE = 3.0
#: Refusals after which an unchanged branch is refused for another reason than a conflict.
_MAX_UNCHANGED = 2
#: What may be on the branch; a person may add `README.md`.
_HARMLESS = frozenset({".git", FOLDER, BADGE, "README.md"})
_PREFIX = "agentevals-data-"


class DataBranch:
    """The branch `name` of the origin of a repository, which is opened when it is needed. GitError
    if it cannot be used."""

    def __init__(self, repository: Callable[[], Awaitable[GitRepository]], name: str) -> None:
        self._open, self.name = repository, name
        self._files: RunFiles | None = None

    async def read(self) -> RunFiles | None:
        """The files of the branch, which is asked for once; None if there is no such branch."""
        if self._files is None:
            async with self._clone() as clone:
                self._files = (await self._fetched(clone))[1]
        return self._files

    async def add(
        self,
        name: str,
        content: bytes,
        badge: bytes,
        suites: Collection[tuple[str, str]],
        message: str,
    ) -> RunFiles:
        """Adds the file of a run of these suites (paths, with the variant), replaces the badge and
        removes files that nothing needs; returns the files of runs that the branch then has. If
        another run writes at the same time, the branch is read again. It is never force-pushed."""
        tips: list[str | None] = []
        async with self._clone() as clone:
            for _ in range(MAX_ATTEMPTS):
                tip, files = await self._fetched(clone)
                tips.append(tip)
                files = files or RunFiles({})
                obsolete = await asyncio.to_thread(files.obsolete, suites)
                kept = {path: old for path, old in files.contents.items() if path not in obsolete}
                _write(clone.root, {name: content, BADGE: badge}, obsolete)
                await clone.commit_all(message)
                try:
                    await clone.push(self.name)
                except GitError:
                    if tips.count(tip) >= _MAX_UNCHANGED:
                        raise
                    await asyncio.sleep(random.uniform(0, _MAX_PAUSE))  # noqa: S311  # no secret
                else:
                    self._files = RunFiles({**kept, name: content})
                    return self._files
        raise GitError("too many other runs were writing to it", "run this job again")

    @asynccontextmanager
    async def _clone(self) -> AsyncIterator[GitRepository]:
        """A new repository with the same origin, removed at the end."""
        repository = await self._open()
        async with temp_dirs.temp_folder(_PREFIX, Path(tempfile.gettempdir())) as folder:
            path = folder / "clone"
            path.mkdir()
            yield await repository.create(path)

    async def _fetched(self, clone: GitRepository) -> tuple[str | None, RunFiles | None]:
        """The last commit of the branch, which the clone checks out, and its files."""
        tip = await clone.fetch_branch(self.name)
        if tip is None:
            return None, None
        await clone.check_out(tip)
        names = {path.name for path in clone.root.iterdir()}
        if not names <= _HARMLESS:
            raise GitError(
                f"`{self.name}` contains something else than results",
                "name another branch in `baseline-branch`",
            )
        folder = clone.root / FOLDER
        files = [path for path in folder.glob("*") if path.is_file() and not path.is_symlink()]
        return tip, RunFiles({f"{FOLDER}/{path.name}": path.read_bytes() for path in files})


def _write(root: Path, files: Mapping[str, bytes], obsolete: Sequence[str]) -> None:
    try:
        for path in obsolete:
            (root / path).unlink()
        (root / FOLDER).mkdir(exist_ok=True)
        for name, content in files.items():
            (root / name).write_bytes(content)
    except OSError as error:
        raise GitError(f"{', '.join(files)} could not be written: {error.strerror}") from error
