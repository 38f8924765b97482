"""A real browser for the tests of pages, and the image for those of containers."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium

from tests.support.browser import Window, opened, started
from tests.support.container import built_image


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with started() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Window]:
    with opened(chromium) as window:
        yield window


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built_image(tmp_path_factory.getbasetemp().parent)
