"""The outcome of a review in one sentence, and what became of a test, in plain text.

Names stand in backticks, which `escaping.prose` makes code."""

from collections import Counter
from collections.abc import Sequence

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, cut_line, joined, plural
from agentevals_action.model.comparison import (
    NOT_COMPARED,
    ChangeKind,
    Outcome,
    Review,
    TestComparison,
    describe_worse,
)
from agentevals_action.model.result import STATES
from agentevals_action.model.run import Edit, EditKind
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.confirmation import change_word
from agentevals_action.reports.view.groups import GROUPS
from agentevals_action.reports.view.judges import worse_answers
from agentevals_action.reports.view.models import ReportView

#: Reasons that fit into the sentence.
REASONS_IN_SENTENCE = 3

_REASON = 200  # characters of the reason why tests could not be compared
_ALERTS = {Outcome.FAILED: "CAUTION", Outcome.INVALID: "CAUTION", Outcome.INCONCLUSIVE: "WARNING"}
#: Groups that the sentence names, because a reader must know them before a merge.
_NAMED = ("passedByEdits", "accepted", "quarantined", "undecided")


def headline(view: ReportView) -> str:
    """The outcome in one line: `Failed: 2 tests regressed; 1 suite of the base was removed.`"""
    outcome = view.review.decision.outcome.capitalize()
    return " ".join(filter(None, (view.review.run.claims, f"{outcome}: {sentence(view)}")))


def sentence(view: ReportView) -> str:
    """The sentence that follows `Failed: `: the reasons, then what the change removes and edits,
    and what does not count."""
    review = view.review
    if review.decision.outcome is Outcome.PASSED:
        reasons = [_passed(review)]
    else:
        reasons = list(review.decision.reasons) or ["no reason was given"]
        if len(reasons) > REASONS_IN_SENTENCE:
            more = counted(len(reasons) - REASONS_IN_SENTENCE, "more reason")
            reasons = [*reasons[:REASONS_IN_SENTENCE], more]
    return f"{'; '.join([*reasons, *_remarks(view)])}."


def _remarks(view: ReportView) -> list[str]:
    groups = {group.key: group for group in GROUPS}
    named = {
        key: groups[key].describe([test.comparison for test in view.groups[key]])
        for key in _NAMED
        if view.groups[key]
    }
    by_edits = named.pop("passedByEdits", "")
    first = (_lost(view), _advisory(view), by_edits, worse_answers(view.review.suites))
    return list(filter(None, (*first, removed(view), edited(view.edits), *named.values())))


def _advisory(view: ReportView) -> str:
    number = len(view.advisory_judges)
    verb = plural(number, "is advisory and decides", "are advisory and decide")
    return counted(number, "judge", f"{verb} nothing") if number else ""


def _lost(view: ReportView) -> str:
    number = sum(test.is_lost for test in _tests(view.review))
    words = counted(number, "test", "passed on base and")
    fails = plural(number, "fails", "fail")
    return f"{words} {fails} on head, and cannot be compared" if number else ""


def removed(view: ReportView) -> str:
    """`2 tests and 1 required gate of the base were removed`; empty if nothing was."""
    kinds: list[str] = [removal.kind for removal in view.removals]
    for removal in view.removals:
        if removal.kind == "test" and removal.test:
            kinds += ["required gate"] * len(removal.test.comparison.gates_removed)
    return _count_kinds(kinds, " of the base", "removed")


def edited(edits: Sequence[Edit]) -> str:
    """`2 required gates and 1 target were changed`; empty without edits."""
    kinds = sorted((edit.kind for edit in edits), key=list(EditKind).index)
    return _count_kinds(kinds, "", "changed")


def _count_kinds(kinds: Sequence[str], of: str, verb: str) -> str:
    words = joined([counted(number, kind) for kind, number in Counter(kinds).items()])
    return f"{words}{of} {plural(len(kinds), 'was', 'were')} {verb}" if kinds else ""


