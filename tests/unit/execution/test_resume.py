"""Which rows of an earlier run still stand."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.execution.resume import RequestedTests
from agentevals_action.execution.runner import indexed
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Suite, Test
from tests.support import results, suites

PRINT = results.fingerprint()


def asked(folder: Path, *names: str, samples: int = 1) -> RequestedTests:
    tests = "".join(f"  - {{id: {name}, input: q, criteria: c}}\n" for name in names)
    suite = suites.load_valid(
        suites.write(folder, {"evals/EVAL.yaml": f"name: suite\ntests:\n{tests}"}),
        "evals/EVAL.yaml",
    )

    def fingerprint(_suite: Suite, _test: Test) -> Fingerprint:
        return PRINT

    return RequestedTests(indexed([suite]), fingerprint, samples)


def test_index_of__of_a_row_whose_test_is_the_same(tmp_path: Path) -> None:
    known = asked(tmp_path, "a", "b", "c")

    indices = [known.index_of(results.result(name)) for name in ("c", "a", "b", "gone")]

    assert indices == [2, 0, 1, None]
    assert len(known) == 3


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_index_of__none_where_what_the_result_depends_on_is_another(
    tmp_path: Path, part: str
) -> None:
    row = results.result("a", print=replace(PRINT, **{part: "other"}))

    assert asked(tmp_path, "a").index_of(row) is None


def test_index_of__none_where_nothing_was_scored_or_it_is_not_known_of_what(tmp_path: Path) -> None:
    known = asked(tmp_path, "a")

    assert known.index_of(results.result("a", None)) is None
    assert known.index_of(replace(results.result("a"), fingerprint=None)) is None
    assert known.index_of(replace(results.result("a"), eval_path="other/EVAL.yaml")) is None
    assert asked(tmp_path, "a", samples=3).index_of(results.result("a")) is None


def test_requested_tests__of_nothing(tmp_path: Path) -> None:
    known = RequestedTests((), lambda suite, test: PRINT, 1)

    assert len(known) == 0
    assert known.index_of(results.result("a")) is None
