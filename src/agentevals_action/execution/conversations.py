"""Conversations whose agent may remember earlier turns: those turns run before a later one."""

from collections.abc import Callable, Iterable, Iterator

from agentevals_action.model.suite import Suite, Test

#: A conversation: the path of its suite and its id.
Conversation = tuple[str, str]


def may_remember(suite: Suite, test: Test) -> bool:
    """Whether the agent of a test may know more than it is sent. A model does not, and an agent
    that always gives the same answer does not show it."""
    target = suite.agent_of(test)
    return target is None or not (target.options.is_defined or target.options.deterministic)


def remembered_conversation(suite: Suite, test: Test) -> Conversation | None:
    """The conversation of a test, if its agent may remember it."""
    if test.conversation_id is None or not may_remember(suite, test):
        return None
    return suite.path, test.conversation_id


class SelectedTests:
    """The tests that `is_selected` picks, and the earlier turns of their conversations where the
    agent may remember them."""

    def __init__(self, suites: Iterable[Suite], is_selected: Callable[[Test], bool]) -> None:
        self._is_selected = is_selected
        #: How many turns of each conversation run, from its first to the last selected one.
        self._turns: dict[Conversation, int] = {}
        for suite in suites:
            seen: dict[Conversation, int] = {}
            for test in suite.tests:
                if conversation := remembered_conversation(suite, test):
                    seen[conversation] = seen.get(conversation, 0) + 1
                    if is_selected(test):
                        self._turns[conversation] = seen[conversation]

    def of(self, suite: Suite) -> Iterator[Test]:
        """The tests of a suite that run, in its order."""
        left = dict(self._turns)
        for test in suite.tests:
            conversation = remembered_conversation(suite, test) if left else None
            turns = left.get(conversation, 0) if conversation else 0
            if conversation and turns:
                left[conversation] = turns - 1
            if turns or self._is_selected(test):
                yield test

    def added(self, suite: Suite) -> int:
        """The number of tests of a suite that run only because a later turn is selected."""
        if not self._turns:
            return 0
        return sum(not self._is_selected(test) for test in self.of(suite))
