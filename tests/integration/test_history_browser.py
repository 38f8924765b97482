"""The page of the history in a real browser, and its chart as Mermaid draws it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser as Chromium

from agentevals_action.baselines.trends import SuiteTrend
from agentevals_action.reports.html.history_page import history_page
from agentevals_action.reports.rate_chart import rate_chart
from tests.support.browser import Window, opened
from tests.support.trends import trend

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>\"'</script><script>alert(1)</script>\u202e&#suite=a%2F"
BILLING = "#suite=evals%2Fbilling%2FEVAL.yaml"


def _written(folder: Path, suites: Sequence[SuiteTrend] | None = None) -> Path:
    found = suites or [trend("evals/billing/EVAL.yaml", runs=30), trend(runs=20)]
    page = folder / "history.html"
    text = history_page(found, "https://github.com/acme/agent/commit/")
    page.write_text(text, encoding="utf-8", newline="\n")
    return page


def test_suite__in_the_address_shows_its_charts_and_tests(browser: Window, tmp_path: Path) -> None:
    page = _written(tmp_path)
    browser.open(page)
    browser.expect("figure h3", ["Pass rate of all suites"])
    assert len(browser.texts("tr[data-suite]")) == 2
    browser.page.select_option("select", "evals/billing/EVAL.yaml")
    browser.wait("document.querySelectorAll('figure').length === 2")
    assert browser.hash == "#suite=evals/billing/EVAL.yaml"
    assert len(browser.texts("tr[data-suite]")) == 1
    letters = "[...document.querySelectorAll('svg .letter')].map((one) => one.textContent)"
    assert browser.run(letters) == ["A", "QG"] * 2
    browser.open(page, "#suite=unknown")
    browser.expect("figure h3", ["Pass rate of all suites"])


def test_values__are_shown_for_the_pointer_and_the_keys(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path), BILLING)
    browser.wait("document.querySelectorAll('figure').length === 2")
    browser.page.focus("svg")
    browser.press("Home")
    (first, *others) = browser.texts("figcaption")
    assert first.startswith("2026-01-01 10:00 UTC, 00001eef0000: ")
    assert "95 % interval" in first
    assert all(other.startswith("2026-01-01 10:00 UTC") for other in others)
    browser.press(*["ArrowRight"] * 10)
    assert "agent (model, prompt or command) of 20 tests changed" in browser.texts("figcaption")[0]
    assert browser.run("document.activeElement.getAttribute('aria-valuenow')") == "11"
    browser.page.hover("svg", position={"x": 55, "y": 80})
    assert browser.texts("figcaption")[0] == first
    browser.run("document.querySelector('details').open = true")
    assert len(browser.texts("details tbody tr")) == 30
    assert browser.run("document.querySelector('details td a').href") == (
        "https://github.com/acme/agent/commit/" + trend(runs=30).points[-1].commit[:12]
    )


def test_page__asks_for_nothing_and_logs_nothing(browser: Window, tmp_path: Path) -> None:
    page = _written(tmp_path)
    browser.open(page)
    browser.open(page, BILLING)
    browser.wait("document.querySelectorAll('figure').length === 2")
    assert {url.partition("#")[0] for url in browser.requests} <= {page.as_uri(), "data:,"}
    assert browser.messages == []


def test_hostile_names__stay_texts(browser: Window, tmp_path: Path) -> None:
    suite = trend(HOSTILE, runs=3, flaky=HOSTILE)
    browser.open(_written(tmp_path, [suite, trend(runs=3)]))
    browser.run("document.querySelector('#suites ~ div a').click()")
    browser.wait("document.querySelectorAll('figure').length === 2")
    assert browser.run("document.querySelectorAll('img, script:not([id])').length") == 1
    assert browser.messages == []
    assert len(browser.texts("tr[data-suite]")) == 1
    assert any(
        "<img src=x onerror=alert(1)>" in text for text in browser.texts("tr[data-suite] th")
    )


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "dark"), (360, "light")]
)
def test_accessibility__axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = _written(tmp_path)
    with opened(chromium, width=width, scheme=scheme) as window:
        for hash in ("", BILLING):
            window.open(page, hash)
            window.wait(f"document.querySelectorAll('figure').length === {2 if hash else 1}")
            assert window.violations() == []
            assert window.run("document.documentElement.scrollWidth") <= width


def test_without_javascript__suites_commits_and_flaky_tests_are_text(
    chromium: Chromium, tmp_path: Path
) -> None:
    with opened(chromium, javascript=False) as window:
        window.open(_written(tmp_path))
        text = window.page.inner_text("main")
    for shown in ("evals/billing/EVAL.yaml", "refund-window", "34.6%", "The last commits"):
        assert shown in text
    assert "Over time" not in text


def test_chart_of_the_summary__is_one_that_mermaid_draws(browser: Window) -> None:
    folder = Path(os.environ.get("NODE_PATH", "node_modules"))
    mermaid = folder / "mermaid" / "dist" / "mermaid.min.js"
    if not mermaid.is_file():
        pytest.skip("NO MERMAID: `npm install mermaid`, or set NODE_PATH, to test the chart")
    found = re.search(r"```mermaid\n(.*?)```", rate_chart([trend(runs=40)]), re.DOTALL)
    assert found is not None
    browser.page.set_content("<body></body>")
    browser.page.add_script_tag(path=mermaid)
    browser.run(
        "async code => { document.body.innerHTML = (await mermaid.render('c', code)).svg }",
        found[1],
    )
    labels = browser.run(
        "[...document.querySelectorAll('.bottom-axis text, .x-axis text, text')].map(one => one.textContent)"
    )
    names = [one.commit[:7] for one in trend(runs=40).points[-20:]]
    assert [label for label in labels if label in names] == names
    assert "passed (%)" in labels
    assert browser.run("document.querySelectorAll('.line-plot-0 path').length") == 1
