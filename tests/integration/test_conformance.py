"""Suites whose right answers are known, run as a user runs them: every test gives what its metadata
expects."""

import json
import shutil
from pathlib import Path

import pytest

from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.suites.load import load_suite
from agentevals_action.suites.target_use import Catalog
from tests.support import command

FOLDER = Path(__file__).resolve().parents[2] / "../shared/conformance"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the conformance suites are not beside this checkout (../shared/conformance)",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conformance")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    return folder


def suites() -> list[str]:
    files = sorted([*FOLDER.glob("*/EVAL.yaml"), *FOLDER.glob("*/*.eval.yaml")])
    return [path.relative_to(FOLDER).as_posix() for path in files]


def loaded(copy: Path, path: str) -> Suite | BrokenSuite:
    return load_suite(copy / path, copy, Catalog())


@pytest.mark.parametrize("path", suites())
def test_conformance__every_test_gives_what_it_expects(
    copy: Path, path: str, tmp_path: Path
) -> None:
    suite = loaded(copy, path)
    assert isinstance(suite, Suite)
    done = command.run(copy, "run", path, "--output", str(tmp_path / "results.jsonl"))
    assert done.code in (0, 1, 3), done.err
    rows = {
        row["evalId"]: row
        for row in map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    }
    tests = {test.id: test for test in suite.tests}
    assert rows.keys() == tests.keys()
    for name, test in tests.items():
        check(rows[name], test)


def check(row: dict[str, object], test: Test) -> None:
    expect = test.metadata["expect"]
    if expect.get("error"):
        assert row["error"] is not None, test.id
        assert (row["verdict"], row["score"]) == (None, None), test.id
        return
    assert isinstance(row["score"], float), test.id
    assert (row["verdict"], round(row["score"], 6)) == (
        expect["verdict"],
        round(float(expect["score"]), 6),
    ), test.id
    assert row["gatesFailed"] == expect.get("gates", []), test.id
