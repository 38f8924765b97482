"""A real browser for the tests of pages, the image for those of containers, and the real
command-line agents."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium

from tests.support import real_agents
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


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the real agents' commands; `AGENT_PROGRAMS` is where npm installed them."""
    named = os.environ.get("AGENT_PROGRAMS")
    return real_agents.installed(Path(named) if named else tmp_path_factory.mktemp("programs"))


@pytest.fixture
def codex_home() -> Iterator[Path]:
    """A home of Codex, which refuses one in the temporary folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="codex-home-") as folder:
        yield Path(folder)
