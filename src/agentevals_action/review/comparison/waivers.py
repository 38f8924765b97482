"""Waivers: tests in quarantine, and regressions that somebody accepted. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentevals_action.formatting import counted
from agentevals_action.model import path_patterns
from agentevals_action.model.comparison import ChangeKind, SuiteComparison, TestComparison
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantine, Quarantines
from agentevals_action.model.result import SKIPPED, STATES
from agentevals_action.model.run import RunSuite
from agentevals_action.results.summary import summarise

_STATES = {**STATES, "gone": "gone"}


def apply(
    suites: Iterable[SuiteComparison],
    quarantines: Quarantines,
    acceptance: Acceptance | None = None,
) -> tuple[SuiteComparison, ...]:
    """The comparisons with the waived tests marked. A regression with a lost required gate is never
    accepted, because the gate failed."""

    def marked(suite: SuiteComparison, test: TestComparison) -> TestComparison:
        if entry := find_quarantine(quarantines, suite.run, test.id):
            return replace(test, quarantine=entry)
        if acceptance and _is_acceptable(suite, test):
            return replace(test, accepted_by=acceptance.by)
        return test

    return tuple(
        replace(suite, tests=tuple(marked(suite, test) for test in suite.tests)) for suite in suites
    )


def find_quarantine(quarantines: Quarantines, suite: RunSuite, test: str) -> Quarantine | None:
    """The entry by which a test is in quarantine."""
    entry = entry_for(quarantines.head, suite.path, test)
    if entry and quarantines.base is not None:
        # By the path on base: a change cannot move a suite into quarantine.
        return entry_for(quarantines.base, suite.base_path, test)
    return entry


def entry_for(entries: Iterable[Quarantine], suite: str, test: str) -> Quarantine | None:
    """The first entry that covers a test, by its suite's path and its id."""
    return next((entry for entry in entries if _covers(entry, suite, test)), None)


def _covers(entry: Quarantine, suite: str, test: str) -> bool:
    """Whether an entry covers the suite, and the last pattern that matches the test includes it."""
    if entry.suites and not path_patterns.selected(suite, entry.suites):
        return False
    return path_patterns.selected_name(test, entry.tests)


def needs_acceptance(suites: Iterable[SuiteComparison]) -> bool:
    """Whether an acceptance would change anything."""
    return any(_is_acceptable(suite, test) for suite in suites for test in suite.tests)


def _is_acceptable(suite: SuiteComparison, test: TestComparison) -> bool:
    """Whether a test regressed, or is unknown because base is invalid or a test skips itself: the
    repair of either must be able to merge."""
    head = test.head
    if head is None:
        return False
    is_worse = _is_worse(test) or test.has_lost_judge
    is_skipped = head.error is not None and head.error.kind == SKIPPED
    is_incomparable = bool(suite.run.base.broken) and test.change is ChangeKind.NOT_COMPARABLE
    is_unknown = is_skipped or (is_incomparable and head.verdict in ("fail", "borderline"))
    return (is_worse or is_unknown) and not test.gates_lost and not test.quarantine


def without_quarantined(suites: Iterable[SuiteComparison]) -> tuple[SuiteComparison, ...]:
    """The suites and their totals without the tests in quarantine. A suite whose tests are all in
    quarantine is left out; a suite that never had a test stays."""
    kept = []
    for suite in suites:
        tests = tuple(test for test in suite.tests if not test.quarantine)
        if len(tests) == len(suite.tests):
            kept.append(suite)
        elif any(test.head for test in tests):
            head, base = (
                summarise(suite.path, suite.run.name, [row for row in rows if row])
                for rows in ([test.head for test in tests], [test.base for test in tests])
            )
            base_summary = base if suite.base else None
            kept.append(replace(suite, tests=tests, head=head, base=base_summary))
    return tuple(kept)


def describe(suites: Sequence[SuiteComparison], label: str) -> tuple[str, ...]:
    """What was waived, one sentence each without a full stop: regressions by who accepted them,
    tests by their quarantine entry."""
    tests = [test for suite in suites for test in suite.tests]
    accepted = Counter((test.accepted_by, _noun(test)) for test in tests if test.accepted_by)
    by_entry: dict[Quarantine, list[TestComparison]] = {}
    for test in tests:
        if test.quarantine:
            by_entry.setdefault(test.quarantine, []).append(test)
    regressions = (
        f"{counted(number, noun)} accepted by @{login} (label `{label}`)"
        for (login, noun), number in accepted.items()
    )
    return (*regressions, *(_describe_entry(entry, waived) for entry, waived in by_entry.items()))


def _noun(test: TestComparison) -> str:
    return "regression" if _is_worse(test) else "test"


def _is_worse(test: TestComparison) -> bool:
    return test.change is ChangeKind.REGRESSED or test.is_unproven


def _describe_entry(entry: Quarantine, tests: Sequence[TestComparison]) -> str:
    verdicts = Counter(test.head.state if test.head else "gone" for test in tests)
    states = ", ".join(
        f"{verdicts[verdict]} {word}" for verdict, word in _STATES.items() if verdicts[verdict]
    )
    does = "does" if len(tests) == 1 else "do"
    owner, reason = " ".join(entry.owner.split()), " ".join(entry.reason.split())
    return (
        f"{counted(len(tests), 'test')} in quarantine {does} not count ({states}): "
        f"owner {owner}, until {entry.expires}, {reason}"
    )


def not_on_base(quarantines: Quarantines) -> tuple[Diagnostic, ...]:
    """A warning for each entry of head that base does not have: it is not in effect yet."""
    if quarantines.base is None:
        return ()
    on_base = {_without_location(entry) for entry in quarantines.base}
    problem = "this quarantine is not on the base like this, so it does not hold in this review"
    return tuple(
        Diagnostic(entry.location, problem, "it takes effect once it is merged")
        for entry in quarantines.head
        if _without_location(entry) not in on_base
    )


def _without_location(entry: Quarantine) -> Quarantine:
    return entry.model_copy(update={"location": Location(FILE)})
