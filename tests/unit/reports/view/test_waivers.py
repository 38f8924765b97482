"""What does not count, and what stays a failure."""

from datetime import date

from agentevals_action.model.comparison import (
    ChangeKind,
)
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.reports.view import confirmation, waivers
from agentevals_action.reports.view.links import Links
from tests.support import reviews

HELD = Quarantine(("*",), "grace", "the service moves", date(2026, 3, 1))


def test_waived__is_out_of_every_list_of_what_counts() -> None:
    head = (
        reviews.result("held", "fail", gates=("g",), failed=("g",)),
        reviews.result("held-error", None),
        reviews.result("accepted", "fail"),
        reviews.result("fine"),
    )
    suite = reviews.compared(head, tuple(reviews.result(one.eval_id, gates=("g",)) for one in head))
    suite = reviews.waived(suite, {"held": HELD, "held-error": HELD}, {"accepted": "ada"})
    review = reviews.review(suite)
    text = reviews.comment(review, Links())
    assert "> [!IMPORTANT]" in text
    assert (
        "Accepted by `ada`: 1 regression. In quarantine, not counted: 2 tests."
        in text.splitlines()[2]
    )
    assert "none regressed" not in text
    assert "regressed and" not in text
    assert "ended in an error" not in text
    assert "| ⚠️ |" in text
    assert "| 0 (1&nbsp;accepted) |" in text
    assert "### 1 regression accepted by `ada`" in text
    assert "until 2026-03-01 · owner `grace` · reason: the service moves" in text
    assert reviews.check(review, Links())[0].endswith(
        "Accepted by ada: 1 regression. In quarantine, not counted: 2 tests."
    )
    assert reviews.annotations(review, 10) == ((), 0)


def test_accepted__with_a_failed_gate_stays_a_failure() -> None:
    suite = reviews.compared(
        (reviews.result("a", "fail", gates=("new",), failed=("new",)),), (reviews.result("a"),)
    )
    review = reviews.review(reviews.waived(suite, {}, {"a": "ada"}))
    text = reviews.comment(review, Links())
    assert "### 1 test failed a required gate" in text
    assert "accepted by `ada`" in text
    assert "### 1 regression accepted" not in text
    assert [one.level for one in reviews.annotations(review, 10)[0]] == ["failure"]


def test_became__is_in_the_words_of_the_comment() -> None:
    tests = {
        test.id: waivers.describe_change(test)
        for suite in reviews.believable().suites
        for test in suite.tests
    }
    assert tests["sums-up"][0] == "undecided"
    assert tests["greets-by-name"] == (
        "flaky",
        "dropped, then passed 3 of 3 on head, 19 of 20 on base",
    )
    assert tests["upsells"] == ("regressed", "accepted by ada")
    assert tests["german"][1].startswith("in quarantine until 2026-03-01, owner grace: ")
    assert tests["case-1"] == ("unchanged",)
    assert confirmation.change_word(ChangeKind.STILL_FAILING) == "still failing"
