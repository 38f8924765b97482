"""Builds the view of a review: which test belongs to which group, and which is first."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentevals_action.model.comparison import (
    ChangeKind,
    Outcome,
    Review,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.run import Level
from agentevals_action.reports.view import cost
from agentevals_action.reports.view.groups import GROUPS, needs_review
from agentevals_action.reports.view.models import (
    Links,
    ReportedTest,
    ReportView,
    number_turns,
    order_by_conversation,
)

FINE = 2  # the rank of a suite that needs nobody


def build_view(review: Review, links: Links | None = None) -> ReportView:
    """Classifies the tests of a review."""
    listed = [ReportedTest(suite.path, test) for suite in review.suites for test in suite.tests]
    turns = number_turns(listed)
    tests = order_by_conversation(
        replace(test, turn=turns.get((test.suite, test.comparison.id)))
        if test.comparison.head
        else test
        for test in listed
    )
    positions = {suite.path: place for place, suite in enumerate(worst_first(review.suites))}
    by_severity = order_by_conversation(
        sorted(tests, key=lambda test: (positions[test.suite], severity(test.comparison)))
    )
    return ReportView(
        review=review,
        links=links or Links(),
        tests=tests,
        groups={
            group.key: tuple(test for test in by_severity if group.contains(test.comparison))
            # Without a base, all tests would be new.
            if group.key != "new" or review.has_base
            else ()
            for group in GROUPS
        },
        spending=cost.spent_by_review(review),
        notices=review.run.sentences(Level.NOTICE),
    )


def rank(suite: SuiteComparison) -> int:
    """0: a test needs a reviewer, or a condition is not met; 1: not all tests pass,
    or something is unknown; 2: all is fine."""
    conditions = {variant.outcome for variant in suite.variants}
    conditions |= {increase.outcome for increase in suite.increases}
    conditions |= {pairwise.outcome for pairwise in suite.pairwise}
    if any(map(needs_review, suite.tests)) or Outcome.FAILED in conditions:
        return 0
    head = suite.head
    is_known = not suite.run.base.problem and Outcome.INCONCLUSIVE not in conditions
    return FINE if is_known and head and head.total and head.passed == head.total else 1


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
