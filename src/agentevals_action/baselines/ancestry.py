"""The base's ancestors and what changed since each: from git where it has the history, else from
the code host."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from agentevals_action.errors import AgentEvalsError
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.past import Lineage, lineage
from agentevals_action.system.git import GitRepository

#: Commits that a review asks a place about at most: each is a request to the host.
_MOST_ASKED = 30


class CommitHistory(Protocol):
    """A source of the history before a commit. AgentEvalsError if it cannot answer at all: then it
    is not asked again."""

    def lineage(self, commit: str) -> Lineage:
        """The ancestors of a commit, as far back as a baseline may be."""
        ...

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed between two commits; the reason if that is unknown."""
        ...


class GitHistory:
    """The history in the clone, as far as it goes."""

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository

    def lineage(self, commit: str) -> Lineage:
        """The ancestors that are in the clone."""
        shallow = self._repository.is_shallow()
        problem = "the clone does not contain the complete history" if shallow else ""
        return lineage(commit, self._repository.ancestry(commit), problem)

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed between two commits that are in the clone."""
        if not self._repository.has(ancestor):
            return f"the commit {ancestor[:12]} is not in the clone"
        return self._repository.changed_files(ancestor, commit)


class Ancestry:
    """What lies before `commit`. `places` are asked in this order; one that fails is not asked
    again."""

    def __init__(self, commit: str, places: Sequence[CommitHistory]) -> None:
        self._commit = commit
        self._places = tuple(places)
        self._failed: dict[int, str] = {}
        self._asked: dict[int, int] = {}

    @cached_property
    def lineage(self) -> Lineage:
        """The ancestors of the commit; those of the first place that knows all it should, else of
        the one that knows most."""
        best = Lineage(
            {self._commit: 0},
            "" if self._places else "there is nothing to ask for the base's ancestors",
        )
        problems = []
        for number, place in enumerate(self._places):
            try:
                found = place.lineage(self._commit)
            except AgentEvalsError as error:
                self._failed[number] = str(error)
                problems.append(str(error))
                continue
            if not found.problem:
                return found
            problems.append(found.problem)
            if len(found.distances) > len(best.distances):
                best = found
        return Lineage(best.distances, "; ".join(problems) or best.problem)

    def changes(self, ancestor: str) -> Sequence[ChangedFile] | str:
        """What changed from an ancestor to the commit; in words why it cannot be told."""
        reasons = []
        for number, place in enumerate(self._places):
            found = self._ask(number, place, ancestor)
            if not isinstance(found, str):
                return found
            reasons.append(found)
        return reasons[-1] if reasons else "there is nothing to ask for what changed since"

    def _ask(self, number: int, place: CommitHistory, ancestor: str) -> Sequence[ChangedFile] | str:
        if number in self._failed:
            return self._failed[number]
        self._asked[number] = self._asked.get(number, 0) + 1
        if self._asked[number] > _MOST_ASKED:
            return f"more than {_MOST_ASKED} commits would have to be looked at"
        try:
            return place.changes(ancestor, self._commit)
        except AgentEvalsError as error:
            self._failed[number] = str(error)
            return str(error)
