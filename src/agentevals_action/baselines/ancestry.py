"""The base's ancestors and what changed since each: from git where it has the history, else from
the code host."""

from collections.abc import Sequence
from functools import cached_property

from agentevals_action.errors import AgentEvalsError
from agentevals_action.github.base import Past
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.past import Lineage

#: Commits that a review asks a place about at most: each is a request to the host.
_MOST_ASKED = 30


class Ancestry:
    """What lies before `commit`. `places` are asked in this order; one that fails is not asked
    again."""

    def __init__(self, commit: str, places: Sequence[Past]) -> None:
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

    def _ask(self, number: int, place: Past, ancestor: str) -> Sequence[ChangedFile] | str:
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
