"""The report page as a file: its policy, its data, what a reader without JavaScript sees."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.comparison import Review
from agentevals_action.model.result import TestResult
from agentevals_action.reports.page import page_data
from agentevals_action.reports.page.layout import markdown_blocks, markdown_line
from agentevals_action.reports.page.report_page import report_page
from agentevals_action.reports.view.build import build_view
from tests.conftest import Golden
from tests.support import reviews
from tests.support.html_page import HtmlPage

_TAGS_OF_TEXT = {"a", "br", "code", "em", "span", "strong", "sub"}


def _page(review: Review) -> tuple[str, HtmlPage]:
    text = report_page(build_view(review, reviews.LINKS))
    return text, HtmlPage(text)


def _data(page: HtmlPage) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.texts["data"])
    return data


@pytest.mark.parametrize("name", reviews.SMALL)
def test_page__has_every_test_and_no_address_to_load(name: str) -> None:
    review = reviews.REVIEWS[name]()
    _, page = _page(review)
    tests = [test.id for suite in review.suites for test in suite.tests]
    assert len(_data(page)["tests"]) == len(tests)
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base", "video", "audio", "source")
        assert not attributes.get("src"), tag
        assert not any(key.startswith("on") or key == "style" for key in attributes), tag
        if tag == "link":
            assert attributes["href"] == "data:,"
        if tag == "a":
            href = attributes["href"] or ""
            assert href.startswith(("#", "https://github.com/acme/support-agent/")), href


def test_policy__allows_the_two_elements_of_the_page_and_nothing_else() -> None:
    text, page = _page(reviews.regression_and_gate())

    def digest(content: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert script is not None
    assert style is not None
    assert page.policy == [
        "default-src 'none'",
        f"script-src {digest(script[1])}",
        f"style-src {digest(style[1])}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_hostile_texts__are_neither_markup_nor_the_end_of_the_data() -> None:
    text, page = _page(reviews.hostile())
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert "\u202e" not in text
    shown = json.dumps([test["details"]["head"] for test in _data(page)["tests"] if "head" in test])
    assert "<script>alert(1)</script>" in shown
    assert "more characters: see results.jsonl" in shown


def test_page__as_a_reader_without_javascript_sees_it(golden: Golden) -> None:
    text, _ = _page(reviews.regression_and_gate())
    body = text[text.index("<body>") : text.index('<script type="application/json"')]
    golden.check(
        "report-page.html",
        re.sub(r"agentevals-action \d+\.\d+\.\d+", "agentevals-action VERSION", body),
    )


def test_data__of_one_test(golden: Golden) -> None:
    _, page = _page(reviews.regression_and_gate())
    data = _data(page)
    golden.check(
        "report-data.json", json.dumps(data["tests"][0], indent=2, ensure_ascii=False) + "\n"
    )


def test_data__of_a_runner_s_tests_has_what_is_known(golden: Golden) -> None:
    _, page = _page(reviews.runners())
    tests = {test["id"]: test for test in _data(page)["tests"]}
    names = ("safety: refund over the limit", "test_agent.py::test_answer[de]")
    golden.check(
        "report-data-runners.json",
        json.dumps([tests[name] for name in names], indent=2, ensure_ascii=False) + "\n",
    )


def test_targets__one_without_a_name_and_figures_is_left_out() -> None:
    text, _ = _page(reviews.runners())
    assert text.count('<th scope="row">openai:gpt-5-mini</th>') == 1
    assert '<th scope="row">–</th>' not in text


def test_header__states_where_and_when_the_run_was() -> None:
    review = reviews.with_facts(
        reviews.all_passed(), time="2026-01-03T12:04:05.000Z", uncommitted=("agent.py", "x.py")
    )
    links = replace(reviews.LINKS, pull_request=12, branch="fix/refund")
    page = report_page(build_view(review, links))
    address = "https://github.com/acme/support-agent"
    assert (
        '<p class="small"><code>acme/support-agent</code> · '
        f'<a href="{address}/pull/12">pull request #12</a> · branch <code>fix/refund</code> · '
        "2026-01-03 12:04 UTC · 2 uncommitted files</p>"
    ) in page


def test_many_tests__those_that_changed_are_complete_and_the_others_rows() -> None:
    same = [reviews.result(f"same-{number}") for number in range(page_data.MAX_COMPLETE)]
    base = (*same, reviews.result("worse"))
    head = (*same, reviews.result("worse", "fail", misses=("says please",)))
    _, page = _page(reviews.review(reviews.compared(head, base)))
    tests = _data(page)["tests"]
    assert [test["id"] for test in tests if "details" in test] == ["worse"]
    assert tests[0]["id"] == "worse"
    assert len(tests) == page_data.MAX_COMPLETE + 1


def test_limits__tests_without_a_row_or_details_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_data, "MAX_ROWS", 3)
    monkeypatch.setattr(page_data, "MAX_DETAILS", 1_500)
    tests = tuple(reviews.result(f"case-{number}", answer="x" * 200) for number in range(5))
    view = build_view(reviews.review(reviews.compared(tests, tests)))
    data = page_data.page_data(view)
    assert (len(data.listed), data.left) == (3, 2)
    detailed = sum("details" in test for test in json.loads(data.json)["tests"])
    assert 0 < detailed < 3
    assert "2 more tests in results.jsonl" in report_page(view)


def test_limits__a_row_has_the_beginning_of_a_long_miss() -> None:
    miss = "says please " * 2_000
    tests = tuple(reviews.result(f"case-{number}", "fail", misses=(miss,)) for number in range(500))
    rows = _data(_page(reviews.review(reviews.compared(tests, tests)))[1])["tests"]
    assert {row["miss"] for row in rows} == {f"{miss[:199]}…"}


@given(st.text(st.characters(), max_size=40))
def test_data__no_text_ends_its_element(text: str) -> None:
    result = reviews.result("case", "fail", answer=text, misses=(f"</script>{text}",))
    page = report_page(build_view(reviews.review(reviews.compared((result,), (result,)))))
    data = HtmlPage(page).texts["data"]
    assert "<" not in data
    assert json.loads(data)["tests"][0]["id"] == "case"


@given(st.text(max_size=60))
def test_markdown__makes_only_the_tags_of_text(text: str) -> None:
    for tag, attributes in HtmlPage(str(markdown_line(text))).elements:
        assert tag in _TAGS_OF_TEXT
        assert set(attributes) <= {"href", "title"}


_TAGS_OF_BLOCKS = {"p", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em"}
_TAGS_OF_BLOCKS |= {"strong", "s", "hr", "br", "table", "thead", "tbody", "tr", "th", "td"}


@given(
    st.lists(
        st.sampled_from(
            [
                *"\n\n  #*_`~|-:>[]()!<&\"'\\=1.a",
                "<a href=x>",
                "](javascript:a)",
                "```",
                "&#60;",
                "http://a.b",
            ]
        )
    ).map("".join)
)
def test_markdown__of_an_answer_makes_only_elements_without_attributes(text: str) -> None:
    for tag, attributes in HtmlPage(str(markdown_blocks(text, 10_000))).elements:
        assert tag in _TAGS_OF_BLOCKS
        assert attributes.keys() <= ({"start"} if tag == "ol" else set())


def test_markdown__of_an_answer_without_markup_or_of_too_much_is_empty() -> None:
    assert markdown_blocks("Two\nlines.\n\nAnd a < b & c.", 1_000) == ""
    assert markdown_blocks("**x**", 1_000) == "<p><strong>x</strong></p>\n"
    assert markdown_blocks("**x**", 10) == ""


def test_pictures__are_in_the_page_once_and_as_many_as_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uris = [f"data:image/png;base64,{letter * 400}" for letter in "AB"]
    monkeypatch.setattr(page_data, "MAX_PICTURES", 500)

    def asked(id: str, uri: str) -> TestResult:
        message = {"role": "user", "content": [{"type": "image", "value": uri}]}
        return replace(reviews.result(id, "fail"), input_messages=(message,))

    tests = (asked("a", uris[0]), asked("b", uris[0]), asked("c", uris[1]))
    data = _data(_page(reviews.review(reviews.compared(tests, tests)))[1])
    assert data["pictures"] == uris[:1]
    shown = [message["content"][0]["value"] for message in data["messages"]]
    assert shown == [0, "not shown: the page has too many pictures"]


def test_markdown__keeps_the_tags_of_the_escapers_and_no_other() -> None:
    assert markdown_line("<code>a</code> <span>$</span> <b>x</b> <img src=x>") == (
        "<code>a</code> <span>$</span> &lt;b&gt;x&lt;/b&gt; &lt;img src=x&gt;"
    )
