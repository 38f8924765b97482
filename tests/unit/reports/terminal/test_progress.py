"""Progress on standard error."""

import pytest

from agentevals_action.execution.executor import SuiteEnded, SuiteStarted
from agentevals_action.reports.terminal import progress
from tests.support import results

SUBJECT = "whose verdict dropped"


def test_lines__at_the_beginning_and_the_end_of_each_part(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.show_progress() as shown:
        shown.handle("head", SuiteStarted("EVAL.yaml", 2))
        shown.handle("base", SuiteStarted("EVAL.yaml", 1))
        for side in ("head", "base", "head"):
            shown.handle(side, results.result("a"))
        shown.confirm(2, 0, 0, SUBJECT)
        for settled, samples in ((0, 3), (1, 3), (1, 8), (2, 8)):
            shown.confirm(2, settled, samples, SUBJECT)
    assert capsys.readouterr().err.splitlines() == [
        "head: 2 of 2 tests, base: 1 of 1 test",
        "checking 2 tests whose verdict dropped …",
        "checked 2 of 2 tests whose verdict dropped, 8 fresh samples",
    ]


def test_lines__a_runner_is_named_and_its_tests_are_counted_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite = results.result("a").eval_path
    with progress.show_progress() as shown:
        shown.handle("base", SuiteStarted(suite, None, "pytest"))
        shown.handle("head", SuiteStarted(suite, None, "py\n::error::x"))
        for event in (results.result("a"), results.result("b"), SuiteEnded(suite)):
            shown.handle("head", event)
        shown.handle("base", SuiteEnded(suite))
    assert capsys.readouterr().err.splitlines() == [
        f"base: `pytest` runs {suite}",
        f"head: `py ::error::x` runs {suite}",
        "head: 2 of 2 tests",
    ]
