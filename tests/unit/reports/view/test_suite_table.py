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
