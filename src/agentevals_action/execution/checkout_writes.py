"""Files that agents without a `workspace` write into the checkout: later tests see them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agentevals_action.errors import GitError
from agentevals_action.formatting import list_paths
from agentevals_action.system.git import GitRepository

#: Seconds of a comparison.
#:
#: Attack: an agent puts a FIFO in place of `.gitignore`, which git waits for.
SECONDS = 20.0


class CheckoutWrites:
    """Compares the trees of a run before the first call of such an agent and at the end. `notice`
    receives a sentence for each tree with new files; those in `ignored` (absolute) are the action's
    own. A comparison takes up to `seconds`, and runs the `filters` of git."""

    def __init__(
        self,
        notice: Callable[[str], None],
        environ: Mapping[str, str],
        ignored: Iterable[Path],
        seconds: float = SECONDS,
        *,
        filters: bool = True,
    ) -> None:
        self._filters = filters
        self._notice, self._environ, self._seconds = notice, environ, seconds
        self.ignored = {path.resolve() for path in ignored}
        self._before: dict[Path, asyncio.Task[frozenset[str]]] = {}
        self._repositories: dict[Path, GitRepository] = {}

    async def watch(self, tree: Path) -> None:
        """Notes what differs from the commit of a tree, once."""
        if tree not in self._before:
            self._before[tree] = asyncio.create_task(asyncio.to_thread(self._list, tree))
        await asyncio.wait([self._before[tree]])

    async def report(self, trees: Iterable[Path]) -> None:
        """Reports the files that are new since then in trees whose tests are done."""
        for tree in trees:
            if (noted := self._before.get(tree)) is None:
                continue
            try:
                new = await asyncio.to_thread(self._list, tree) - await noted
            except GitError as error:
                self._notice(f"which files of the checkout agents changed is not known: {error}")
                continue
            if new:
                self._notice(_sentence(sorted(new)))

    def _list(self, tree: Path) -> frozenset[str]:
        opened = GitRepository(tree, environ=self._environ, seconds=self._seconds)
        repository = self._repositories.setdefault(tree, opened)
        try:
            root = repository.root
        except GitError:  # no repository: nobody asked for a clean one
            return frozenset()
        paths = repository.uncommitted(filters=self._filters)
        return frozenset(path for path in paths if not self._is_ignored(root / path))

    def _is_ignored(self, path: Path) -> bool:
        # Judges in Python make these.
        return "__pycache__" in path.parts or any(map(path.is_relative_to, self.ignored))


def _sentence(paths: Sequence[str]) -> str:
    return (
        f"agents that ran without a `workspace` changed files of the checkout, which later tests "
        f"see: {list_paths(paths)}; give these tests a `workspace`, or ignore the files in "
        "`.gitignore`"
    )
