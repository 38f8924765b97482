"""The regressions and failed gates that block, and those that a waiver keeps from blocking."""

from collections import Counter
from collections.abc import Callable, Iterable

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.reports.view import confirmation

_NAMES = 3  # people who accepted regressions that a sentence names


def needs_review(test: TestComparison) -> bool:
    """Whether a test regressed, or a required gate failed, and that counts."""
    return test.is_regression or bool(test.failed_gates)


def is_accepted(test: TestComparison) -> bool:
    """Whether somebody accepted the test's regression, and no gate failed."""
    return bool(test.accepted_by) and test.quarantine is None and not test.failed_gates


def is_undecided(test: TestComparison) -> bool:
    """Whether fresh samples did not decide about a test, and no gate failed."""
    is_open = test.change is ChangeKind.UNDECIDED and not test.quarantine and not test.accepted_by
    return is_open and not test.failed_gates


def describe_change(test: TestComparison) -> tuple[str, ...]:
    """What became of a test, why it does not count, and the result of its confirmation."""
    waived = f"accepted by {test.accepted_by}" if test.accepted_by else ""
    if held := test.quarantine:
        waived = f"in quarantine until {held.expires}, owner {held.owner}: {held.reason}"
    words = (confirmation.change_word(test.change), waived, confirmation.describe(test))
    return tuple(filter(None, words))


def sentences(tests: Iterable[TestComparison], name: Callable[[str], str] = plain) -> str:
    """States what does not count: `Accepted by ada: 2 regressions.` `name` escapes a login."""
    tests = list(tests)
    accepted = (test.accepted_by for test in tests if test.accepted_by and not test.quarantine)
    quarantined = sum(test.quarantine is not None for test in tests)
    words = [
        f"Accepted by {name(who)}: {counted(number, 'regression')}."
        for who, number in Counter(accepted).most_common(_NAMES)
    ]
    if quarantined:
        words.append(f"In quarantine, not counted: {counted(quarantined, 'test')}.")
    return " ".join(filter(None, [*words, undecided_sentence(tests)]))


def undecided_sentence(tests: Iterable[TestComparison]) -> str:
    """`Undecided, not counted: 2 tests.`; empty if there are none."""
    number = sum(is_undecided(test) and not test.is_unproven for test in tests)
    return f"Undecided, not counted: {counted(number, 'test')}." if number else ""
