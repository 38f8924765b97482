"""The table of suites."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.comparison import Finding, SmallestDrop, SuiteComparison
from agentevals_action.model.result import TestResult
from agentevals_action.reports.view.suite_table import (
    SuiteTable,
    describe_drop,
    difference_lines,
    suite_table,
)
from agentevals_action.results.build import with_samples
from tests.support import reviews


def make_table(*suites: SuiteComparison, limit: int = 10) -> SuiteTable:
    table = suite_table(suites, limit)
    assert table is not None
    return table


def one_test(head: Any = 0.0021, base: Any = 0.0021, path: str = reviews.PATH) -> SuiteComparison:
    """A suite of one test with these costs."""
    return reviews.compared(
        (reviews.result("a", cost_usd=head),), (reviews.result("a", cost_usd=base),), path=path
    )


def test_table__without_suites_is_none() -> None:
    assert suite_table((), 10) is None


def test_table__what_may_be_noise_is_never_called_a_change() -> None:
    head = [
        reviews.result(
            f"t{number}", "borderline" if number == 0 else "pass", cost_usd=0.01 + number / 1000
        )
        for number in range(6)
    ]
    base = [reviews.result(f"t{number}", cost_usd=0.012) for number in range(6)]
    (row,) = make_table(reviews.compared(tuple(head), tuple(base))).rows
    assert (row.sign, row.score, row.time) == ("❌", "1.00 → 0.95", "7.5 s")
    assert "(" not in row.cost
    more = (*head, *(reviews.result(f"new{number}", cost_usd=0.011) for number in range(6)))
    (row,) = make_table(reviews.compared(more, tuple(base))).rows
    assert row.cost == "$0.0720 → $0.1410 (+96%)"


def _scored(id: str, score: float) -> TestResult:
    made = reviews.result(id)
    return replace(made, score=score, samples=(replace(made.samples[0], score=score),))


def test_table__a_difference_has_the_value_that_the_details_have() -> None:
    head = tuple(_scored(f"t{number}", 0.808) for number in range(6))
    base = tuple(_scored(f"t{number}", 0.904) for number in range(6))
    suite = reviews.compared(head, base)
    (row,) = make_table(suite).rows
    assert row.score == "0.90 → 0.81 (−0.09)"
    assert difference_lines(suite) == ("score −0.09: lower than on base",)
    # With a new test, the details are of other tests than the table.
    suite = reviews.compared((*head, _scored("new", 1.0)), base)
    (row,) = make_table(suite).rows
    assert row.score == "0.90 → 0.84"
    assert difference_lines(suite) == ("score −0.10: lower than on base",)


def test_table__the_mean_score_is_of_the_samples_of_the_run_itself() -> None:
    fell = reviews.confirmed(reviews.result("t0", "fail"), 5, 5)
    rest = tuple(reviews.result(f"t{number}") for number in range(1, 5))
    known = {"t0": reviews.evidence(Finding.CLEARED, (1, 1), (5, 5))}
    suite = reviews.compared((fell, *rest), (reviews.result("t0"), *rest), evidence=known)
    (row,) = make_table(suite).rows
    assert (row.sign, row.pass_rate, row.score) == ("✅", "100%", "1.00 → 0.84")


def test_table__unknown_figures_are_a_dash_and_never_zero() -> None:
    unknown = reviews.compared(
        (reviews.result("a", None, cost_usd=None),), (reviews.result("a", cost_usd=None),)
    )
    table = make_table(unknown, one_test(path="evals/known.yaml"))
    row = next(row for row in table.rows if row.path == reviews.PATH)
    assert (row.pass_rate, row.score, row.cost) == ("100% → –", "1.00 → –", "–")


def test_table__a_column_that_states_nothing_is_not_shown() -> None:
    silent = make_table(one_test(None, None))
    assert (silent.has_base, silent.has_cost) == (True, False)
    known = make_table(one_test(0.0021, None))
    assert (known.has_cost, known.rows[0].cost) == (True, "– → $0.0021")
    assert not make_table(reviews.compared((reviews.result("a"),), None)).has_base


def test_table__a_sum_is_that_of_the_shown_figures() -> None:
    suites = [
        reviews.compared(
            (reviews.result("a", duration_ms=1_240.0, cost_usd=0.00016),),
            None,
            path=f"evals/{number}.yaml",
        )
        for number in range(3)
    ]
    *rows, total = make_table(*suites).rows
    assert {(row.cost, row.time) for row in rows} == {("$0.0002", "1.2 s")}
    assert (total.name, total.cost, total.time) == ("3 suites", "$0.0006", "3.6 s")


def test_table__a_sum_that_lacks_a_cost_is_a_lower_bound() -> None:
    total = make_table(one_test(0.3, 0.1, "a.yaml"), one_test(0.3, 0.4, "b.yaml")).rows[-1]
    assert total.cost == "$0.5000 → $0.6000 (+20%)"
    total = make_table(one_test(0.3, 0.1, "a.yaml"), one_test(None, 0.4, "b.yaml")).rows[-1]
    assert total.cost == "$0.5000 → ≥ $0.3000"


def broken(name: str, regressions: int, gate: str = "") -> SuiteComparison:
    gates: dict[str, Any] = {"gates": (gate,), "failed": (gate,)} if gate else {}
    head = [
        reviews.result(f"t{number}", "fail" if number < regressions else "pass", **gates)
        for number in range(5)
    ]
    base = [reviews.result(f"t{number}", gates=gates.get("gates", ())) for number in range(5)]
    return reviews.compared(tuple(head), tuple(base), path=name)


def test_table__the_worst_suites_come_first_and_the_others_are_counted() -> None:
    suites = [broken("fine", 0), broken("one", 1), broken("gate", 1, "safe"), broken("three", 3)]
    names = [row.name for row in make_table(*suites).rows]
    assert names == ["gate", "three", "one", "fine", "4 suites"]
    cut = make_table(*suites, limit=2)
    assert [row.name for row in cut.rows] == ["gate", "three", "4 suites"]
    assert cut.left == "… and 2 more suites"


def test_table__accepted_regressions_are_counted_apart() -> None:
    suite = reviews.waived(broken("a", 2), {}, {"t0": "ada"})
    assert make_table(suite).rows[0].regressed == "1 (1 accepted)"


def test_table__the_share_that_passes_in_all_samples() -> None:
    def suite(path: str, *flickering: str, tests: int = 2) -> SuiteComparison:
        passed = [reviews.result(f"t{number}") for number in range(tests)]
        fails = reviews.result("t0", "fail").samples
        base = tuple(with_samples(row, row.samples * 2) for row in passed)
        head = tuple(
            with_samples(
                row, (*row.samples, *(fails if row.eval_id in flickering else row.samples))
            )
            for row in passed
        )
        return reviews.compared(head, base, path=path, samples=2)

    table = make_table(suite("a", "t0"), suite("b", tests=6), suite("c", "t0", "t1"))
    cells = {row.name: row.pass_all for row in table.rows}
    assert cells == {"c": "100% → 0%", "a": "100% → 50%", "b": "100%", "3 suites": "100% → 70%"}
    assert table.has_pass_all
    one = make_table(suite("a"), one_test(path="one"))
    assert one.rows[-1].pass_all == "–"
    assert not make_table(one_test()).has_pass_all


def test_table__of_suites_that_scored_no_test() -> None:
    unscored = reviews.compared((reviews.result("a", None),), (reviews.result("a", None),))
    *_, total = make_table(unscored, replace(unscored)).rows
    assert (total.pass_rate, total.pass_all, total.score) == ("–", "–", "–")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            SmallestDrop(20, 1, 6, 0.05, 0.9, head=0.42),
            "20 tests, 1 sample: pass rate 0.9 → 0.42, in 80 % of the cases",
        ),
        (
            SmallestDrop(1, 3, 6, 0.05, 14 / 15, head=0.0),
            "1 test, 3 samples: pass rate 0.93 → 0, in 80 % of the cases",
        ),
        (
            SmallestDrop(1, 1, 6, 0.05, 0.5, steady=2),
            "1 test, 1 sample: no drop of the pass rate from 0.5: raise `confirm`, add tests, or "
            "repair those that fail on base; 2 tests always give the same result: every drop",
        ),
        (
            SmallestDrop(1, 1, 0, 0.05),
            "1 test, 1 sample: one sample decides (`confirm: 0`): every drop blocks, and so does "
            "noise",
        ),
        (SmallestDrop(0, 1, 6, 0.05, steady=1), "1 test always gives the same result: every drop"),
        (SmallestDrop(0, 1, 6, 0.05), "nothing: no test passes on base"),
    ],
)
def test_drop__in_words(found: SmallestDrop, words: str) -> None:
    assert describe_drop(found) == words
