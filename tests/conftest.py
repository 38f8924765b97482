"""Options of the test run."""

import gc
import itertools
import os
import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import repositories

# The time of an example depends on how busy the machine is.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _ANY_MACHINE, max_examples=15)
settings.register_profile("thorough", _ANY_MACHINE)
settings.load_profile("quick")

#: Objects that are created before the collector looks at the young ones: at Python's 700, a tenth of
#: the processor time of a run is its own.
_GC_THRESHOLD = 50_000
_FOLDER_NUMBERS = itertools.count()

#: The folders of tests are in memory if it has room and may contain programs: on a disk, their files
#: take a sixth more time of the system.
_MEMORY = Path("/dev/shm")
_ROOM = 2_000_000_000  # bytes; a run needs an eighth of it

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden-update",
        action="store_true",
        help="write the present output into tests/golden, to be read in the diff",
    )


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores, because tests wait for processes and for time-outs."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    # The sandbox of an agent's command line hides this folder: slow tests run such programs.
    if _is_default(config) and os.access(_MEMORY, os.W_OK):
        facts = os.statvfs(_MEMORY)
        if not facts.f_flag & os.ST_NOEXEC and facts.f_bavail * facts.f_frsize > _ROOM:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def _is_default(config: pytest.Config) -> bool:
    """Whether the tests are those of the README's command."""
    return bool(config.option.markexpr == "not slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Nothing that is collected becomes garbage: the collector need not look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        if _is_default(session.config):  # slow tests measure memory
            gc.set_threshold(_GC_THRESHOLD)
        gc.enable()


def pytest_unconfigure() -> None:
    repositories.remove_templates()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty folder, which is removed if the test passes. pytest's own fixture lists the folders
    of all earlier tests for a free name, and keeps them for a later run to remove."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.mktemp(f"{name}{next(_FOLDER_NUMBERS)}", numbered=False)
    failed = request.session.testsfailed
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)


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
