"""Conversations whose agent may remember earlier turns: those turns run before a later one."""

from collections.abc import Callable

from agentevals_action.model.suite import Suite, Test

#: A conversation: the path of its suite and its id.
Conversation = tuple[str, str]


def may_remember(suite: Suite, test: Test) -> bool:
    """Whether the agent of a test may know more than it is sent. A model does not, and an agent
    that always gives the same answer does not show it."""
    target = suite.agent_of(test)
    return target is None or not (target.is_defined or target.deterministic)


def remembered_conversation(suite: Suite, test: Test) -> Conversation | None:
    """The conversation of a test, if its agent may remember it."""
    if test.conversation_id is None or not may_remember(suite, test):
        return None
    return suite.path, test.conversation_id


def select_tests(suite: Suite, is_selected: Callable[[Test], bool]) -> tuple[Test, ...]:
    """The tests of a suite that `is_selected` picks, and the earlier turns of their conversations
    where the agent may remember them, in suite order."""
    conversations = [remembered_conversation(suite, test) for test in suite.tests]
    selected = [is_selected(test) for test in suite.tests]
    turns = zip(conversations, range(len(selected)), selected, strict=True)
    last = {conversation: position for conversation, position, picked in turns if picked}
    last.pop(None, None)
    return tuple(
        test
        for position, test in enumerate(suite.tests)
        if selected[position] or position < last.get(conversations[position], 0)
    )
