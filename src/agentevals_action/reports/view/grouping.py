"""Tests of one conversation next to each other, under its name."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby

from agentevals_action.escaping import code
from agentevals_action.model.comparison import SuiteComparison, TestComparison
from agentevals_action.reports.conversations import Turn, Turns, together
from agentevals_action.reports.view.models import Listing

#: A test with the path of its suite.
Placed = tuple[str, TestComparison]
#: Makes one line of Markdown of a test.
Line = Callable[[str, TestComparison], str]


class Grouping:
    """The conversations of a review; of a test that head does not have any more the turn is not
    known."""

    def __init__(self, suites: Iterable[SuiteComparison]) -> None:
        self._turns = Turns(test.head for suite in suites for test in suite.tests if test.head)

    def turn(self, test: TestComparison) -> Turn | None:
        """Which turn of its conversation a test is, if it is one of several."""
        return self._turns.of(test.head)

    def ordered(self, tests: Iterable[Placed]) -> list[Placed]:
        """The tests, those of one conversation side by side and by their turns."""
        return [placed for group in together(tests, self._key, self._number) for placed in group]

    def told(self, title: str, tests: Sequence[Placed], line: Line, limit: int) -> Listing | None:
        """A line a test, at most `limit`, several of one conversation beneath its name; None when
        there are none."""
        if not tests:
            return None
        shown = self.ordered(tests)[:limit]
        left = len(tests) - len(shown)
        return Listing(
            title, self.lines(shown, line), f"… and {left:,} more" if left and shown else ""
        )

    def lines(self, ordered: Sequence[Placed], line: Line) -> tuple[str, ...]:
        """Ordered tests as items of a list; turns of one conversation are a list in their item."""
        return tuple(self._item(group, line) for group in self.runs(ordered))

    def runs(self, ordered: Sequence[Placed]) -> list[list[Placed]]:
        """Ordered tests in their groups: of a conversation, or one by itself."""
        numbered = enumerate(ordered)
        groups = groupby(numbered, lambda pair: self._key(pair[1]) or pair[0])
        return [[placed for _, placed in group] for _, group in groups]

    def _item(self, group: Sequence[Placed], line: Line) -> str:
        if len(group) == 1:
            turn = self.turn(group[0][1])
            return f"{f'{name(turn)}, {turn.words}: ' if turn else ''}{line(*group[0])}"
        return "\n".join(
            [
                f"conversation {code(_conversation(group[0][1]) or '')}",
                *(f"  - {self._of(one)}{line(*one)}" for one in group),
            ]
        )

    def _of(self, placed: Placed) -> str:
        turn = self.turn(placed[1])
        return f"{turn.words}: " if turn else ""

    def _key(self, placed: Placed) -> Hashable | None:
        conversation = _conversation(placed[1])
        return None if conversation is None else (placed[0], conversation)

    def _number(self, placed: Placed) -> int:
        turn = self.turn(placed[1])
        return turn.number if turn else 0


def name(turn: Turn) -> str:
    """A conversation by its name, as Markdown."""
    return f"conversation {code(turn.conversation)}"


def _conversation(test: TestComparison) -> str | None:
    result = test.head or test.base
    return result.conversation_id if result else None
