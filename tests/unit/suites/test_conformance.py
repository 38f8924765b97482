"""The suites whose answers are known are read as they are meant, with the real evaluators and providers."""

from pathlib import Path

import pytest

from agentevals_action import evaluators, providers
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.suites.load import Catalog, load_suite

FOLDER = Path(__file__).resolve().parents[3] / "../shared/conformance"
LATER = {"composite", "fields", "metrics", "trajectory"}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance suites are not beside this checkout")


def suite_files() -> list[Path]:
    return sorted((*FOLDER.glob("*/EVAL.yaml"), *FOLDER.glob("*/*.eval.yaml")))


@pytest.mark.parametrize("path", suite_files(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_conformance__is_read_or_refused_by_name(path: Path) -> None:
    suite = load_suite(path, FOLDER, Catalog(evaluators.catalog(), providers.catalog()))

    if path.parent.name in LATER:
        assert isinstance(suite, BrokenSuite)
        assert all("is not supported by this version yet" in fault.problem for fault in suite.faults)
    else:
        assert isinstance(suite, Suite), suite
        assert all("expect" in test.metadata for test in suite.tests)
        assert suite.targets.judge(None, "default") == "echo-judge"
