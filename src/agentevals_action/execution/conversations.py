"""Agents that may remember a conversation: to such a one the turns before belong to the question,
so they are run before it."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.build import agent_name
from agentevals_action.targets.base import ProviderOptions

#: A conversation by its suite's path and its id.
Conversation = tuple[str, str]


def may_remember(suite: Suite, test: Test) -> bool:
    """Whether a test's agent may know more than it is sent: a model does not, and what always
    answers the same would not show it."""
    target = suite.targets.targets.get(agent_name(suite, test) or "")
    options = target.options if target else None
    return not (
        isinstance(options, ProviderOptions) and (options.is_defined or options.deterministic)
    )


def remembered_in(suite: Suite, test: Test) -> Conversation | None:
    """The conversation that a test is a turn of, where its agent may remember it; None
    otherwise."""
    return (
        (suite.path, test.conversation_id)
        if test.conversation_id is not None and may_remember(suite, test)
        else None
    )


class WithEarlierTurns:
    """The tests that `has` picks of suites, and the turns of their conversations before them, where
    their agents may remember those."""

    def __init__(self, suites: Iterable[Suite], has: Callable[[Test], bool]) -> None:
        self._has = has
        self._needed: dict[Conversation, int] = {}
        for suite in suites:
            self._needed.update(_needed(suite, has))

    def of(self, suite: Suite) -> Iterator[Test]:
        """The tests of a suite that are to be run, in its order."""
        left = dict(self._needed)
        for test in suite.tests:
            talk = remembered_in(suite, test) if left else None
            number = left.get(talk, 0) if talk else 0
            if talk and number:
                left[talk] = number - 1
            if number or self._has(test):
                yield test

    def added(self, suite: Suite) -> int:
        """How many tests of a suite are run for the sake of those behind them."""
        return sum(1 for test in self.of(suite) if not self._has(test)) if self._needed else 0


def _needed(suite: Suite, has: Callable[[Test], bool]) -> Mapping[Conversation, int]:
    """How many turns of each conversation are to be run, from its first to the last that is
    picked."""
    seen: dict[Conversation, int] = {}
    needed: dict[Conversation, int] = {}
    for test in suite.tests:
        if talk := remembered_in(suite, test):
            seen[talk] = seen.get(talk, 0) + 1
            if has(test):
                needed[talk] = seen[talk]
    return needed
