"""Conversations whose agent may remember earlier turns: those turns run before a later one."""

from collections.abc import Callable

from agentevals_action.model.suite import Suite, Test

#: A conversation: the path of its suite and its id.
Conversation = tuple[str, str]


def may_remember(suite: Suite, test: Test) -> bool:
    """Whether the agent of a test may know more than it is sent: not if it is a model API or
    deterministic. An unknown agent may."""
    target = suite.find_agent(test)
    return target is None or not (target.is_defined or target.deterministic)


def remembered_conversation(suite: Suite, test: Test) -> Conversation | None:
    """The conversation of a test, if its agent may remember it."""
    if test.conversation_id is None or not may_remember(suite, test):
        return None
    return suite.path, test.conversation_id


def with_earlier_turns(suite: Suite, is_selected: Callable[[Test], bool]) -> tuple[Test, ...]:
    """The tests of a suite that `is_selected` picks, and the earlier turns of their conversations
    where the agent may remember them, in suite order."""
    chosen: list[Test] = []
    needed: set[Conversation] = set()  # conversations with a chosen later turn
    for test in reversed(suite.tests):
        conversation = remembered_conversation(suite, test)
        if is_selected(test) or conversation in needed:
            chosen.append(test)
            if conversation:
                needed.add(conversation)
    return tuple(reversed(chosen))
