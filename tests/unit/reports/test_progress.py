"""Progress on standard error."""

import pytest

from agentevals_action.reports import progress
from tests.support import results


def test_lines__at_the_beginning_and_the_end_of_each_part(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.show_progress() as shown:
        shown.expect("head", 2)
        shown.expect("base", 1)
        for side in ("head", "base", "head"):
            shown.advance(side, results.result("a"))
        shown.confirm(2, 0, 0)
        for settled, samples in ((0, 3), (1, 3), (1, 8), (2, 8)):
            shown.confirm(2, settled, samples)
    assert capsys.readouterr().err.splitlines() == [
        "head: 2 of 2 tests, base: 1 of 1 test",
        "checking 2 tests whose verdict dropped …",
        "checked 2 of 2 tests whose verdict dropped, 8 fresh samples",
    ]


def test_lines__a_runner_is_named_and_its_tests_are_counted_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.show_progress() as shown, shown.running("base", "evals/a.py", "pytest"):
        with shown.running("head", "evals/a.py", "py\n::error::x"):
            pass
        shown.found("head", [results.result("a"), results.result("b")])
    assert capsys.readouterr().err.splitlines() == [
        "base: `pytest` runs evals/a.py",
        "head: `py ::error::x` runs evals/a.py",
        "head: 2 of 2 tests",
    ]
