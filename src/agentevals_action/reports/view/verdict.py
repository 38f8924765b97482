"""The outcome of a review in one sentence."""

from collections import Counter

from agentevals_action.formatting import counted, joined
from agentevals_action.model.comparison import ChangeKind, TestComparison, describe_worse
from agentevals_action.model.review import Outcome, Review
from agentevals_action.reports.view import edits, waivers
from agentevals_action.reports.view.models import Removal, ReportView

#: Reasons that fit into the sentence.
REASONS_IN_SENTENCE = 3

_ALERTS = {Outcome.FAILED: "CAUTION", Outcome.INVALID: "CAUTION", Outcome.INCONCLUSIVE: "WARNING"}
_VERDICTS = {"pass": "pass", "borderline": "borderline", "fail": "fail", "error": "in error"}


def sentence(review: Review) -> str:
    """The sentence that follows `Failed: `; plain text."""
    if review.decision.outcome is Outcome.PASSED:
        return f"{_passed(review)}."
    parts = list(review.decision.reasons) or ["no reason was given"]
    if len(parts) > REASONS_IN_SENTENCE:
        more = counted(len(parts) - REASONS_IN_SENTENCE, "more reason")
        parts = [*parts[:REASONS_IN_SENTENCE], more]
    return f"{joined(parts)}."


def headline(view: ReportView) -> str:
    """The outcome in one plain line, with what was removed and changed, and what does not count."""
    outcome = f"{view.review.decision.outcome.capitalize()}: {view.sentence}"
    waived = waivers.sentences(one.comparison for one in view.tests)
    edited = edits_and_removal(view, edits.quoted)
    return " ".join(filter(None, [view.review.claims, outcome, edited, waived]))


def edits_and_removal(view: ReportView, name: edits.Name) -> str:
    """What passes only by edits, then what was removed and what was changed; `name` escapes the
    name of a gate."""
    by_edits = [one.comparison for one in view.passed_by_edits]
    words = (
        edits.by_edits_sentence(by_edits, name),
        view.removal.sentence,
        edits.sentence(view.edits),
    )
    return " ".join(filter(None, words))


def alert(review: Review, removal: Removal) -> str:
    """GitHub's word for the alert; `IMPORTANT` if the review passed but needs attention."""
    if found := _ALERTS.get(review.decision.outcome):
        return found
    tests = _tests(review)
    waived = any(test.accepted_by or waivers.is_undecided(test) for test in tests)
    edited = any(suite.edits for suite in review.suites)
    if removal.sentence or edited or waived or _is_ignored(review):
        return "IMPORTANT"
    return "TIP" if review.suites else "NOTE"


def _tests(review: Review) -> list[TestComparison]:
    return [test for suite in review.suites for test in suite.tests]


def _is_ignored(review: Review) -> bool:
    """Whether a review passed only because `fail-on` does not contain what failed."""
    return review.decision.conclusion == "neutral" or bool(describe_worse(_tests(review)))


def _passed(review: Review) -> str:
    if not review.suites:
        number = review.suites_in_repository
        known = f" (of {counted(number, 'suite')} in the repository)" if number else ""
        return f"{joined(list(review.decision.reasons)) or 'nothing was run'}{known}"
    tests = _tests(review)
    verdicts: Counter[str] = Counter(test.head.verdict or "error" for test in tests if test.head)
    ran = verdicts.total()
    words = [f"{verdicts[key]} {word}" for key, word in _VERDICTS.items() if verdicts[key]]
    result = "all pass" if verdicts["pass"] == ran else joined(words)
    suites = counted(len(review.suites), "suite")
    compared = _compared(review, tests)
    passed = f"{counted(ran, 'test')} in {suites}, {result}{f'; {compared}' if compared else ''}"
    if _is_ignored(review):
        return f"{passed}. This does not block, because of the input `fail-on`"
    return passed


def _compared(review: Review, tests: list[TestComparison]) -> str:
    if not review.baseline.wanted:
        return "nothing to compare with"
    words = describe_worse(tests)
    # A separate sentence states accepted regressions; "none regressed" would contradict it.
    if not words and not any(test.accepted_by for test in tests):
        words = ["none regressed"]
    improved = sum(test.change is ChangeKind.IMPROVED for test in tests)
    words += [counted(improved, "test", "improved")] if improved else []
    return joined(words)
