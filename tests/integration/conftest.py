"""A real browser for the tests of pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium

from tests.support.browser import Window, opened, started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with started() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Window]:
    with opened(chromium) as window:
        yield window
