"""A browser that opens a page from a file, with what it asked for and what it logged."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, sync_playwright

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WAIT = 60_000  # milliseconds, for a busy machine


def _program() -> str:
    """The browser of the system; skips the test without one."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if not found:
        pytest.skip("NO BROWSER: install the package chromium to test the report page")
    return found


class Window:
    """One window. `requests` are the addresses that its pages asked for, `messages` what they
    logged."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.set_default_timeout(_WAIT)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))

    def open(self, file: Path, hash: str = "") -> None:
        """Opens the page; a page that is open already only gets another hash."""
        self.page.goto(f"{file.as_uri()}{hash}")

    def run(self, script: str, argument: Any = None) -> Any:
        """The value of an expression, or of a function of the argument."""
        return self.page.evaluate(script, argument)

    def wait(self, condition: str) -> None:
        """Waits until an expression is true."""
        # As a function: a page's policy may forbid to evaluate a text again.
        self.page.wait_for_function(f"() => ({condition})")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def hash(self) -> str:
        return str(self.run("decodeURIComponent(location.hash)"))

    def texts(self, selector: str) -> list[str]:
        """The texts of the visible elements."""
        visible = (
            "all => all.filter(node => node.checkVisibility()).map(node => node.innerText.trim())"
        )
        return [str(text) for text in self.page.eval_on_selector_all(selector, visible)]

    def expect(self, selector: str, texts: list[str]) -> None:
        """Waits until the visible elements have these texts."""
        function = """([selector, texts]) => JSON.stringify([...document.querySelectorAll(selector)]
            .filter(node => node.checkVisibility()).map(node => node.innerText.trim())) === JSON.stringify(texts)"""
        self.page.wait_for_function(function, arg=[selector, texts])

    def violations(self) -> list[str]:
        """What axe-core finds wrong for people who use other means than eyes and a mouse."""
        axe = files("axe_playwright_python") / "axe.min.js"
        self.run(axe.read_text(encoding="utf-8"))
        found = self.run("axe.run(document, {})")
        return [
            f"{rule['id']}: {[node['html'] for node in rule['nodes']]}"
            for rule in found["violations"]
        ]


@contextmanager
def started() -> Iterator[Chromium]:
    """The browser of the system, without a window. Only one can run in a process."""
    program = _program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Chromium,
    *,
    width: int = 1280,
    scheme: Literal["light", "dark"] = "light",
    javascript: bool = True,
) -> Iterator[Window]:
    """A window of this width, of a reader who prefers this colour scheme."""
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=javascript,
    )
    yield Window(page)
    page.close()