def describe_edit(edit: Edit) -> str:
    """``required gate `safe` of 2 tests`` changed."""
    of = ""
    if edit.tests and edit.kind is not EditKind.TEST:
        is_one = len(edit.tests) == 1
        of = f" of {f'`{plain(edit.tests[0])}`' if is_one else counted(len(edit.tests), 'test')}"
    return f"{edit.kind} `{plain(edit.name)}`{of} {edit.action}"


def verdicts(test: TestComparison) -> str:
    """`pass → fail`, or the verdict of the only side."""
    head = test.head.state if test.head else "removed"
    return f"{test.base.state} → {head}" if test.base else head


def describe_change(test: TestComparison) -> tuple[str, ...]:
    """What became of a test, why it does not count, and the result of its confirmation."""
    waived = f"accepted by {test.accepted_by}" if test.accepted_by else ""
    if held := test.quarantine:
        waived = f"in quarantine until {held.expires}, owner {held.owner}: {held.reason}"
    lost = [f"`{name}`" for name in test.evaluators_lost]
    words = (
        change_word(test.change),
        waived,
        confirmation.describe(test),
        _by_edits(test),
        f"{joined(lost)} passed on base and failed on head" if lost else "",
    )
    return tuple(filter(None, words))


def _by_edits(test: TestComparison) -> str:
    if test.by_base is None or not test.passes_by_edits:
        return ""
    gates = [f"`{gate}`" for gate in test.by_base.result.gates_failed]
    would = f"would fail {joined(gates)}" if gates else f"would be {test.by_base.result.verdict}"
    return f"passes only with the changed evaluators: with base's it {would}"


def alert(view: ReportView) -> str:
    """GitHub's word for the alert; `IMPORTANT` if the review passed but needs attention."""
    if word := _ALERTS.get(view.review.decision.outcome):
        return word
    if _lost(view):
        return "WARNING"
    if _remarks(view) or _is_ignored(view.review):
        return "IMPORTANT"
    return "TIP" if view.review.suites else "NOTE"


def _tests(review: Review) -> list[TestComparison]:
    return [test for suite in review.suites for test in suite.tests]


def _is_ignored(review: Review) -> bool:
    """Whether a review passed only because `fail-on` does not contain what failed."""
    return review.decision.conclusion == "neutral" or bool(describe_worse(_tests(review)))


def _passed(review: Review) -> str:
    if not review.suites:
        number = review.run.suites_in_repository
        of_all = f" (of {counted(number, 'suite')} in the repository)" if number else ""
        return f"{joined(list(review.decision.reasons)) or 'nothing was run'}{of_all}"
    tests = _tests(review)
    verdicts = Counter(test.head.state for test in tests if test.head)
    ran = verdicts.total()
    words = [f"{verdicts[key]} {word}" for key, word in STATES.items() if verdicts[key]]
    result = "all pass" if verdicts["pass"] == ran else joined(words)
    suites = counted(len(review.suites), "suite")
    parts = [f"{counted(ran, 'test')} in {suites}, {result}", _compared(review, tests)]
    if _is_ignored(review):
        parts.append("this does not block, because of the input `fail-on`")
    return "; ".join(filter(None, parts))


def _compared(review: Review, tests: list[TestComparison]) -> str:
    if not review.run.baseline.wanted:
        return "nothing to compare with"
    words = describe_worse(tests)
    heads = [test.head for test in tests if test.head]
    reasons = [test.reason for test in tests if test.change in NOT_COMPARED]
    unknown = len(reasons)
    # The sentence names accepted regressions; "none regressed" would contradict them.
    if not words and not any(test.accepted_by for test in tests) and unknown < len(heads):
        words = ["none regressed"]
    if reasons:
        reason = cut_line(Counter(reasons).most_common(1)[0][0], _REASON)
        why = f" ({reason})" if reason else ""
        words.append(counted(unknown, "test", f"could not be compared with the base{why}"))
    improved = sum(test.change is ChangeKind.IMPROVED for test in tests)
    words += [counted(improved, "test", "improved")] if improved else []
    return "; ".join(words)
