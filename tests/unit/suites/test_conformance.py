"""The suites whose answers are known are read as they are meant, with the real evaluators and
providers."""

from pathlib import Path

import pytest

from agentevals_action.model.suite import Suite
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.load import load_suite
from agentevals_action.targets import providers

FOLDER = Path(__file__).resolve().parents[3] / "../shared/conformance"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the conformance suites are not beside this checkout"
)


def suite_files() -> list[Path]:
    return sorted((*FOLDER.glob("*/EVAL.yaml"), *FOLDER.glob("*/*.eval.yaml")))


@pytest.mark.parametrize("path", suite_files(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_conformance__is_read(path: Path) -> None:
    suite = load_suite(path, FOLDER, Catalog(providers.PROVIDERS))

    assert isinstance(suite, Suite), suite
    assert all("expect" in test.metadata for test in suite.tests)
    assert suite.targets.judge(None, "default") == "echo-judge"
