"""Pure: which turn of which conversation a test is, and turns brought together."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from agentevals_action.model.result import TestResult

T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """The place of a test in its conversation: `number` from 1, of `total`."""

    conversation: str
    number: int
    total: int

    @property
    def words(self) -> str:
        """`turn 2 of 3`."""
        return f"turn {self.number:,} of {self.total:,}"


class Turns:
    """The turns of all conversations, of results that are shown to it in suite order."""

    def __init__(self, results: Iterable[TestResult] = ()) -> None:
        self._ids: dict[tuple[str, str], dict[str, int]] = {}
        for result in results:
            self.add(result)

    def add(self, result: TestResult) -> None:
        """One more result; of one in no conversation nothing is kept."""
        if result.conversation_id is not None:
            ids = self._ids.setdefault((result.eval_path, result.conversation_id), {})
            ids.setdefault(result.eval_id, len(ids) + 1)

    def of(self, result: TestResult | None) -> Turn | None:
        """The turn that a test is; None when it is in no conversation, or its only turn, or was not
        shown."""
        if result is None or result.conversation_id is None:
            return None
        ids = self._ids.get((result.eval_path, result.conversation_id), {})
        number = ids.get(result.eval_id)
        return (
            None
            if number is None or len(ids) < 2
            else Turn(result.conversation_id, number, len(ids))
        )


def together(
    items: Iterable[T],
    key: Callable[[T], Hashable | None],
    turn: Callable[[T], int] = lambda _item: 0,
) -> Sequence[Sequence[T]]:
    """Items of one key side by side, by their turns, where the first of them stands; each item
    without a key (None) by itself."""
    groups: dict[Hashable, list[T]] = {}
    alone = count()
    for item in items:
        of = key(item)
        groups.setdefault(("alone", next(alone)) if of is None else ("key", of), []).append(item)
    return [sorted(group, key=turn) for group in groups.values()]
