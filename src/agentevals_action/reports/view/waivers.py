"""What counts against a change and what does not: regressions that somebody accepted, tests in
quarantine."""

from collections import Counter
from collections.abc import Callable, Iterable

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted
from agentevals_action.model.comparison import Change, TestComparison
from agentevals_action.reports.view import confirmation

_SHOWN = 3  # people who accepted something that the first sentence names


def regressed(test: TestComparison) -> bool:
    """Whether a test is a regression that counts."""
    return test.is_regression


def gates_failed(test: TestComparison) -> tuple[str, ...]:
    """The failed gates of a test that count."""
    return test.head.gates_failed if test.head and test.quarantine is None else ()


def got_worse(test: TestComparison) -> bool:
    """Whether a test needs a reviewer: it regressed, or a required gate failed."""
    return regressed(test) or bool(gates_failed(test))


def accepted(test: TestComparison) -> bool:
    """Whether a test is a regression that somebody accepted, and nothing worse than that."""
    return bool(test.accepted_by) and test.quarantine is None and not gates_failed(test)


def is_undecided(test: TestComparison) -> bool:
    """Whether a fall stays open and nothing worse is known of the test: a gate that failed in most
    samples has failed."""
    return test.change is Change.UNDECIDED and test.quarantine is None and not gates_failed(test)


def aside(test: TestComparison) -> str:
    """Why a test does not count, in plain words: `accepted by ada`; empty for one that does."""
    if test.quarantine:
        held = test.quarantine
        return f"in quarantine until {held.expires}, owner {held.owner}: {held.reason}"
    return f"accepted by {test.accepted_by}" if test.accepted_by else ""


def became(test: TestComparison) -> tuple[str, ...]:
    """What became of a test, in a word; then why it does not count, and what fresh samples said,
    where there is that to say."""
    return tuple(
        filter(None, (confirmation.word(test.change), aside(test), confirmation.words(test)))
    )


def sentences(tests: Iterable[TestComparison], name: Callable[[str], str] = plain) -> str:
    """What must be seen though it does not count, in plain sentences: `Accepted by ada: 2
    regressions.` `name` makes a login ready."""
    all_of = list(tests)
    by = Counter(
        test.accepted_by for test in all_of if test.accepted_by and test.quarantine is None
    )
    held = sum(test.quarantine is not None for test in all_of)
    words = [
        f"Accepted by {name(who)}: {counted(number, 'regression')}."
        for who, number in by.most_common(_SHOWN)
    ]
    words += [f"In quarantine, not counted: {counted(held, 'test')}."] if held else []
    return " ".join(filter(None, [*words, undecided(all_of)]))


def undecided(tests: Iterable[TestComparison]) -> str:
    """How many tests stay open, in a plain sentence; empty when none does."""
    number = sum(map(is_undecided, tests))
    return f"Undecided, not counted: {counted(number, 'test')}." if number else ""
