"""Which rows of an earlier run are still valid."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.execution.resume import valid_results
from agentevals_action.model.judge import ALL_DECIDE
from agentevals_action.model.result import TestResult
from tests.support import results, suites

PRINT = results.fingerprint()


@pytest.mark.parametrize(
    ("row", "is_valid"),
    [
        (results.result("a"), True),
        (results.result("gone"), False),
        (results.result("a", print=replace(PRINT, question="other")), False),
        (results.result("a", print=replace(PRINT, grading="other")), False),
        (results.result("a", print=replace(PRINT, agent="other")), False),
        (replace(results.result("a"), fingerprint=None), False),
        (results.result("a", None), False),
        (replace(results.result("a"), samples=()), False),
        (replace(results.result("a"), eval_path="other/EVAL.yaml"), False),
    ],
)
def test_valid_results__rows_of_the_same_test(
    tmp_path: Path, row: TestResult, is_valid: bool
) -> None:
    tests = "".join(f"  - {{id: {name}, input: q, criteria: c}}\n" for name in "ab")
    files = {"evals/EVAL.yaml": f"name: suite\ntests:\n{tests}"}
    suite = suites.load_valid(suites.write(tmp_path, files), "evals/EVAL.yaml")

    found = valid_results([row], [suite], lambda _suite, _test: PRINT, 1, ALL_DECIDE)

    assert found == ({("evals/EVAL.yaml", "a"): row} if is_valid else {})
