"""Results of an earlier run that are still valid."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from agentevals_action.execution.conversations import Conversation, remembered_conversation
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.result import Fingerprint, Key, TestResult
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.build import stand_again


def valid_results(
    rows: Iterable[TestResult],
    suites: Sequence[Suite],
    fingerprint: Callable[[Suite, Test], Fingerprint],
    samples: int,
    rule: JudgeRule,
) -> dict[Key, TestResult]:
    """The rows whose test is in these suites and has not changed. A row without a verdict, or about
    which other judges decide now, is not valid."""
    tests = {(suite.path, test.id): (suite, test) for suite in suites for test in suite.tests}
    return {
        key: row
        for row in rows
        for key in [row.key]
        if key in tests and row.verdict is not None and len(row.samples) == samples
        if row.variant == tests[key][0].variant and row.fingerprint == fingerprint(*tests[key])
        if all(stand_again(sample, rule) == sample for sample in row.samples)
    }


def incomplete_conversations(suites: Sequence[Suite], valid: Collection[Key]) -> frozenset[Key]:
    """The valid tests that run again because another turn of their conversation runs, and the agent
    may remember the turns."""
    conversations = defaultdict[Conversation, set[Key]](set)
    for suite in suites:
        for test in suite.tests:
            if conversation := remembered_conversation(suite, test):
                conversations[conversation].add((suite.path, test.id))
    kept = frozenset(valid)
    incomplete = (turns & kept for turns in conversations.values() if not turns <= kept)
    return frozenset().union(*incomplete)
