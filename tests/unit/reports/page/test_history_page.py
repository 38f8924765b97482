"""The page of the history as a file: its policy, its data, what a reader without JavaScript sees."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.reports.page.history_page import history_page
from tests.conftest import Golden
from tests.support.html_page import HtmlPage
from tests.support.trends import trend

COMMITS = "https://github.com/acme/agent/commit/"


def _data(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(HtmlPage(text).texts["data"])
    return data


@given(st.text(max_size=40))
def test_names__are_neither_markup_nor_the_end_of_the_data(text: str) -> None:
    plain = "".join(char for char in text if not "\ud800" <= char <= "\udfff")
    hostile = f"{plain}</script><img src=x onerror=alert(1)>"
    page = history_page([trend(hostile, runs=3, flaky=hostile)])
    tags = [tag for tag, _ in HtmlPage(page).elements]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert len(_data(page)["suites"]) == 1


def test_page__as_a_reader_without_javascript_sees_it(golden: Golden) -> None:
    variant = replace(trend(runs=2), variant="haiku")
    text = history_page([trend("evals/billing/EVAL.yaml", runs=4), trend(runs=6), variant])
    assert [suite["path"] for suite in _data(text)["suites"]][1:] == [
        "evals/EVAL.yaml",
        "evals/EVAL.yaml#haiku",
    ]
    body = text[text.index("<body>") : text.index('<script type="application/json"')]
    golden.check("history-page.html", body)


def test_page__of_no_suite_says_so() -> None:
    text = history_page([])
    assert "No run of the default branch is stored yet." in text
    assert _data(text)["suites"] == []
