"""Every broken suite in `tests/data/invalid` is reported by exactly the expected lines: path, line,
column, problem and advice.

A case is a file, read with the targets that stand beside it, or a folder with `suite.yaml` that is
a repository of its own. `pytest --golden-update` writes the lines; read their difference."""

from pathlib import Path

import pytest

from agentevals_action.suites.load import load_suite
from agentevals_action.suites.target_use import Catalog

ROOT = Path(__file__).resolve().parents[2] / "data/invalid"
EXPECTED = ROOT / "expected.txt"
CASES = sorted(path.name for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".yaml")
CASES.remove(".agentv")


def error_lines(case: str) -> list[str]:
    path = ROOT / case
    root, prefix = (path, f"{case}/") if path.is_dir() else (ROOT, "")
    file = sorted(path.rglob("suite.*"))[0] if path.is_dir() else path
    suite = load_suite(file, root, Catalog())
    return [f"{prefix}{error}" for error in getattr(suite, "errors", ())]


@pytest.fixture(scope="module")
def expected(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    if request.config.getoption("--golden-update"):
        lines = [line for case in CASES for line in error_lines(case)]
        EXPECTED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    expected: dict[str, list[str]] = {case: [] for case in CASES}
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        expected[line.partition(":")[0].partition("/")[0]].append(line)
    return expected


@pytest.mark.parametrize("case", CASES)
def test_invalid_suite__is_reported(case: str, expected: dict[str, list[str]]) -> None:
    assert expected[case], "a case without an expected line is a valid suite"
    assert error_lines(case) == expected[case]
