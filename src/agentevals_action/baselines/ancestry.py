"""The base's ancestors and the changes since each: from git where it has the history, else from
the code host."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from functools import cached_property
from typing import Any, TypeVar

from agentevals_action.baselines.base import CommitHistory, Lineage, build_lineage
from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.system.git import GitRepository

T = TypeVar("T")

#: Commits per review of which one history is asked for the changes: each is a request to the host.
_MOST_ASKED = 30


class Ancestry:
    """The history before `commit`. `histories` are asked in this order; one that fails is not asked
    again."""

    def __init__(self, commit: str, histories: Sequence[CommitHistory]) -> None:
        self._commit = commit
        self._histories = tuple(histories)
        self._failed: dict[int, str] = {}
        self._asked: Counter[int] = Counter()

    @cached_property
    def lineage(self) -> Lineage:
        """The ancestors of the commit: those of the first complete history, else the most that one
        of them has."""
        best = Lineage({self._commit: 0})
        problems = [] if self._histories else ["no source knows the base's ancestors"]
        for number, history in enumerate(self._histories):
            try:
                found = history.lineage(self._commit)
            except AgentEvalsError as error:
                self._failed[number] = str(error)
                problems.append(str(error))
                continue
            if not found.problem:
                return found
            problems.append(found.problem)
            if len(found.distances) > len(best.distances):
                best = found
        return Lineage(best.distances, "; ".join(problems))

    def changes(self, ancestor: str) -> Sequence[ChangedFile] | str:
        """The change from an ancestor to the commit, or the reason why it is unknown."""
        reason = "no source knows the changes since then"
        for number, history in enumerate(self._histories):
            found = self._ask(number, history, ancestor)
            if not isinstance(found, str):
                return found
            reason = found
        return reason

    def _ask(
        self, number: int, history: CommitHistory, ancestor: str
    ) -> Sequence[ChangedFile] | str:
        if number in self._failed:
            return self._failed[number]
        self._asked[number] += 1
        if self._asked[number] > _MOST_ASKED:
            return f"the changes since more than {_MOST_ASKED} commits would be needed"
        try:
            return history.changes(ancestor, self._commit)
        except AgentEvalsError as error:
            self._failed[number] = str(error)
            return str(error)


class GitHistory:
    """The history in the clone, as far as it reaches. Threads use it, and the event loop in which
    it is made runs git."""

    def __init__(self, repository: GitRepository) -> None:
        self._repository, self._loop = repository, asyncio.get_running_loop()

    def lineage(self, commit: str) -> Lineage:
        """The ancestors in the clone."""
        return self._wait(self._lineage(commit))

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """The change between two commits of the clone."""
        return self._wait(self._changes(ancestor, commit))

    def _wait(self, asked: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    async def _lineage(self, commit: str) -> Lineage:
        is_shallow = await self._repository.is_shallow()
        problem = "the clone does not contain the complete history" if is_shallow else ""
        return build_lineage(commit, await self._repository.ancestry(commit), problem)

    async def _changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        if not await self._repository.has(ancestor):
            return f"the commit {ancestor[:12]} is not in the clone"
        return await self._repository.changed_files(ancestor, commit)
