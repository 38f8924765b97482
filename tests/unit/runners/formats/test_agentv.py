"""The results of AgentV: where a test stands, what runs again, and the real program. Recorded
results are in `test_recorded`."""

import shutil
from pathlib import Path

import pytest

from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Row, Selection
from tests.support.runners import DATA, recorded, started

FORMAT = FORMATS["agentv"]()


@pytest.mark.parametrize("text", ["- a", "tests: cases.jsonl", "tests: [a, {id: 1}]", "a: [", ""])
def test_location__a_suite_without_these_tests(tmp_path: Path, text: str) -> None:
    results, suite = recorded("agentv", tmp_path)
    (suite.root / suite.path).write_text(text)

    assert {row.location for row in FORMAT.read(results, suite)} == {None}


def test_select__a_pattern_of_each_id(tmp_path: Path) -> None:
    ids = ["a", "a[1]", "!b {c,d}", "e\\f", "a"]
    rows = [Row(each, passed=False, source=each) for each in ids]
    _, suite = recorded("agentv", tmp_path)

    (selection,) = FORMAT.select(rows, suite)

    words = ("--test-id=a", r"--test-id=a\[1\]", r"--test-id=\!b \{c,d\}", r"--test-id=e\\f")
    assert selection == Selection(words=words)


def test_select__a_test_that_depends_on_others_runs_with_all(tmp_path: Path) -> None:
    """AgentV refuses a test without those that it depends on."""
    results, suite = recorded("agentv", tmp_path)
    bundle = results / "capitals/france/task/EVAL.yaml"
    bundle.write_text("tests: [{id: france, depends_on: [spain]}]")

    assert FORMAT.select(FORMAT.read(results, suite), suite) == ()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_program__a_run_and_a_run_again(tmp_path: Path) -> None:
    results, own = recorded("agentv", tmp_path)
    (own.root / ".agentv").mkdir()
    shutil.copy(DATA / "agentv/targets.yaml", own.root / ".agentv")

    rows = {row.id: row for row in started(FORMAT, own, tmp_path / "first")}
    (selection,) = FORMAT.select([rows["italy?"], rows["france"]], own)
    again = started(FORMAT, own, tmp_path / "again", selection)

    for expected in FORMAT.read(results, own):
        row = rows[expected.id]
        assert (row.passed, row.error, row.asked, row.graded, row.checks, row.location) == (
            *(expected.passed, expected.error, expected.asked, expected.graded),
            *(expected.checks, expected.location),
        )
    assert sorted(row.id for row in again) == ["france", "italy?"]
