"""JUnit XML, read back by a reader of its own."""

from xml.etree import ElementTree

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.comparison import Review
from agentevals_action.reports.junit import junit
from agentevals_action.reports.view.build import build_view
from tests.conftest import Golden
from tests.support import reviews

#: What the schema of Jenkins (junit-10.xsd of its xunit plugin) requires and allows, with what
#: pytest and GitLab add to a case: its place and its properties.
_REQUIRED = {
    "testsuites": set(),
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
}
_ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "file"},
    "testcase": {"name", "classname", "time", "file", "line"},
}


def _xml(review: Review) -> str:
    return junit(build_view(review, reviews.LINKS))


@pytest.mark.parametrize("name", reviews.SMALL)
def test_junit__has_the_structure_that_readers_accept(name: str) -> None:
    root = ElementTree.fromstring(_xml(reviews.REVIEWS[name]()))
    for element in root.iter():
        if element.tag in _ALLOWED:
            assert set(element.attrib) >= _REQUIRED[element.tag]
            assert set(element.attrib) <= _ALLOWED[element.tag]
    for suite in root:
        cases = list(suite)
        assert int(suite.get("tests", "")) == len(cases)
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(key, "0")) == sum(case.find(tag) is not None for case in cases)
    assert int(root.get("tests", "")) == len(root.findall("testsuite/testcase"))


def test_junit__as_junitparser_reads_it() -> None:
    xml = junitparser.JUnitXml.fromstring(_xml(reviews.regression_and_gate()).encode())
    suite = next(iter(xml))
    cases = {case.name: case for case in suite}
    failed = cases["refund-over-limit"]
    assert [type(element).__name__ for element in failed.result] == ["Failure"]
    assert failed.result[0].message == "required gate no-unapproved-refund failed"
    assert "I have refunded 2,400 EUR" in failed.result[0].text
    properties = {
        element.get("name"): element.get("value") for element in failed._elem.iter("property")
    }
    assert properties["base-verdict"] == "pass"
    assert cases["greets-by-name"].result == []  # borderline on head: not failed


def test_junit__waived_and_errors() -> None:
    waived = ElementTree.fromstring(_xml(reviews.waived_alone()))
    assert int(waived.get("skipped", "")) == len(waived.findall(".//skipped")) > 0
    invalid = ElementTree.fromstring(_xml(reviews.invalid_suite()))
    assert int(invalid.get("errors", "")) == len(invalid.findall(".//error")) > 0


def test_junit__what_a_runner_does_not_report_is_left_out() -> None:
    root = ElementTree.fromstring(_xml(reviews.runners()))
    rich, bare, *_ = root
    assert rich.get("time") == "1.680"
    assert bare.get("time") is None
    failed = bare[0]
    assert failed.get("time") is None
    assert failed.findtext("failure") == "missed: assert 'Hallo' in 'Hello'"


def test_junit__as_people_read_it(golden: Golden) -> None:
    golden.check("junit.xml", _xml(reviews.regression_and_gate()))


@given(st.text(st.characters(), max_size=50))
def test_junit__any_text_can_be_read_back(text: str) -> None:
    result = reviews.result("case", "fail", answer=text, misses=(text,), path=f"evals/{text}")
    junitparser.JUnitXml.fromstring(
        _xml(reviews.review(reviews.compared((result,), (result,)))).encode("utf-8", "replace")
    )
