"""The view of a review: its tests by what became of them, and what all reports state."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from agentevals_action.formatting import counted, joined, plural
from agentevals_action.model.comparison import TestComparison
from agentevals_action.model.edits import Edit
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Review
from agentevals_action.model.usage import Spending
from agentevals_action.reports.view.conversations import TurnNumber
from agentevals_action.reports.view.links import Links


@dataclass(frozen=True)
class ListedTest:
    """A test with the path of its suite, and its turn if it is one of several in a conversation."""

    suite: str
    comparison: TestComparison
    turn: TurnNumber | None = None

    @property
    def result(self) -> TestResult | None:
        """Head's result, or base's if head does not have the test."""
        return self.comparison.head or self.comparison.base

    @property
    def conversation(self) -> tuple[str, str] | None:
        """The suite's path and the conversation's id."""
        found = self.result.conversation_id if self.result else None
        return None if found is None else (self.suite, found)


def order_by_conversation(tests: Iterable[ListedTest]) -> tuple[ListedTest, ...]:
    """Puts the turns of a conversation next to each other, where the first of them is."""
    groups: dict[Hashable, list[ListedTest]] = {}
    for position, test in enumerate(tests):
        groups.setdefault(test.conversation or position, []).append(test)
    return tuple(
        test
        for group in groups.values()
        for test in sorted(group, key=lambda one: one.turn.number if one.turn else 0)
    )


@dataclass(frozen=True)
class Removal:
    """What base has and head does not: paths of suites, tests, and gates of remaining tests."""

    suites: tuple[str, ...] = ()
    tests: tuple[ListedTest, ...] = ()
    gates: tuple[tuple[ListedTest, str], ...] = ()

    @property
    def sentence(self) -> str:
        """`2 tests and 1 required gate of the base were removed.`; empty if nothing was."""
        gates = len(self.gates) + sum(len(one.comparison.gates_removed) for one in self.tests)
        numbers = {"suite": len(self.suites), "test": len(self.tests), "required gate": gates}
        words = [counted(number, noun) for noun, number in numbers.items() if number]
        verb = plural(sum(numbers.values()), "was", "were")
        return f"{joined(words)} of the base {verb} removed." if words else ""


@dataclass(frozen=True)
class ReportView:
    """A review, classified once for all reports; nothing in it is escaped or cut.

    `alert` is GitHub's word (`CAUTION`), `sentence` follows the outcome (`Failed: `), `waived`
    states what does not count. In each group the turns of a conversation are next to each other.
    `edits` are those of all suites; `passed_by_edits` pass only with the changed evaluators.
    `regressions` need a reviewer: they regressed, or a required gate failed. `failures` failed
    without a base to compare with."""

    review: Review
    links: Links
    alert: str
    sentence: str
    removal: Removal
    edits: tuple[Edit, ...]
    passed_by_edits: tuple[ListedTest, ...]
    unscored_by_base: tuple[ListedTest, ...]
    spending: Spending
    notices: tuple[str, ...]
    tests: tuple[ListedTest, ...]
    regressions: tuple[ListedTest, ...]
    failures: tuple[ListedTest, ...]
    accepted: tuple[ListedTest, ...]
    errors: tuple[ListedTest, ...]
    undecided: tuple[ListedTest, ...]
    flaky: tuple[ListedTest, ...]
    quarantined: tuple[ListedTest, ...]
    improved: tuple[ListedTest, ...]
    question_changed: tuple[ListedTest, ...]
    new: tuple[ListedTest, ...]
    still_failing: tuple[ListedTest, ...]
    not_compared: tuple[ListedTest, ...]
    score_changed: tuple[ListedTest, ...]
