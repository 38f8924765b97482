"""The groups of tests that reports show: one table, over which the comment, the page, the terminal
and `summary.json` loop. A test can be in several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentevals_action.formatting import counted, counted_error_kinds, joined, plural, score
from agentevals_action.model.comparison import NOT_COMPARED, ChangeKind, TestComparison
from agentevals_action.reports.view import confirmation

Comparisons = Sequence[TestComparison]
#: Where a group is shown: in the comment with its tests, as a list below these tests or as a
#: number, or only on the report page.
Place = Literal["open", "listed", "counted", "page"]

_NO_BASE = NOT_COMPARED | {ChangeKind.NEW, ChangeKind.QUESTION_CHANGED}
#: Changes of tests that are flaky if a gate fails in some of their samples.
_STEADY = frozenset(
    {ChangeKind.UNCHANGED, ChangeKind.IMPROVED, ChangeKind.STILL_FAILING, ChangeKind.NEW}
)


@dataclass(frozen=True)
class Group:
    """Tests of one kind: `label` is for filters (`improved`), `title` counts some (`1 test
    improved`), `note` explains the kind. Tests in quarantine are in no group but their own."""

    key: str
    label: str
    holds: Callable[[TestComparison], bool]
    place: Place = "counted"
    title: Callable[[Comparisons], str] | None = None
    note: str = ""

    def describe(self, tests: Comparisons) -> str:
        """The number of tests, in words."""
        return self.title(tests) if self.title else counted(len(tests), "test", self.label)

    def contains(self, test: TestComparison) -> bool:
        """Whether a test belongs to the group."""
        return (test.quarantine is not None) == (self.key == "quarantined") and self.holds(test)


def needs_review(test: TestComparison) -> bool:
    """Whether a test regressed, or a required gate failed, and that counts."""
    return test.is_regression or bool(test.failed_gates)


def is_accepted(test: TestComparison) -> bool:
    """Whether somebody accepted the test's regression, and no gate failed."""
    return bool(test.accepted_by) and test.quarantine is None and not test.failed_gates


def is_undecided(test: TestComparison) -> bool:
    """Whether fresh samples did not decide about a test, and no gate failed."""
    return _is_open(test) and not test.is_unproven


def _is_unproven(test: TestComparison) -> bool:
    """Whether each fresh sample failed, and these are too few for so many suspects."""
    return _is_open(test) and test.is_unproven


def _is_open(test: TestComparison) -> bool:
    is_open = test.change is ChangeKind.UNDECIDED and not test.accepted_by
    return is_open and test.quarantine is None and not test.failed_gates


def _failed_without_base(test: TestComparison) -> bool:
    failed = test.head is not None and test.head.verdict == "fail"
    return failed and test.change in _NO_BASE and not needs_review(test)


def _is_flaky(test: TestComparison) -> bool:
    """Whether fresh samples cleared a test, or a gate failed in some samples but not in most."""
    if needs_review(test):
        return False
    is_steady = test.change in _STEADY
    return test.change is ChangeKind.FLAKY or (is_steady and confirmation.has_unsteady_gate(test))


def _has_another_score(test: TestComparison) -> bool:
    if test.change is not ChangeKind.UNCHANGED or not test.base or not test.head:
        return False
    return score(test.base.score) != score(test.head.score)


def _is(*changes: ChangeKind) -> Callable[[TestComparison], bool]:
    return lambda test: test.change in changes


def _count(singular: str, many: str) -> Callable[[Comparisons], str]:
    return lambda tests: counted(len(tests), "test", plural(len(tests), singular, many))


def _errors(tests: Comparisons) -> str:
    """Counts the errors by kind: an exhausted budget needs another action than a target."""
    heads = [test.head for test in tests if test.head]
    kinds = [head.error.kind for head in heads if head.error and not head.verdict]
    ended = sum(not head.verdict for head in heads)
    words = [counted(ended, "test", "ended in an error")] if ended else []
    if kinds:
        words[0] += f": {counted_error_kinds(kinds)}"
    if unconfirmed := len(heads) - ended:
        words.append(counted(unconfirmed, "test", "got worse and could not be confirmed"))
    return joined(words)


def _accepted(tests: Comparisons) -> str:
    people = dict.fromkeys(f"`{test.accepted_by}`" for test in tests)
    noun = "regression" if all(test.change is ChangeKind.REGRESSED for test in tests) else "test"
    return f"{counted(len(tests), noun)} accepted by {joined(list(people)[:3])}"


#: The groups in the order of reports.
GROUPS = (
    Group(
        "failedGates", "failed a required gate", lambda test: bool(test.failed_gates), place="open"
    ),
    Group(
        "regressions",
        "regressed without a failed gate",
        lambda test: test.is_regression and not test.failed_gates,
        place="open",
    ),
    Group("unproven", "failed in every fresh sample, and these are too few", _is_unproven, "open"),
    Group("failures", "failed with nothing to compare with", _failed_without_base, place="open"),
    Group("errors", "could not be scored", _is(ChangeKind.HEAD_ERROR), "open", _errors),
    Group(
        "advisory",
        "not scored, because only advisory judges score it",
        _is(ChangeKind.ADVISORY),
        "listed",
        _count(
            "is not scored, because only advisory judges score it",
            "are not scored, because only advisory judges score them",
        ),
    ),
    Group(
        "passedByEdits",
        "passed only with the changed evaluators",
        lambda test: test.passes_by_edits,
        "listed",
        _count("passes only with the changed evaluators", "pass only with the changed evaluators"),
        "Base's evaluators scored head's answers too. A change of evaluators alone does not block.",
    ),
    Group(
        "evaluatorsLost",
        "passed with an evaluator or criterion that failed",
        lambda test: bool(test.evaluators_lost),
        "listed",
        _count(
            "passes with an evaluator or criterion that passed on base and fails on head",
            "pass with evaluators or criteria that passed on base and fail on head",
        ),
        "A test passes with a score of 0.8 or more; with `required: true` an evaluator blocks.",
    ),
    Group("accepted", "accepted", is_accepted, title=_accepted),
    Group(
        "undecided",
        "undecided",
        is_undecided,
        note="not counted: fresh samples could not decide whether the drop is more than noise",
    ),
    Group(
        "flaky",
        "flaky",
        _is_flaky,
        note="not counted: it dropped in some samples, and fresh samples did not confirm it",
    ),
    Group(
        "quarantined",
        "in quarantine",
        lambda test: test.quarantine is not None,
        note="not counted until the entry expires",
    ),
    Group("improved", "improved", _is(ChangeKind.IMPROVED)),
    Group("new", "new", _is(ChangeKind.NEW), title=_count("is new", "are new")),
    Group("removed", "removed", _is(ChangeKind.REMOVED)),
    Group(
        "questionChanged", "not compared: the question changed", _is(ChangeKind.QUESTION_CHANGED)
    ),
    Group("stillFailing", "still failing", _is(ChangeKind.STILL_FAILING)),
    Group("notCompared", "could not be compared", lambda test: test.change in NOT_COMPARED),
    Group(
        "notScoredByBase",
        "could not be scored with base's evaluators",
        lambda test: test.by_base is not None and test.by_base.result.state == "error",
    ),
    Group("scoreMoved", "with another score and the same verdict", _has_another_score, "page"),
)
