"""The page of the history in a real browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser as Chromium

from agentevals_action.baselines.trends import SuiteTrend
from agentevals_action.reports.page.history_page import history_page
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


def test_suite__is_that_of_the_address_else_the_first(browser: Window, tmp_path: Path) -> None:
    page = _written(tmp_path)
    browser.open(page)
    chosen = "document.querySelector('select').value"
    browser.wait("document.querySelectorAll('figure').length === 2")
    assert browser.run(chosen) == "evals/billing/EVAL.yaml"
    letters = "[...document.querySelectorAll('svg .letter')].map((text) => text.textContent)"
    assert browser.run(letters) == ["A", "QG"] * 2
    browser.page.select_option("select", "evals/EVAL.yaml")
    browser.wait("location.hash === '#suite=evals%2FEVAL.yaml'")
    browser.open(page, BILLING)
    browser.wait(f"{chosen} === 'evals/billing/EVAL.yaml'")
    browser.open(page, "#suite=unknown")
    browser.wait(f"{chosen} === 'evals/billing/EVAL.yaml'")


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


def test_hostile_names__stay_texts_and_nothing_is_asked_for(
    browser: Window, tmp_path: Path
) -> None:
    suite = trend(HOSTILE, runs=3, flaky=HOSTILE)
    page = _written(tmp_path, [suite, trend(runs=3)])
    browser.open(page)
    browser.run("document.querySelector('#suites ~ div a').click()")
    browser.wait("document.querySelectorAll('figure').length === 2")
    assert browser.run("document.querySelectorAll('img, script:not([id])').length") == 1
    assert any("<img src=x onerror=alert(1)>" in text for text in browser.texts("tbody th.id"))
    assert {url.partition("#")[0] for url in browser.requests} <= {page.as_uri(), "data:,"}
    assert browser.messages == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_accessibility__axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = _written(tmp_path)
    with opened(chromium, width=width, scheme=scheme) as window:
        window.open(page)
        window.wait("document.querySelectorAll('figure').length === 2")
        assert window.violations() == []
        assert window.run("document.documentElement.scrollWidth") <= width


def test_without_javascript__suites_and_flaky_tests_are_text(
    chromium: Chromium, tmp_path: Path
) -> None:
    with opened(chromium, javascript=False) as window:
        window.open(_written(tmp_path))
        text = window.page.inner_text("main")
    for shown in ("evals/billing/EVAL.yaml", "refund-window", "34.7%"):
        assert shown in text
    assert "Over time" not in text
