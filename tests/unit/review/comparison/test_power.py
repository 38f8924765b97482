"""The smallest drop that a suite finds. That the probabilities are right is in
`tests/integration/test_benchmark_regressions.py`."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import SmallestDrop
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Policy, Run, RunSuite, Selection
from agentevals_action.results.build import with_samples
from agentevals_action.review.comparison.power import chance_to_find, find_drop, with_head
from tests.support import results
from tests.support.compared import RERUN

TWENTY = SmallestDrop(20, samples=1, confirm=6, alpha=0.05)


def drop(suite: SmallestDrop) -> float:
    found = with_head(suite).head
    assert found is not None
    return found


def test_smallest_drop__is_the_first_hundredth_that_is_found_in_four_of_five_cases() -> None:
    found = drop(TWENTY)
    assert chance_to_find(TWENTY, found) >= 0.8 > chance_to_find(TWENTY, found + 0.01)


@pytest.mark.parametrize(
    "better", [{"tests": 50}, {"history": 20}, {"samples": 3}, {"base": 1.0}, {"alpha": 0.2}]
)
def test_smallest_drop__is_smaller_for_more_tests_samples_history_and_steadier_tests(
    better: dict[str, float],
) -> None:
    larger = replace(TWENTY, **better)  # type: ignore[arg-type]  # fields of numbers
    assert larger.base - drop(larger) < TWENTY.base - drop(TWENTY)


def test_smallest_drop__where_none_is_found_more_fresh_samples_find_one() -> None:
    shaky = replace(TWENTY, base=0.5)
    assert with_head(shaky) == shaky
    assert drop(replace(shaky, confirm=20)) < 0.5


def test_smallest_drop__is_as_the_documentation_says() -> None:
    page = (Path(__file__).parents[4] / "docs/guides/flaky-tests.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) tests?[^|]*\|(.+)\|$", page, re.M)
    columns = ((1, 1), (5, 1), (20, 1), (20, 3))
    assert len(rows) == 5
    for tests, cells in rows:
        for cell, (history, samples) in zip(cells.split("|"), columns, strict=True):
            base, head = map(float, cell.split("→"))
            suite = SmallestDrop(int(tests), samples, 6, 0.05, base, history)
            assert drop(suite) == head, (tests, cell)


@pytest.mark.parametrize("size", [{"tests": 0}, {"confirm": 0}])
def test_smallest_drop__is_not_computed_where_one_sample_decides(size: dict[str, int]) -> None:
    assert with_head(replace(TWENTY, **size, steady=4)).head is None


def test_smallest_drop__of_ten_thousand_tests() -> None:
    many = SmallestDrop(10_000, samples=1, confirm=6, alpha=0.05, base=0.98, history=20)
    assert 0.85 < drop(many) < 0.98


def found_in(
    *base: TestResult, baseline: BaselineInfo = RERUN, steady: tuple[str, ...] = ()
) -> SmallestDrop | None:
    suite = RunSuite(
        Selection("evals/EVAL.yaml", ()), "s", tuple(f"t{n}" for n in range(20)), steady=steady
    )
    run = Run(head_sha="", policy=Policy(frozenset()), baseline=baseline)
    return find_drop(run, suite, base)


def test_find_drop__is_by_the_scored_samples_of_tests_that_may_vary() -> None:
    rows = [results.result(f"t{n}", "fail" if n < 4 else "pass") for n in range(20)]
    rows[19] = results.result("t19", None)
    assert found_in(*rows) == with_head(replace(TWENTY, base=15 / 19))
    steady = found_in(*rows, steady=("t0", "t1", "t19"))
    assert steady == with_head(replace(TWENTY, tests=17, base=15 / 17, steady=3))


def test_find_drop__a_test_that_never_passes_cannot_fall() -> None:
    once = [results.result(f"t{n}", "pass" if n % 2 else "fail") for n in range(20)]
    assert found_in(*once) == with_head(replace(TWENTY, base=0.5))
    rows = [with_samples(row, row.samples * 5) for row in once]
    assert found_in(*rows) == with_head(replace(TWENTY, tests=10, base=1.0, history=5))


def test_find_drop__without_results_of_base_supposes_a_usual_rate() -> None:
    assert found_in() == with_head(TWENTY)
    assert found_in(baseline=BaselineInfo("none", wanted=False)) is None
