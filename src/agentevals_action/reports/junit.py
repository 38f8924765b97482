"""`junit.xml`: the tests of head as JUnit XML, for the test reports of Jenkins, GitLab and others.

There is no standard. This is the common part of what pytest writes and of what
https://docs.gitlab.com/ci/testing/unit_test_reports/ and https://github.com/testmoapp/junitxml
describe."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import cut
from agentevals_action.model.comparison import SuiteComparison, TestComparison
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Level
from agentevals_action.model.skill import name_suite
from agentevals_action.reports.view.groups import needs_review
from agentevals_action.reports.view.models import ReportView

_LINE = 300  # characters of a message
_TEXT = 4_000  # characters of a failure's text


def junit(view: ReportView) -> str:
    """The XML: a suite is a `testsuite`, a test a `testcase` with its `file` and `line`. A test
    with the verdict `fail` or a failed gate is a `failure`, an error an `error`, a test in
    quarantine, or that only advisory judges score, `skipped`."""
    root = Element("testsuites", name="agentevals")
    for suite in view.review.suites:
        root.append(_suite(suite))
    for diagnostic in view.review.run.diagnostics(Level.ERROR):
        path = visible(diagnostic.location.path)
        invalid = SubElement(root, "testsuite", name=path, tests="1", failures="0", errors="1")
        case = SubElement(invalid, "testcase", name="suite", classname=path)
        _locate(case, path, diagnostic.location.line)
        message = plain(diagnostic.message, _LINE)
        SubElement(case, "error", type="invalid", message=message)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(suite: SuiteComparison) -> Element:
    element = Element("testsuite", name=visible(name_suite(suite.path)), file=visible(suite.path))
    heads = [(test, test.head) for test in suite.tests if test.head]
    cases = [_case(suite.path, test, head) for test, head in heads]
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
    element.set("tests", str(len(cases)))
    if suite.head and suite.head.duration_ms is not None:
        element.set("time", _seconds(suite.head.duration_ms))
    if heads:
        element.set("timestamp", visible(min(head.timestamp for _, head in heads)))
    element.extend(cases)
    return element


def _case(suite: str, test: TestComparison, head: TestResult) -> Element:
    case = Element("testcase", name=visible(test.id), classname=visible(suite))
    _locate(case, head.path or head.eval_path, head.line)
    if head.duration_ms is not None:
        case.set("time", _seconds(head.duration_ms))
    trace = head.trace_summary
    facts = {
        "score": head.score,
        "cost-usd": trace.cost_usd if trace else None,
        "change": test.change.value if test.base else None,
        "base-verdict": test.base.state if test.base else None,
        "base-score": test.base.score if test.base else None,
    }
    properties = SubElement(case, "properties")
    for name, value in facts.items():
        if value is not None:
            SubElement(properties, "property", name=name, value=str(value))
    if len(properties) == 0:
        case.remove(properties)
    if held := test.quarantine:
        reason = f"in quarantine until {held.expires}: {held.reason}"
        SubElement(case, "skipped", message=plain(reason, _LINE))
    elif head.error and head.is_advisory:
        SubElement(case, "skipped", message=plain(head.error.message, _LINE))
    elif head.error or head.verdict is None:
        kind, message = (head.error.kind, head.error.message) if head.error else ("error", "")
        SubElement(case, "error", type=plain(kind), message=plain(message, _LINE))
    elif head.verdict == "fail" or head.gates_failed:
        _fail(case, test, head)
    return case


def _fail(case: Element, test: TestComparison, head: TestResult) -> None:
    gates = [f"required gate {gate} failed" for gate in head.gates_failed]
    reasons = [*gates, *(f"missed: {miss}" for miss in head.misses)]
    kind = "regression" if needs_review(test) and test.base else head.verdict or "error"
    message = plain(reasons[0] if reasons else f"score {head.score}", _LINE)
    failure = SubElement(case, "failure", type=kind, message=message)
    answer = ["", "answer:", head.candidate_answer] if head.candidate_answer else []
    text = "\n".join([*reasons, *answer])
    failure.text = visible(cut(text, _TEXT))


def _locate(case: Element, path: str, line: int) -> None:
    case.set("file", visible(path))
    case.set("line", str(line))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"
