"""Which rows of an earlier run are still valid."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.execution.resume import valid_results
from agentevals_action.model.result import TestResult
from tests.support import results, suites

PRINT = results.fingerprint()


def valid(folder: Path, *rows: TestResult, samples: int = 1) -> dict[int, str]:
    tests = "".join(f"  - {{id: {name}, input: q, criteria: c}}\n" for name in "abc")
    files = {"evals/EVAL.yaml": f"name: suite\ntests:\n{tests}"}
    suite = suites.load_valid(suites.write(folder, files), "evals/EVAL.yaml")
    tested = [(index, suite, test) for index, test in enumerate(suite.tests)]
    found = valid_results(rows, tested, lambda _suite, _test: PRINT, samples)
    return {index: row.eval_id for index, row in found.items()}


def test_valid_results__those_whose_test_is_the_same(tmp_path: Path) -> None:
    rows = [results.result(name) for name in ("c", "a", "gone")]

    assert valid(tmp_path, *rows) == {2: "c", 0: "a"}


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_valid_results__not_of_a_test_that_changed(tmp_path: Path, part: str) -> None:
    row = results.result("a", print=replace(PRINT, **{part: "other"}))

    assert valid(tmp_path, row) == {}


def test_valid_results__not_without_a_verdict_or_a_fingerprint_or_all_samples(
    tmp_path: Path,
) -> None:
    rows = (
        results.result("a", None),
        replace(results.result("b"), fingerprint=None),
        replace(results.result("c"), eval_path="other/EVAL.yaml"),
    )

    assert valid(tmp_path, *rows) == {}
    assert valid(tmp_path, results.result("a"), samples=3) == {}
