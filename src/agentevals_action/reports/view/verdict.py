"""The verdict in one sentence, and what else must not be overlooked."""

from collections import Counter
from dataclasses import dataclass

from agentevals_action.formatting import counted, joined
from agentevals_action.model.comparison import Change, Outcome, Review, TestComparison
from agentevals_action.reports.view import waivers

#: Reasons that still make one sentence.
IN_SENTENCE = 3

_ALERTS = {Outcome.FAILED: "CAUTION", Outcome.INVALID: "CAUTION", Outcome.INCONCLUSIVE: "WARNING"}


@dataclass(frozen=True)
class Gone:
    """What base has and head has not: paths of suites, tests with their suite, and gates of tests
    that are still there."""

    suites: tuple[str, ...]
    tests: tuple[tuple[str, TestComparison], ...]
    gates: tuple[tuple[str, TestComparison, str], ...]

    def words(self) -> list[str]:
        """What is gone, counted; the gates include those that went with their tests."""
        gates = len(self.gates) + sum(len(test.gates_removed) for _, test in self.tests)
        counts = ((len(self.suites), "suite"), (len(self.tests), "test"), (gates, "required gate"))
        return [counted(number, noun) for number, noun in counts if number]

    def sentence(self) -> str:
        """`2 tests and 1 required gate of the base are gone.`; empty when nothing is."""
        words = self.words()
        alone = len(words) == 1 and words[0].startswith("1 ")
        return f"{joined(words)} of the base {'is' if alone else 'are'} gone." if words else ""


def gone(review: Review) -> Gone:
    """What is gone between base and head."""
    tests = [(suite.path, test) for suite in review.suites for test in suite.tests]
    return Gone(
        suites=review.gone_suites,
        tests=tuple((path, test) for path, test in tests if test.change is Change.REMOVED),
        gates=tuple(
            (path, test, gate)
            for path, test in tests
            if test.change is not Change.REMOVED
            for gate in test.gates_removed
        ),
    )


def reasons(review: Review) -> list[str]:
    """What got worse first, then every other reason for the outcome; plain text."""
    return list(dict.fromkeys([*_worse(review), *review.decision.reasons]))


def sentence(review: Review) -> str:
    """What follows `Failed: `, plain text with a full stop."""
    decision = review.decision
    if decision.outcome is Outcome.PASSED:
        return f"{_passed(review)}."
    parts = reasons(review) or ["no reason was given"]
    if len(parts) > IN_SENTENCE:
        parts = [*parts[:IN_SENTENCE], counted(len(parts) - IN_SENTENCE, "more reason")]
    return f"{joined(parts)}."


def headline(review: Review) -> str:
    """The verdict in one plain line, with what is gone and what does not count."""
    rest = (gone(review).sentence(), waivers.sentences(_tests(review)))
    return " ".join(
        [f"{review.decision.outcome.capitalize()}: {sentence(review)}", *filter(None, rest)]
    )


def alert(review: Review, lost: Gone) -> str:
    """GitHub's alert: what blocks, what cannot be told, what passed but wants a look, and what is
    fine."""
    found = _ALERTS.get(review.decision.outcome)
    if found:
        return found
    if (
        lost.words()
        or _worse(review)
        or any(test.accepted_by or waivers.is_undecided(test) for test in _tests(review))
    ):
        return "IMPORTANT"
    return "TIP" if review.suites else "NOTE"


def _tests(review: Review) -> list[TestComparison]:
    return [test for suite in review.suites for test in suite.tests]


def _worse(review: Review) -> list[str]:
    tests = _tests(review)
    regressed = sum(waivers.regressed(test) for test in tests)
    gates = sum(len(waivers.gates_failed(test)) for test in tests)
    counts = ((regressed, "test", "regressed"), (gates, "required gate", "failed"))
    return [counted(*count) for count in counts if count[0]]


def _passed(review: Review) -> str:
    if not review.suites:
        known = (
            f" (of {counted(review.suites_in_repository, 'suite')} in the repository)"
            if review.suites_in_repository
            else ""
        )
        return f"{joined(list(review.decision.reasons)) or 'nothing was run'}{known}"
    tests = _tests(review)
    verdicts = Counter((test.head.verdict or "error") if test.head else "gone" for test in tests)
    changes = Counter(test.change for test in tests)
    ran = verdicts.total() - verdicts["gone"]
    kinds = (
        ("pass", "pass"),
        ("borderline", "borderline"),
        ("fail", "fail"),
        ("error", "in error"),
    )
    words = [f"{verdicts[verdict]} {word}" for verdict, word in kinds if verdicts[verdict]]
    told = "all pass" if verdicts["pass"] == ran else joined(words)
    compared = _compared(review, changes)
    return f"{counted(ran, 'test')} in {counted(len(review.suites), 'suite')}, {told}{f'; {compared}' if compared else ''}"


def _compared(review: Review, changes: "Counter[Change]") -> str:
    if not review.baseline.wanted:
        return "nothing to compare with"
    worse = _worse(review)
    # An accepted regression is told in a sentence of its own, beside which "none regressed" would
    # be wrong.
    none = [] if any(test.accepted_by for test in _tests(review)) else ["none regressed"]
    better = (
        [counted(changes[Change.IMPROVED], "test", "improved")] if changes[Change.IMPROVED] else []
    )
    return joined([*(worse or none), *better])
