"""The table of suites."""

from typing import Any

from agentevals_action.model.comparison import (
    Finding,
    SuiteComparison,
)
from agentevals_action.reports.view.links import Links
from agentevals_action.review.comparison.compare import Knowledge
from tests.support import reviews


def comment(*suites: SuiteComparison, **fields: Any) -> str:
    return reviews.comment(reviews.review(*suites, **fields), Links())


def test_table__what_may_be_noise_is_never_called_a_change() -> None:
    head = [
        reviews.result(
            f"t{number}", "borderline" if number == 0 else "pass", cost_usd=0.01 + number / 1000
        )
        for number in range(6)
    ]
    base = [reviews.result(f"t{number}", cost_usd=0.012) for number in range(6)]
    row = next(
        line
        for line in comment(reviews.compared(tuple(head), tuple(base))).splitlines()
        if line.startswith("| ❌")
    )
    assert "| 1.00 →&nbsp;0.95 (within&nbsp;noise) |" in row
    assert "(within&nbsp;noise) | 7.5&nbsp;s |" in row
    more = (*head, *(reviews.result(f"new{number}", cost_usd=0.011) for number in range(6)))
    row = next(
        line
        for line in comment(reviews.compared(more, tuple(base))).splitlines()
        if line.startswith("| ❌")
    )
    assert "$0.0720 →&nbsp;$0.1410 (+96%)" in row


def test_table__its_mean_score_and_the_interval_are_of_the_same_samples() -> None:
    fell = reviews.confirmed(reviews.result("t0", "fail"), 5, 5)
    rest = tuple(reviews.result(f"t{number}") for number in range(1, 5))
    base = (reviews.result("t0"), *rest)
    text = comment(
        reviews.compared(
            (fell, *rest),
            base,
            knowledge=Knowledge(evidence={"t0": reviews.evidence(Finding.CLEARED, (1, 1), (5, 5))}),
        )
    )
    row = next(line for line in text.splitlines() if line.startswith("| ✅"))
    assert "| 100% | 1.00 →&nbsp;0.84 (within&nbsp;noise) |" in row
    assert "- score −0.16 (" in text
    assert "Fresh samples count for verdicts and the pass rate, not for mean scores" in text
    assert "Fresh samples" not in comment(
        reviews.compared((reviews.result("t0", "fail"), *rest), base)
    )


def rows_of(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def test_table__a_sum_is_that_of_the_shown_figures() -> None:
    suites = [
        reviews.compared(
            (reviews.result("a", duration_ms=1_240.0, cost_usd=0.00016),),
            None,
            path=f"evals/{number}.yaml",
        )
        for number in range(3)
    ]
    *rows, total = rows_of(comment(*suites))[1:]
    assert [row[-2:] for row in rows] == [["$0.0002", "1.2&nbsp;s"]] * 3
    assert total[-2:] == ["$0.0006", "3.6&nbsp;s"]


def broken(name: str, regressions: int, gate: str = "") -> SuiteComparison:
    gates = {"gates": (gate,), "failed": (gate,)} if gate else {}
    head = [
        reviews.result(f"t{number}", "fail" if number < regressions else "pass", **gates)
        for number in range(5)
    ]
    base = [reviews.result(f"t{number}", gates=gates.get("gates", ())) for number in range(5)]
    return reviews.compared(tuple(head), tuple(base), path=f"evals/{name}/EVAL.yaml")


def test_table__the_worst_suites_come_first() -> None:
    suites = [broken("fine", 0), broken("one", 1), broken("gate", 1, "safe"), broken("three", 3)]
    assert [row[1] for row in rows_of(comment(*suites))[1:5]] == [
        *("`evals/gate/EVAL.yaml`", "`evals/three/EVAL.yaml`"),
        *("`evals/one/EVAL.yaml`", "`evals/fine/EVAL.yaml`"),
    ]


def test_table__of_many_suites_has_the_worst_and_all_are_folded() -> None:
    fine = [broken(f"fine-{number}", 0) for number in range(6)]
    text = comment(broken("bad", 2), *fine)
    shown, _, folded = text.partition("<summary>All 7 suites, with cost and time</summary>")
    assert [row[1] for row in rows_of(shown)] == [
        "Suite",
        "`evals/bad/EVAL.yaml`",
        "**7 suites**",
    ]
    assert "Cost" not in shown
    assert folded.count("`evals/fine-0/EVAL.yaml` |") == 1
    assert "| Cost | Time |" in folded
    green = comment(*fine, broken("fine", 0)).partition("<summary>All 7 suites")[0]
    assert [row[1] for row in rows_of(green)] == ["Suite", "**7 suites**"]
    assert "All " not in comment(broken("bad", 2), *fine[:5])
