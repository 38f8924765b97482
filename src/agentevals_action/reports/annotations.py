"""What failed, on the line that declares it: annotations, and `results.sarif` with the failed gates
and invalid suites as SARIF 2.1.0, ready for code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub reads:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agentevals_action import __version__
from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, shortened
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.result import ErrorInfo, TestResult
from agentevals_action.model.run import Level, is_of_suite
from agentevals_action.reports.markdown.github_limits import ANNOTATION_TITLE
from agentevals_action.reports.publication import Annotation
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.models import ReportedTest, ReportView
from agentevals_action.reports.view.variants import (
    describe_variant,
    failed_variants,
    list_tests,
    name_variant,
)

_MISSES = 5
_LINE = 500  # characters
_OUTPUT = 20  # lines of an error

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST = 5_000  # results; GitHub reads 25,000 and shows 5,000
_RULES = {
    "required-gate": "A required gate of a test failed",
    "invalid-suite": "A suite is invalid",
}


def annotations(view: ReportView, limit: int) -> tuple[tuple[Annotation, ...], int]:
    """At most `limit` annotations, failures first, and how many more there are.

    A failure for each error of a suite, each failed gate and each condition of a variant that is
    not met, a warning for each regression without a failed gate and each error on head; tests on
    the same line with the same error share one. Quarantined, accepted, flaky and undecided tests
    have none, because they need no correction."""
    failures = [
        *invalid_suites(view),
        *(failed.annotation for failed in failed_gates(view)),
        *_failed_conditions(view),
    ]
    listed = [*failures, *_warnings(view)]
    return tuple(listed[:limit]), max(0, len(listed) - limit)


@dataclass(frozen=True)
class FailedGate:
    """A failed gate that counts: the path of its suite, its test, its name, and its annotation."""

    suite: str
    test: str
    gate: str
    annotation: Annotation


def invalid_suites(view: ReportView) -> Iterator[Annotation]:
    """An annotation for each error of a suite or of the configuration."""
    return map(_invalid, view.review.run.diagnostics(Level.ERROR))


def _invalid(diagnostic: Diagnostic) -> Annotation:
    location = diagnostic.location
    what = "The suite" if is_of_suite(diagnostic) else "The configuration"
    message = plain(diagnostic.message, 4 * _LINE)
    return Annotation(location.path, location.line, "failure", f"{what} is invalid", message)


def failed_gates(view: ReportView) -> Iterator[FailedGate]:
    """The failed gates of tests that are not in quarantine."""
    for listed in view.tests:
        test, head = listed.comparison, listed.comparison.head
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
            message = f"{what}{held}{_misses(head)}{_link(view, listed)}"
            annotation = Annotation(path, line, "failure", title, message)
            yield FailedGate(listed.suite, test.id, gate, annotation)


def _failed_conditions(view: ReportView) -> Iterator[Annotation]:
    for suite, comparison in failed_variants(view.review.suites):
        location, name = comparison.run.variant.location, name_variant(comparison.run.variant)
        shown = plain(f"{suite.run.label}, {name}: {describe_variant(comparison)}", 4 * _LINE)
        tests = (f"{title}: {', '.join(ids)}" for title, ids in list_tests(comparison))
        lines = "".join(f"\n- {plain(line, _LINE)}" for line in tests)
        title = f"The condition `must: {comparison.run.variant.must}` is not met"
        yield Annotation(location.path, location.line, "failure", title, shown + lines)


def _warnings(view: ReportView) -> Iterator[Annotation]:
    errors: dict[tuple[str, int, ErrorInfo], list[ReportedTest]] = {}
    for listed in view.tests:
        test, head = listed.comparison, listed.comparison.head
        if head is None or test.quarantine:
            continue
        path, line = _location(head)
        if test.is_regression and not head.gates_failed:
            before = f"{test.base.verdict} → " if test.base and test.base.verdict else ""
            evidence = confirmation.describe(test)
            evidence = f" It {plain(evidence, _LINE)}." if evidence else ""
            what = f"The test {plain(test.id)} regressed: {before}{head.verdict}."
            title = plain(f"Regressed: {test.id}", ANNOTATION_TITLE)
            message = f"{what}{evidence}{_misses(head)}{_link(view, listed)}"
            yield Annotation(path, line, "warning", title, message)
        if head.error and not head.error.is_advisory:
            errors.setdefault((path, line, head.error), []).append(listed)
    for (path, line, error), tests in errors.items():
        name = tests[0].comparison.id if len(tests) == 1 else counted(len(tests), "test")
        lines = shortened(f"{error.kind} error: {error.message}".splitlines(), _OUTPUT)
        message = "\n".join(plain(line, 4 * _LINE) for line in lines) + _link(view, tests[0])
        yield Annotation(path, line, "warning", plain(f"Error: {name}", ANNOTATION_TITLE), message)


def _location(head: TestResult) -> tuple[str, int]:
    return head.path or head.eval_path, head.line


def _misses(head: TestResult) -> str:
    lines = [f"missed: {plain(miss, _LINE)}" for miss in head.misses]
    return "".join(f"\n- {line}" for line in shortened(lines, _MISSES))


def _link(view: ReportView, listed: ReportedTest) -> str:
    url = view.links.report_test(listed.suite, listed.comparison.id)
    return f"\nIn the report: {url}" if url else ""


def sarif(view: ReportView) -> str:
    """The log. The fingerprint of a result consists of its suite, test and gate, so that code
    scanning recognizes it after its line moved."""
    invalid = [
        _result("invalid-suite", annotation, (annotation.path, annotation.message))
        for annotation in invalid_suites(view)
    ]
    gates = [
        _result("required-gate", failed.annotation, (failed.suite, failed.test, failed.gate))
        for failed in failed_gates(view)
    ]
    driver = {
        "name": "agentevals-action",
        "version": __version__,
        "informationUri": "https://github.com/org/agentevals-action",
        "rules": [{"id": key, "shortDescription": {"text": text}} for key, text in _RULES.items()],
    }
    run = {"tool": {"driver": driver}, "results": [*invalid, *gates][:_MOST]}
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _result(rule: str, annotation: Annotation, identity: tuple[str, ...]) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps([rule, *identity]).encode()).hexdigest()
    artifact = {"uri": quote(annotation.path, errors="replace"), "uriBaseId": "%SRCROOT%"}
    location = {"artifactLocation": artifact, "region": {"startLine": max(annotation.line, 1)}}
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": annotation.message},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"agentevals/v1": digest},
    }
