"""Pure: what does not count against a change and why: tests in quarantine, regressions that
somebody accepted."""

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentevals_action.model import path_patterns
from agentevals_action.model.comparison import Change, SuiteComparison, TestComparison
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantine, Quarantines
from agentevals_action.model.result import SuiteSummary, TestResult

_VERDICTS = (
    ("pass", "pass"),
    ("borderline", "borderline"),
    ("fail", "fail"),
    ("error", "in error"),
    ("gone", "gone"),
)


def covers(entry: Quarantine, suite: str, test: str) -> bool:
    """Whether an entry speaks of a test, by its id and its suite's path."""
    return _covers_suite(entry, suite) and _covers_test(entry, test)


def entry_for(entries: Iterable[Quarantine], suite: str, test: str) -> Quarantine | None:
    """The first entry that speaks of a test."""
    return next((entry for entry in entries if covers(entry, suite, test)), None)


def apply(
    suites: Iterable[SuiteComparison],
    quarantines: Quarantines,
    acceptance: Acceptance | None = None,
) -> tuple[SuiteComparison, ...]:
    """The same comparisons with what is waived marked: tests in quarantine, and regressions where
    there is an acceptance.

    A regression that lost a required gate is never accepted: the gate failed."""
    return tuple(_applied(suite, quarantines, acceptance) for suite in suites)


def wants_acceptance(suites: Iterable[SuiteComparison]) -> bool:
    """Whether there is anything that an acceptance would change, so that a host need not be asked
    for nothing."""
    return any(_acceptable(test) for suite in suites for test in suite.tests)


def counting(suites: Iterable[SuiteComparison]) -> tuple[SuiteComparison, ...]:
    """What counts for the outcome: tests in quarantine are out of each suite and of its totals, and
    a suite of which nothing is left is out as a whole. A suite that never had a test stays."""
    return tuple(left for suite in suites if (left := _counting(suite)) is not None)


def blocks(test: TestComparison) -> bool:
    """Whether a test is a regression that nobody accepted."""
    return test.change is Change.REGRESSED and not test.accepted_by


def told(suites: Sequence[SuiteComparison], label: str) -> tuple[str, ...]:
    """What was waived, a plain sentence each without a full stop: regressions by who accepted them,
    tests by their entry."""
    tests = [test for suite in suites for test in suite.tests]
    accepted = Counter(test.accepted_by for test in tests if test.accepted_by)
    by_entry: dict[Quarantine, list[TestComparison]] = {}
    for test in tests:
        if test.quarantine:
            by_entry.setdefault(test.quarantine, []).append(test)
    regressions = (
        f"{_counted(number, 'regression')} accepted by @{who} (label `{label}`)"
        for who, number in accepted.items()
    )
    return (*regressions, *(_told_entry(entry, held) for entry, held in by_entry.items()))


def pending(quarantines: Quarantines) -> tuple[Diagnostic, ...]:
    """A warning for each entry of head that base does not have as it stands there: it does not hold
    in this review."""
    if quarantines.base is None:
        return ()
    known = {_terms(entry) for entry in quarantines.base}
    problem = "this quarantine is not on the base like this, so it does not hold in this review"
    return tuple(
        Diagnostic(entry.location, problem, "it takes effect once it is merged")
        for entry in quarantines.head
        if _terms(entry) not in known
    )


def _terms(entry: Quarantine) -> Quarantine:
    """What an entry says, wherever it stands."""
    return replace(entry, location=Location(FILE))


def unmatched(
    entries: Sequence[Quarantine],
    suites: Iterable[tuple[str, Iterable[str]]],
    unread: Sequence[str] = (),
) -> tuple[Diagnostic, ...]:
    """A warning for each entry that covers no test. `suites` are the paths of all suites with the
    ids of their tests; `unread` are paths of suites whose tests are not known, of which an entry
    may well speak."""
    left = [entry for entry in entries if not any(_covers_suite(entry, path) for path in unread)]
    for path, tests in suites:
        if not left:
            break
        asked = [entry for entry in left if _covers_suite(entry, path)]
        for test in tests if asked else ():
            asked = [entry for entry in asked if not _covers_test(entry, test)]
            if not asked:
                break
        left = [entry for entry in left if entry in asked or not _covers_suite(entry, path)]
    return tuple(
        Diagnostic(
            entry.location,
            "this quarantine covers no test",
            "mend `tests` and `suites`, or remove it",
        )
        for entry in left
    )


