"""The order of suites and tests in reports: the worst first."""

from collections.abc import Iterable, Sequence

from agentevals_action.model.comparison import ChangeKind, SuiteComparison, TestComparison
from agentevals_action.reports.view.waivers import needs_review

FINE = 2  # the rank of a suite that needs nobody


def rank(suite: SuiteComparison) -> int:
    """0: a test needs a reviewer; 1: not all tests pass, or base is missing; 2: all is fine."""
    if any(map(needs_review, suite.tests)):
        return 0
    head = suite.head
    is_fine = head and head.total and head.passed == head.total and not suite.problem
    return FINE if is_fine else 1


def severity(test: TestComparison) -> int:
    """From 0 (a required gate that held on base failed) to 3 (no regression)."""
    if test.change is not ChangeKind.REGRESSED:
        return 3
    if test.gates_lost:
        return 0
    return 1 if test.head and test.head.verdict == "fail" else 2


def worst_first(suites: Iterable[SuiteComparison]) -> Sequence[SuiteComparison]:
    """Suites by their rank, then their worst test, then the number of tests that need a
    reviewer."""

    def badness(suite: SuiteComparison) -> tuple[int, int, int]:
        worse = [severity(test) for test in suite.tests if needs_review(test)]
        return rank(suite), min(worse, default=3), -len(worse)

    return sorted(suites, key=badness)
