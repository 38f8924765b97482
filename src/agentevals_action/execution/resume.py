"""Results of an earlier run that are still valid."""

from collections.abc import Callable, Iterable, Sequence

from agentevals_action.execution.conversations import Conversation, remembered_conversation
from agentevals_action.model.result import Fingerprint, TestResult
from agentevals_action.model.suite import Suite, Test

#: A test with its index in the run (from 0) and its suite.
IndexedTest = tuple[int, Suite, Test]


def valid_results(
    rows: Iterable[TestResult],
    tests: Sequence[IndexedTest],
    fingerprint: Callable[[Suite, Test], Fingerprint],
    samples: int,
) -> dict[int, TestResult]:
    """The rows whose test is one of these and has not changed, by the index of the test; a row
    without a verdict is not valid."""
    known = {(suite.path, test.id): (index, suite, test) for index, suite, test in tests}
    valid: dict[int, TestResult] = {}
    for row in rows:
        found = known.get((row.eval_path, row.eval_id))
        if found is None or row.verdict is None or len(row.samples) != samples:
            continue
        index, suite, test = found
        if row.fingerprint == fingerprint(suite, test):
            valid[index] = row
    return valid


def incomplete_conversations(tests: Iterable[IndexedTest], valid: Iterable[int]) -> frozenset[int]:
    """The indices of valid tests that run again because another turn of their conversation does,
    and the agent may remember its turns."""
    kept = frozenset(valid)
    conversations: dict[Conversation, set[int]] = {}
    for index, suite, test in tests:
        if conversation := remembered_conversation(suite, test):
            conversations.setdefault(conversation, set()).add(index)
    incomplete = (turns & kept for turns in conversations.values() if not turns <= kept)
    return frozenset().union(*incomplete)