def _applied(
    suite: SuiteComparison, quarantines: Quarantines, acceptance: Acceptance | None
) -> SuiteComparison:
    head = [entry for entry in quarantines.head if _covers_suite(entry, suite.path)]
    # Under the path that base knows: moved below a path that is in quarantine there, a suite would
    # be by its own doing.
    before = suite.base_path or suite.path
    base = (
        None
        if quarantines.base is None
        else [entry for entry in quarantines.base if _covers_suite(entry, before)]
    )
    return replace(
        suite, tests=tuple(_marked(test, head, base, acceptance) for test in suite.tests)
    )


def _marked(
    test: TestComparison,
    head: Sequence[Quarantine],
    base: Sequence[Quarantine] | None,
    acceptance: Acceptance | None,
) -> TestComparison:
    held = _first(head, test.id)
    if held and base is not None:
        held = _first(base, test.id)
    if held:
        return replace(test, quarantine=held)
    return replace(test, accepted_by=acceptance.by) if acceptance and _acceptable(test) else test


def _acceptable(test: TestComparison) -> bool:
    return test.change is Change.REGRESSED and not test.gates_lost and not test.quarantine


def _first(entries: Iterable[Quarantine], test: str) -> Quarantine | None:
    return next((entry for entry in entries if _covers_test(entry, test)), None)


def _covers_suite(entry: Quarantine, suite: str) -> bool:
    return not entry.suites or path_patterns.selected(suite, entry.suites)


def _covers_test(entry: Quarantine, test: str) -> bool:
    covered = False
    for pattern in entry.tests:
        bare = pattern.removeprefix("!")
        if test == bare or fnmatch.fnmatchcase(test, bare):
            covered = bare == pattern
    return covered


def _counting(suite: SuiteComparison) -> SuiteComparison | None:
    out = [test for test in suite.tests if test.quarantine]
    if not out:
        return suite
    head = _without(suite.head, (test.head for test in out))
    if suite.head and head and suite.head.total and not head.total:
        return None
    left = tuple(test for test in suite.tests if not test.quarantine)
    return replace(
        suite, tests=left, head=head, base=_without(suite.base, (test.base for test in out))
    )


def _without(
    summary: SuiteSummary | None, results: Iterable[TestResult | None]
) -> SuiteSummary | None:
    """The totals without some of the results; what is not counted in tests is left as it is."""
    if summary is None:
        return None
    verdicts = Counter(result.verdict or "error" for result in results if result)
    passed, errored = summary.passed - verdicts["pass"], summary.errored - verdicts["error"]
    total = summary.total - verdicts.total()
    changed = {
        "total": total,
        "passed": passed,
        "borderline": summary.borderline - verdicts["borderline"],
        "failed": summary.failed - verdicts["fail"],
        "errored": errored,
        "pass_rate": passed / (total - errored) if total > errored else None,
    }
    return replace(summary, **changed)


def _told_entry(entry: Quarantine, tests: Sequence[TestComparison]) -> str:
    verdicts = Counter((test.head.verdict or "error") if test.head else "gone" for test in tests)
    words = ", ".join(
        f"{verdicts[verdict]} {word}" for verdict, word in _VERDICTS if verdicts[verdict]
    )
    does = "does" if len(tests) == 1 else "do"
    owner, reason = " ".join(entry.owner.split()), " ".join(entry.reason.split())
    return f"{_counted(len(tests), 'test')} in quarantine {does} not count ({words}): owner {owner}, until {entry.expires}, {reason}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
