"""Confirmations and gate rates in words."""

from typing import Any

import pytest

from agentevals_action.model.comparison import (
    Counts,
    Evidence,
    Finding,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.links import Links
from agentevals_action.review.comparison.compare import Knowledge
from tests.support import reviews


def compared(found: Evidence | None, **fields: Any) -> TestComparison:
    knowledge = Knowledge(evidence={"a": found} if found else {})
    return reviews.compared(
        (reviews.result("a", "fail", **fields),), (reviews.result("a"),), knowledge=knowledge
    ).tests[0]


def comment(*suites: SuiteComparison, **fields: Any) -> str:
    return reviews.comment(reviews.review(*suites, **fields), Links())


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            reviews.evidence(Finding.REGRESSED, (20, 20), (0, 3)),
            "passed 20 of 20 on base, 0 of 3 on head, p = 0.0004",
        ),
        (
            reviews.evidence(Finding.CLEARED, (19, 20), (3, 3)),
            "dropped, then passed 3 of 3 on head, 19 of 20 on base",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (1, 1), (1, 3), needed=None),
            "passed 1 of 1 on base, 1 of 3 on head: base has too few samples to decide",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (8, 20), (1, 3), needed=None, reason="no tree"),
            "passed 8 of 20 on base, 1 of 3 on head: base itself is too flaky to decide; no tree",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (20, 20), (1, 3), needed=None),
            "passed 20 of 20 on base, 1 of 3 on head: these are too few fresh samples to decide; `confirm` allows more",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (18, 20), (3, 6), needed=4),
            "passed 18 of 20 on base, 3 of 6 on head: a regression needs 4 failures, 3 of 6 failed",
        ),
        (
            Evidence(Finding.ERROR, Counts(1, 1), Counts(0, 0), reason="timed out"),
            "got worse, and could not be confirmed: timed out",
        ),
        (Evidence(Finding.REGRESSED, Counts(1, 1), Counts(0, 1)), ""),
        (None, ""),
    ],
)
def test_evidence__in_words(found: Evidence | None, text: str) -> None:
    assert confirmation.describe(compared(found)) == text


def test_chance__is_never_none() -> None:
    assert [
        confirmation.probability(value)
        for value in (0.0, 0.00009, 0.0001, 0.00043, 0.034, 0.31, 1.0)
    ] == [*("p < 0.0001", "p < 0.0001", "p = 0.0001", "p = 0.0004", "p = 0.03", "p = 0.3", "p = 1")]


def test_regression__of_what_is_always_the_same_omits_samples() -> None:
    certain = Evidence(Finding.REGRESSED, Counts(1, 1), Counts(0, 1))
    suite = reviews.compared(
        (reviews.result("a", "fail"),),
        (reviews.result("a"),),
        knowledge=Knowledge(evidence={"a": certain}),
    )
    text = comment(suite)
    assert "1 test regressed" in text
    assert "fresh" not in text


def test_gate__that_fails_now_and_then_is_shown_with_its_rate_on_both_sides() -> None:
    base = reviews.history("a", 19, 20, gates=("g", "h"), failed=("g",))
    failed = reviews.history("a", 1, 4, gates=("g", "h"), failed=("g",))
    text = comment(reviews.compared((failed,), (base,)))
    assert "required gate `g` failed (held in 1 of 4 samples on head, in 19 of 20 on base)" in text
    held = reviews.history("a", 3, 4, gates=("g", "h"), failed=("g",))
    text = comment(reviews.compared((held,), (base,)))
    assert "<summary>1 test flaky</summary>" in text
    assert "required gate `g` held in 3 of 4 samples on head, in 19 of 20 on base" in text
    assert "`h`" not in text


def test_gate__that_always_fails_or_holds_is_not_flaky() -> None:
    base, head = (
        reviews.history("a", 20, 20, gates=("g",)),
        reviews.history("a", 0, 4, gates=("g",), failed=("g",)),
    )
    text = comment(reviews.compared((head,), (base,)))
    assert "required gate `g` failed (held on base)" in text
    assert "flaky" not in text


def test_undecided__with_a_failed_gate_counts_as_a_failure() -> None:
    found = {"a": reviews.evidence(Finding.UNDECIDED, (12, 20), (1, 4), needed=None)}
    head = reviews.history("a", 1, 5, gates=("g",), failed=("g",))
    text = comment(
        reviews.compared(
            (head,),
            (reviews.history("a", 12, 20, gates=("g",)),),
            knowledge=Knowledge(evidence=found),
        )
    )
    assert "### 1 test failed a required gate" in text
    assert "undecided whether it regressed: held in 12 of 20 on base, 1 of 4 on head" in text
    assert "not counted" not in text.lower()
