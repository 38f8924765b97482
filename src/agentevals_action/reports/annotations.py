"""Remarks on lines of files: what failed, where it is declared."""

from collections.abc import Iterator

from agentevals_action.escaping import plain
from agentevals_action.model.comparison import Review, TestComparison
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.report import Annotation
from agentevals_action.model.result import TestResult
from agentevals_action.reports.view import confirmation, waivers

# https://docs.github.com/en/rest/checks/runs#create-a-check-run
_TITLE_LIMIT = 255
_MISSES = 5
_LINE = 500


def annotations(review: Review, limit: int) -> tuple[tuple[Annotation, ...], int]:
    """At most `limit` remarks, failures before warnings, and how many more there are.

    A failure for every fault of a suite and every failed gate (at the gate's own entry), a warning
    for a regression without a gate and for an error on head. A test in quarantine has none, an
    accepted regression none as such: neither asks for anything to be mended. Nor have flaky and
    undecided tests, as nobody knows of anything that is wrong there; the comment lists them."""
    found = [*_errors(review), *_gates(review), *_warnings(review)]
    return tuple(found[:limit]), max(0, len(found) - limit)


def _errors(review: Review) -> Iterator[Annotation]:
    for diagnostic in review.invalid:
        place = diagnostic.location
        what = "The configuration" if place.path == FILE else "The suite"
        message = plain(
            f"{diagnostic.problem}; {diagnostic.advice}"
            if diagnostic.advice
            else diagnostic.problem,
            4 * _LINE,
        )
        yield Annotation(place.path, place.line, "failure", f"{what} is invalid", message)


def _gates(review: Review) -> Iterator[Annotation]:
    for test, head in _on_head(review):
        rates = confirmation.rates(test)
        places = {gate.name: (gate.path, gate.line) for gate in head.gates}
        for gate in head.gates_failed:
            path, line = places.get(gate, _place(head))
            held = " It held on base." if gate in test.gates_lost else ""
            held = f" It {rates[gate]}." if gate in rates else held
            message = f"The required gate {plain(gate)} failed in the test {plain(test.id)}.{held}{_missed(head)}"
            yield Annotation(
                path, line, "failure", plain(f"Required gate failed: {gate}", _TITLE_LIMIT), message
            )


def _warnings(review: Review) -> Iterator[Annotation]:
    for test, head in _on_head(review):
        path, line = _place(head)
        if waivers.regressed(test) and not head.gates_failed:
            before = f"{test.base.verdict} → " if test.base and test.base.verdict else ""
            sure = confirmation.words(test)
            borne_out = f" It {plain(sure, _LINE)}." if sure else ""
            message = f"The test {plain(test.id)} regressed: {before}{head.verdict}.{borne_out}{_missed(head)}"
            yield Annotation(
                path, line, "warning", plain(f"Regressed: {test.id}", _TITLE_LIMIT), message
            )
        if head.error:
            message = plain(f"{head.error.kind} error: {head.error.message}", 4 * _LINE)
            yield Annotation(
                path, line, "warning", plain(f"Error: {test.id}", _TITLE_LIMIT), message
            )


def _on_head(review: Review) -> Iterator[tuple[TestComparison, TestResult]]:
    for suite in review.suites:
        for test in suite.tests:
            if test.head and not test.quarantine:
                yield test, test.head


def _place(head: TestResult) -> tuple[str, int]:
    return head.path or head.eval_path, head.line


def _missed(head: TestResult) -> str:
    left = len(head.misses) - _MISSES
    lines = [f"\n- missed: {plain(miss, _LINE)}" for miss in head.misses[:_MISSES]]
    return "".join([*lines, f"\n- … and {left:,} more" if left > 0 else ""])
