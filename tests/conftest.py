"""Options of the test run."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import repositories

# The time of an example depends on how busy the machine is.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _ANY_MACHINE, max_examples=25)
settings.register_profile("thorough", _ANY_MACHINE)
settings.load_profile("quick")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update",
        action="store_true",
        help="write the present output into tests/golden, to be read in the diff",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is collected becomes garbage: the collector need not look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    repositories.remove_templates()


class Golden:
    """Compares a text with its file in `tests/golden`, or writes it there with
    `--golden-update`."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def check(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if self._update:
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path.name} is missing; write it with --golden-update and read it"
        assert text == path.read_text(encoding="utf-8"), (
            f"{path.name} differs; if that is intended, run with --golden-update and read the diff"
        )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--golden-update")))
