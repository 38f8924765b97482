"""Annotations: what failed, on the line that declares it."""

from collections.abc import Iterator
from dataclasses import dataclass

from agentevals_action.escaping import plain
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.github_limits import ANNOTATION_TITLE
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.report import Annotation
from agentevals_action.model.result import TestResult
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.models import ListedTest, ReportView

_MISSES = 5
_LINE = 500  # characters


def annotations(view: ReportView, limit: int) -> tuple[tuple[Annotation, ...], int]:
    """At most `limit` annotations, failures first, and how many more there are.

    A failure for each error of a suite and each failed gate, a warning for a test that passes only
    with the changed evaluators, for a regression without a failed gate and for an error on head.
    Quarantined, accepted, flaky and undecided tests have none, because they need no correction."""
    failures = [*invalid_suites(view), *(one.annotation for one in failed_gates(view))]
    found = [*failures, *_passed_by_edits(view), *_warnings(view)]
    return tuple(found[:limit]), max(0, len(found) - limit)


@dataclass(frozen=True)
class FailedGate:
    """A failed gate that counts: the path of its suite, its test, its name, and its annotation."""

    suite: str
    test: str
    gate: str
    annotation: Annotation


def invalid_suites(view: ReportView) -> Iterator[Annotation]:
    """An annotation for each error of a suite or of the configuration."""
    return map(_invalid, view.review.invalid)


def _invalid(one: Diagnostic) -> Annotation:
    what = "The configuration" if one.location.path == FILE else "The suite"
    message = plain("; ".join(filter(None, (one.problem, one.advice))), 4 * _LINE)
    title = f"{what} is invalid"
    return Annotation(one.location.path, one.location.line, "failure", title, message)


def failed_gates(view: ReportView) -> Iterator[FailedGate]:
    """The failed gates of tests that are not in quarantine."""
    for one in view.tests:
        test, head = one.comparison, one.comparison.head
        if head is None or test.quarantine:
            continue
        rates = confirmation.gate_rates(test)
        locations = {gate.name: (gate.path, gate.line) for gate in head.gates}
        for gate in head.gates_failed:
            path, line = locations.get(gate, _location(head))
            held = " It held on base." if gate in test.gates_lost else ""
            held = f" It {rates[gate]}." if gate in rates else held
            what = f"The required gate {plain(gate)} failed in the test {plain(test.id)}."
            title = plain(f"Required gate failed: {gate}", ANNOTATION_TITLE)
            message = f"{what}{held}{_misses(head)}{_link(view, one)}"
            annotation = Annotation(path, line, "failure", title, message)
            yield FailedGate(one.suite, test.id, gate, annotation)


def _passed_by_edits(view: ReportView) -> Iterator[Annotation]:
    for one in view.passed_by_edits:
        test, head, by_base = one.comparison, one.comparison.head, one.comparison.by_base
        if head is None or by_base is None:
            continue
        locations = {gate.name: (gate.path, gate.line) for gate in head.gates}
        title = plain(f"Passes only with the changed evaluators: {test.id}", ANNOTATION_TITLE)
        what = f"With base's evaluators, the test {plain(test.id)} would"
        for gate in by_base.result.gates_failed:
            path, line = locations.get(gate, _location(head))
            too = " It failed on base too." if gate in by_base.failed_on_base else ""
            message = f"{what} fail the required gate {plain(gate)}.{too}"
            message += f"{_misses(by_base.result)}{_link(view, one)}"
            yield Annotation(path, line, "warning", title, message)
        if not by_base.result.gates_failed:
            message = f"{what} be {by_base.result.verdict}."
            message += f"{_misses(by_base.result)}{_link(view, one)}"
            yield Annotation(*_location(head), "warning", title, message)


def _warnings(view: ReportView) -> Iterator[Annotation]:
    for one in view.tests:
        test, head = one.comparison, one.comparison.head
        if head is None or test.quarantine:
            continue
        path, line = _location(head)
        if test.is_regression and not head.gates_failed:
            before = f"{test.base.verdict} → " if test.base and test.base.verdict else ""
            evidence = confirmation.describe(test)
            evidence = f" It {plain(evidence, _LINE)}." if evidence else ""
            what = f"The test {plain(test.id)} regressed: {before}{head.verdict}."
            title = plain(f"Regressed: {test.id}", ANNOTATION_TITLE)
            message = f"{what}{evidence}{_misses(head)}{_link(view, one)}"
            yield Annotation(path, line, "warning", title, message)
        if head.error:
            message = plain(f"{head.error.kind} error: {head.error.message}", 4 * _LINE)
            message += _link(view, one)
            title = plain(f"Error: {test.id}", ANNOTATION_TITLE)
            yield Annotation(path, line, "warning", title, message)


def _location(head: TestResult) -> tuple[str, int]:
    return head.path or head.eval_path, head.line


def _misses(head: TestResult) -> str:
    left = len(head.misses) - _MISSES
    lines = [f"\n- missed: {plain(miss, _LINE)}" for miss in head.misses[:_MISSES]]
    return "".join([*lines, f"\n- … and {left:,} more" if left > 0 else ""])


def _link(view: ReportView, one: ListedTest) -> str:
    url = view.links.report_test(one.suite, one.comparison.id)
    return f"\nIn the report: {url}" if url else ""
