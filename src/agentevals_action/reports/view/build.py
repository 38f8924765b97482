"""Builds the view of a review: which test belongs to which group."""

from collections.abc import Callable

from agentevals_action.formatting import score
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.review import Review
from agentevals_action.reports.view import confirmation, cost, verdict, waivers
from agentevals_action.reports.view.conversations import number_turns
from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.models import (
    ListedTest,
    Removal,
    ReportView,
    order_by_conversation,
)
from agentevals_action.reports.view.ordering import severity, worst_first

_NOT_COMPARED = frozenset({ChangeKind.NOT_COMPARABLE, ChangeKind.BASE_ERROR})
_NO_BASE = _NOT_COMPARED | {ChangeKind.NEW, ChangeKind.QUESTION_CHANGED}
#: Changes whose lists do not mention gates that fail in some samples.
_STEADY = frozenset(
    {ChangeKind.UNCHANGED, ChangeKind.IMPROVED, ChangeKind.STILL_FAILING, ChangeKind.NEW}
)


def build_view(review: Review, links: Links | None = None) -> ReportView:
    """Classifies the tests of a review."""
    heads = [test.head for suite in review.suites for test in suite.tests if test.head]
    turns = number_turns((head.eval_path, head.conversation_id, head.eval_id) for head in heads)
    tests = tuple(
        ListedTest(
            suite.path,
            test,
            turns.get((test.head.eval_path, test.head.eval_id)) if test.head else None,
        )
        for suite in review.suites
        for test in suite.tests
    )
    positions = {suite.path: at for at, suite in enumerate(worst_first(review.suites))}
    counted = [one for one in tests if one.comparison.quarantine is None]

    def group(belongs: Callable[[TestComparison], bool]) -> tuple[ListedTest, ...]:
        return order_by_conversation(one for one in counted if belongs(one.comparison))

    def worst(belongs: Callable[[TestComparison], bool]) -> tuple[ListedTest, ...]:
        found = (one for one in counted if belongs(one.comparison))
        by_suite = sorted(found, key=lambda one: (positions[one.suite], severity(one.comparison)))
        return order_by_conversation(by_suite)

    removal = _removal(review, tests)
    return ReportView(
        review=review,
        links=links or Links(),
        alert=verdict.alert(review, removal),
        sentence=verdict.sentence(review),
        removal=removal,
        edits=tuple(edit for suite in review.suites for edit in suite.edits),
        passed_by_edits=group(lambda test: test.passes_by_edits),
        unscored_by_base=group(
            lambda test: test.by_base is not None and test.by_base.result.verdict is None
        ),
        spending=cost.spent_by_review(review),
        notices=review.notices,
        tests=order_by_conversation(tests),
        regressions=worst(waivers.needs_review),
        failures=worst(_failed_without_base),
        accepted=worst(waivers.is_accepted),
        errors=group(lambda test: test.change is ChangeKind.HEAD_ERROR),
        undecided=group(waivers.is_undecided),
        flaky=group(_is_flaky),
        quarantined=order_by_conversation(one for one in tests if one.comparison.quarantine),
        improved=group(lambda test: test.change is ChangeKind.IMPROVED),
        question_changed=group(lambda test: test.change is ChangeKind.QUESTION_CHANGED),
        new=group(lambda test: test.change is ChangeKind.NEW),
        still_failing=group(lambda test: test.change is ChangeKind.STILL_FAILING),
        not_compared=group(lambda test: test.change in _NOT_COMPARED),
        score_changed=group(_has_another_score),
    )


def _removal(review: Review, tests: tuple[ListedTest, ...]) -> Removal:
    removed = tuple(one for one in tests if one.comparison.change is ChangeKind.REMOVED)
    gates = tuple(
        (one, gate)
        for one in tests
        if one.comparison.change is not ChangeKind.REMOVED
        for gate in one.comparison.gates_removed
    )
    return Removal(review.gone_suites, removed, gates)


def _failed_without_base(test: TestComparison) -> bool:
    failed = test.head is not None and test.head.verdict == "fail"
    return failed and test.change in _NO_BASE and not waivers.needs_review(test)


def _is_flaky(test: TestComparison) -> bool:
    """Whether fresh samples cleared a test, or a gate failed in some samples but not in most."""
    if waivers.needs_review(test):
        return False
    is_steady = test.change in _STEADY
    return test.change is ChangeKind.FLAKY or (is_steady and confirmation.has_unsteady_gate(test))


def _has_another_score(test: TestComparison) -> bool:
    if test.change is not ChangeKind.UNCHANGED or not test.base or not test.head:
        return False
    return score(test.base.score) != score(test.head.score)
