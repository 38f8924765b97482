"""Which rows of an earlier run still stand: those of tests that are still asked for, and are the
same; of a conversation all or none."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from agentevals_action.execution.conversations import Conversation, remembered_in
from agentevals_action.execution.runner import Placed
from agentevals_action.model.result import Fingerprint, TestResult
from agentevals_action.model.suite import Suite, Test


class Asked:
    """The tests that are asked for now, in 24 bytes each (turns of conversations 8 more): who they
    are and what their results depend on, as 64-bit hashes.

    `fingerprint` tells what a result depends on, `samples` how often each test runs."""

    def __init__(
        self,
        tests: Iterable[Placed],
        fingerprint: Callable[[Suite, Test], Fingerprint],
        samples: int,
    ) -> None:
        self._names, self._states = array("q"), array("q")
        self._conversations: dict[Conversation, array[int]] = {}
        for place, (_, suite, test) in enumerate(tests):
            self._names.append(hash((suite.path, test.id)))
            self._states.append(_state(fingerprint(suite, test), samples))
            if talk := remembered_in(suite, test):
                self._conversations.setdefault(talk, array("q")).append(place)
        self._order = array("q", sorted(range(len(self._names)), key=self._names.__getitem__))

    def __len__(self) -> int:
        return len(self._names)

    def place(self, result: TestResult) -> int | None:
        """The place in the run (from 0) of the test that a row belongs to; None when the row is to
        be made again: its test is not asked for, asks or grades otherwise by now, or could not be
        told."""
        index = self._index(result)
        if index is None or result.verdict is None or result.fingerprint is None:
            return None
        return (
            index
            if self._states[index] == _state(result.fingerprint, len(result.samples))
            else None
        )

    def has(self, result: TestResult) -> bool:
        """Whether the test that a row belongs to is asked for at all."""
        return self._index(result) is not None

    def halves(self, kept: bytearray) -> Sequence[int]:
        """Places of kept tests (`kept` has a byte for each place) that are to be made again: a turn
        of their conversation is, and an agent that may remember has to hear the whole of it."""
        broken = (
            turns
            for turns in self._conversations.values()
            if not all(kept[place] for place in turns)
        )
        return [place for turns in broken for place in turns if kept[place]]

    def _index(self, result: TestResult) -> int | None:
        name = hash((result.eval_path, result.eval_id))
        found = bisect_left(self._order, name, key=self._names.__getitem__)
        return (
            self._order[found]
            if found < len(self._order) and self._names[self._order[found]] == name
            else None
        )


def _state(fingerprint: Fingerprint, samples: int) -> int:
    return hash((fingerprint.question, fingerprint.grading, fingerprint.agent, samples))
