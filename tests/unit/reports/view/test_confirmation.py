"""Confirmations and gate rates in words."""

from typing import Any

import pytest

from agentevals_action.model.comparison import Counts, Evidence, Finding, TestComparison
from agentevals_action.reports.view import confirmation
from tests.support import reviews


def compared(found: Evidence | None, **fields: Any) -> TestComparison:
    head, base = (reviews.result("a", "fail", **fields),), (reviews.result("a"),)
    return reviews.compared(head, base, evidence={"a": found} if found else {}).tests[0]


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
