"""Results of an earlier run that are still valid: their test is the same, and of a conversation
all turns are kept or none."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from agentevals_action.execution.conversations import Conversation, remembered_conversation
from agentevals_action.execution.runner import IndexedTest
from agentevals_action.model.result import Fingerprint, TestResult
from agentevals_action.model.suite import Suite, Test


class RequestedTests:
    """The tests of a run, to compare rows of an earlier run with. Of each test a digest is held,
    because a run may have 50,000 tests."""

    def __init__(
        self,
        tests: Iterable[IndexedTest],
        fingerprint: Callable[[Suite, Test], Fingerprint],
        samples: int,
    ) -> None:
        self._tests: dict[tuple[str, str], tuple[int, bytes]] = {}
        self._conversations: dict[Conversation, list[int]] = {}
        for index, suite, test in tests:
            self._tests[suite.path, test.id] = index, _digest(fingerprint(suite, test), samples)
            if conversation := remembered_conversation(suite, test):
                self._conversations.setdefault(conversation, []).append(index)

    def __len__(self) -> int:
        return len(self._tests)

    def __contains__(self, result: TestResult) -> bool:
        return (result.eval_path, result.eval_id) in self._tests

    def index_of(self, result: TestResult) -> int | None:
        """The index in the run of the test that a row belongs to. None when the test runs again: it
        is not requested, it has changed, or the row has no score."""
        index, digest = self._tests.get((result.eval_path, result.eval_id), (0, b""))
        if result.verdict is None or result.fingerprint is None:
            return None
        return index if digest == _digest(result.fingerprint, len(result.samples)) else None

    def incomplete_conversations(self, kept: Sequence[int]) -> list[int]:
        """Indices of kept tests that run again because another turn of their conversation does.
        `kept` is true at the index of each kept test."""
        incomplete = (
            turns for turns in self._conversations.values() if not all(kept[turn] for turn in turns)
        )
        return [turn for turns in incomplete for turn in turns if kept[turn]]


def _digest(fingerprint: Fingerprint, samples: int) -> bytes:
    parts = (fingerprint.question, fingerprint.grading, fingerprint.agent, str(samples))
    return hashlib.sha256(" ".join(parts).encode()).digest()
