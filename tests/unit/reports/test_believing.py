"""What fresh samples said, what does not count, and how sure a difference is, in words."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from agentevals_action.model.comparison import (
    Change,
    Difference,
    Evidence,
    Finding,
    History,
    Origin,
    Rung,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Quarantine
from agentevals_action.reports import markdown
from agentevals_action.reports.annotations import annotations
from agentevals_action.reports.view import confirmation, cost, differences, waivers
from agentevals_action.reports.view.links import Links
from agentevals_action.review.comparison.compare import Knowledge
from tests.support import reviews

HELD = Quarantine(("*",), "grace", "the service moves", date(2026, 3, 1))


def compared(found: Evidence | None, **fields: Any) -> TestComparison:
    knowledge = Knowledge(evidence={"a": found} if found else {})
    return reviews.compared(
        (reviews.told("a", "fail", **fields),), (reviews.told("a"),), knowledge=knowledge
    ).tests[0]


def comment(*suites: SuiteComparison, **fields: Any) -> str:
    return markdown.comment(reviews.review(*suites, **fields), Links())


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            reviews.evidence(Finding.REGRESSED, (20, 20), (0, 3)),
            "held in 20 of 20 samples on base, in 0 of 3 fresh ones on head (2 failures needed; chance 0.0004 if nothing had changed)",
        ),
        (
            reviews.evidence(Finding.CLEARED, (19, 20), (3, 3)),
            "fell, then held in 3 of 3 fresh samples on head (100%); on base in 19 of 20 (95%)",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (1, 1), (1, 3), needed=None),
            "held in 1 of 1 sample on base, in 1 of 3 fresh ones on head: base has too few samples to tell",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (8, 20), (1, 3), needed=None, reason="no tree"),
            "held in 8 of 20 samples on base, in 1 of 3 fresh ones on head: base itself is too flaky to tell; no tree",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (20, 20), (1, 3), needed=None),
            "held in 20 of 20 samples on base, in 1 of 3 fresh ones on head: so few fresh samples cannot tell; `confirm` allows more",
        ),
        (
            reviews.evidence(Finding.UNDECIDED, (18, 20), (3, 6), needed=4),
            "held in 18 of 20 samples on base, in 3 of 6 fresh ones on head: 4 failures would make a regression, 3 of 6 failed",
        ),
        (
            Evidence(Finding.ERROR, History(1, 1), History(0, 0), reason="timed out"),
            "got worse, and could not be confirmed: timed out",
        ),
        (Evidence(Finding.REGRESSED, History(1, 1), History(0, 1)), ""),
        (None, ""),
    ],
)
def test_evidence__in_words(found: Evidence | None, told: str) -> None:
    assert confirmation.words(compared(found)) == told


def test_chance__is_never_none() -> None:
    assert [
        confirmation.chance(value) for value in (0.0, 0.00009, 0.0001, 0.00043, 0.034, 0.31, 1.0)
    ] == [*("under 0.0001", "under 0.0001", "0.0001", "0.0004", "0.03", "0.3", "1")]


def test_regression__of_what_is_always_the_same_says_nothing_of_samples() -> None:
    certain = Evidence(Finding.REGRESSED, History(1, 1), History(0, 1))
    suite = reviews.compared(
        (reviews.told("a", "fail"),),
        (reviews.told("a"),),
        knowledge=Knowledge(evidence={"a": certain}),
    )
    text = comment(suite)
    assert "1 test regressed" in text
    assert "fresh" not in text


def test_gate__that_fails_now_and_then_is_told_with_its_rate_on_both_sides() -> None:
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


def test_undecided__with_a_failed_gate_is_told_as_a_failure() -> None:
    found = {"a": reviews.evidence(Finding.UNDECIDED, (12, 20), (1, 4), needed=None)}
    head = reviews.history("a", 1, 5, gates=("g",), failed=("g",))
    text = comment(
        reviews.compared(
            (head,),
            (reviews.history("a", 12, 20, gates=("g",)),),
            knowledge=Knowledge(evidence=found),
        )
    )
    assert "### 1 required gate failed" in text
    assert "undecided whether it regressed: held in 12 of 20" in text
    assert "not counted" not in text.lower()


def test_waived__is_out_of_every_list_of_what_counts() -> None:
    head = (
        reviews.told("held", "fail", gates=("g",), failed=("g",)),
        reviews.told("held-error", None),
        reviews.told("accepted", "fail"),
        reviews.told("fine"),
    )
    suite = reviews.compared(head, tuple(reviews.told(one.eval_id, gates=("g",)) for one in head))
    suite = reviews.waived(suite, {"held": HELD, "held-error": HELD}, {"accepted": "ada"})
    review = reviews.review(suite)
    text = markdown.comment(review, Links())
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
    assert markdown.check(review, Links())[0].endswith(
        "Accepted by ada: 1 regression. In quarantine, not counted: 2 tests."
    )
    assert annotations(review, 10) == ((), 0)


def test_accepted__with_a_failed_gate_stays_a_failure() -> None:
    suite = reviews.compared(
        (reviews.told("a", "fail", gates=("new",), failed=("new",)),), (reviews.told("a"),)
    )
    review = reviews.review(reviews.waived(suite, {}, {"a": "ada"}))
    text = markdown.comment(review, Links())
    assert "### 1 required gate failed" in text
    assert "accepted by `ada`" in text
    assert "### 1 regression accepted" not in text
    assert [one.level for one in annotations(review, 10)[0]] == ["failure"]


def test_annotations__flaky_and_undecided_have_none_and_a_regression_says_by_what() -> None:
    suite = reviews.believable().suites[0]
    found, _ = annotations(reviews.review(suite), 10)
    assert [(one.level, one.title) for one in found] == [
        ("failure", "Required gate failed: no-unapproved-refund"),
        ("failure", "Required gate failed: privacy"),
    ]
    assert "It held in 1 of 5 samples on head, in 12 of 20 on base." in found[1].message
    sure = reviews.evidence(Finding.REGRESSED, (20, 20), (0, 3))
    suite = reviews.compared(
        (reviews.told("a", "fail"),),
        (reviews.told("a"),),
        knowledge=Knowledge(evidence={"a": sure}),
    )
    assert (
        "It held in 20 of 20 samples on base, in 0 of 3 fresh ones"
        in annotations(reviews.review(suite), 10)[0][0].message
    )


def with_differences(**fields: Any) -> SuiteComparison:
    return replace(reviews.compared((reviews.told("a"),), (reviews.told("a"),)), **fields)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"score": Difference(0.03, -0.01, 0.07, 0.1, 9, 9)},
            "score +0.03 (−0.01 to +0.07): no change that this suite could tell from noise; it would see one of 0.10 or more",
        ),
        (
            {"score": Difference(-0.2, -0.31, -0.004, 0.1, 9, 9)},
            "score −0.20 (−0.31 to −0.004): lower than on base",
        ),
        (
            {"score": Difference(0.2, -0.9, 1.3, 1.6, 2, 2)},
            "score +0.20 (−0.90 to +1.30): no change that this suite could tell from noise",
        ),
        ({"score": Difference(-0.8, -0.8, -0.8, 0.0, 9, 9)}, "score −0.80: lower than on base"),
        (
            {"cost": Difference(0.002, 0.001, 0.003, 0.001, 9, 9)},
            "cost +$0.0020 (+$0.0010 to +$0.0030): more expensive than on base",
        ),
        (
            {"duration": Difference(-2000.0, -3000.0, -1000.0, 1.0, 9, 9)},
            "time −2.0 s (−3.0 s to −1.0 s): faster than on base",
        ),
        (
            {"duration": Difference(400.0, 20.0, 780.0, 1.0, 9, 9)},
            "time +0.4 s (just above 0 to +0.8 s): slower than on base",
        ),
        (
            {"duration": Difference(-400.0, -780.0, -20.0, 1.0, 9, 9)},
            "time −0.4 s (−0.8 s to just under 0): faster than on base",
        ),
        (
            {"duration": Difference(400.0, -20.0, 780.0, 1.0, 9, 9)},
            "time +0.4 s (just under 0 to +0.8 s): no change that this",
        ),
        (
            {"duration": Difference(400.0, 0.0, 800.0, 1.0, 9, 9)},
            "time +0.4 s (0.0 s to +0.8 s): no change that this suite",
        ),
        (
            {"cost": Difference(0.002, 0.00001, 0.004, 0.001, 9, 9)},
            "cost +$0.0020 (just above 0 to +$0.0040): more expensive than on base",
        ),
        (
            {"score": Difference(0.01, 0.00001, 0.02, 0.1, 9, 9)},
            "score +0.01 (just above 0 to +0.02): higher than on base",
        ),
    ],
)
def test_differences__in_words(fields: dict[str, Difference], told: str) -> None:
    (line,) = differences.lines(with_differences(**fields))
    assert line.startswith(told)


def test_differences__that_no_figure_shows_are_not_told() -> None:
    nothing, tiny = Difference(0.0, 0.0, 0.0, 0.0, 9, 9), Difference(0.000001, -1.0, 1.0, 1.0, 9, 9)
    assert differences.lines(with_differences(score=nothing, cost=tiny, duration=tiny)) == ()
    sure = Difference(0.00004, 0.00001, 0.00007, 0.0, 9, 9)
    assert differences.lines(with_differences(score=sure, cost=sure, duration=sure)) == ()
    assert differences.lines(with_differences()) == ()


def test_pooled__is_over_all_questions() -> None:
    one, other = Difference(0.1, 0.0, 0.2, 0.14, 30, 30), Difference(-0.1, -0.2, 0.0, 0.14, 10, 5)
    both = differences.pooled([one, other])
    assert both is not None
    assert (both.pairs, both.clusters) == (40, 35)
    assert both.mean == pytest.approx(0.05)
    assert both.high - both.mean == pytest.approx((3**2 + 1) ** 0.5 / 40)
    assert differences.pooled([one, None]) is None
    assert differences.pooled([]) is None


def test_table__what_may_be_noise_is_never_called_a_change() -> None:
    head = [
        reviews.told(
            f"t{number}", "borderline" if number == 0 else "pass", cost_usd=0.01 + number / 1000
        )
        for number in range(6)
    ]
    base = [reviews.told(f"t{number}", cost_usd=0.012) for number in range(6)]
    row = next(
        line
        for line in comment(reviews.compared(tuple(head), tuple(base))).splitlines()
        if line.startswith("| ❌")
    )
    assert "| 1.00 →&nbsp;0.95 (within&nbsp;noise) |" in row
    assert "(within&nbsp;noise) | 7.5&nbsp;s |" in row
    more = (*head, *(reviews.told(f"new{number}", cost_usd=0.01) for number in range(6)))
    row = next(
        line
        for line in comment(reviews.compared(more, tuple(base))).splitlines()
        if line.startswith("| ❌")
    )
    assert "$0.0720 →&nbsp;$0.1350 (+88%)" in row


def test_table__its_mean_score_and_the_interval_are_of_the_same_samples() -> None:
    fell = reviews.confirmed(reviews.told("t0", "fail"), 5, 5)
    rest = tuple(reviews.told(f"t{number}") for number in range(1, 5))
    base = (reviews.told("t0"), *rest)
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
    assert "Fresh samples count for verdicts and so for the pass rate, not for mean scores" in text
    assert "Fresh samples" not in comment(
        reviews.compared((reviews.told("t0", "fail"), *rest), base)
    )


def origin_told(origin: Origin) -> str:
    head = base = tuple(reviews.told(f"t{number}") for number in range(3))
    lines = comment(reviews.compared(head, base, origin=origin)).splitlines()
    return next(line for line in lines if line.startswith("Compared")).partition("UTC")[2]


def test_baseline__one_source_for_all_is_told_in_the_sentence() -> None:
    assert (
        origin_told(Origin("rerun", reviews.BASE, 0))
        == ", run again in this job with the base's own files."
    )
    stored = Origin("branch", reviews.BASE, 0, "2025-12-31T23:00:00Z", 20)
    assert (
        origin_told(stored)
        == ": stored results of that commit, at least 20 samples a test, the latest of 2025-12-31 23:00 UTC."
    )
    before = replace(
        stored, commit="0ddba11" * 5, distance=1, time="2025-12-01T00:00:00Z", samples=1, stale=True
    )
    assert origin_told(before) == (
        ": stored results of `0ddba11`, 1 commit before the base, at least 1 sample a test, the latest of 2025-12-01 00:00 UTC"
        " (31 days old), **stale**: older than `baseline-max-age`."
    )
    assert (
        origin_told(Origin("file", None, None, None, 3))
        == ": the baseline file, at least 3 samples a test."
    )
    assert origin_told(Origin("artifact", "0ddba11", 2, "no time", 1)).startswith(
        ": the report of an earlier run of `0ddba11`, 2 commits"
    )


def test_baseline__sources_that_did_not_serve_say_why() -> None:
    tests = (reviews.told("a"),)
    baseline = replace(
        reviews.BASELINE, tried=(Rung("branch", "`agentevals-data` has no results of it @octocat"),)
    )
    text = comment(reviews.compared(tests, tests, origin=Origin("rerun")), baseline=baseline)
    assert "<summary>How the baseline was got</summary>" in text
    assert (
        "- `branch` did not serve: `agentevals-data` has no results of it @&#8203;octocat" in text
    )


def test_baseline__an_answer_that_is_not_stored_is_not_called_empty() -> None:
    kept = reviews.history("a", 2, 3, answer="the latest")
    bare = [replace(sample, candidate_answer="", output_messages=()) for sample in kept.samples]
    base = replace(kept, candidate_answer="", samples=(*bare[:-1], kept.samples[-1]))
    text = comment(reviews.compared((reviews.told("a", "fail"),), (base,)))
    assert "the latest" in text
    text = comment(
        reviews.compared((reviews.told("a", "fail"),), (replace(base, samples=tuple(bare)),))
    )
    assert "*(not stored)*" in text


def test_spent__stored_results_cost_nothing_but_their_fresh_samples_do() -> None:
    fresh = replace(reviews.told("a").samples[0], cost_usd=0.5, replies=2)
    found = {"a": reviews.evidence(Finding.CLEARED, (5, 5), (3, 3), base_samples=(fresh, fresh))}
    head, base = (reviews.told("a", "fail", cost_usd=0.25),), (reviews.told("a", cost_usd=7.0),)
    suite = reviews.compared(
        head, base, knowledge=Knowledge(evidence=found), origin=Origin("branch")
    )
    spent = cost.of_review(reviews.review(suite, baseline=replace(reviews.BASELINE, source="auto")))
    assert spent.cost_usd == pytest.approx(1.25)
    again = replace(suite, origin=Origin("rerun"))
    assert cost.of_review(reviews.review(again)).cost_usd == pytest.approx(7.25)


def test_became__says_it_in_the_words_of_the_comment() -> None:
    tests = {
        test.id: waivers.became(test)
        for suite in reviews.believable().suites
        for test in suite.tests
    }
    assert tests["sums-up"][0] == "undecided"
    assert tests["greets-by-name"] == (
        "flaky",
        "fell, then held in 3 of 3 fresh samples on head (100%); on base in 19 of 20 (95%)",
    )
    assert tests["upsells"] == ("regressed", "accepted by ada")
    assert tests["german"][1].startswith("in quarantine until 2026-03-01, owner grace: ")
    assert tests["case-1"] == ("unchanged",)
    assert confirmation.word(Change.STILL_FAILING) == "still failing"


def test_faults__of_the_configuration_are_not_called_a_suite_s() -> None:
    suite, entry = (
        Diagnostic(Location("a.yaml", 1, 1), "bad"),
        Diagnostic(Location(FILE, 3, 5), "expired"),
    )
    assert "### 1 fault in `.agentevals.yaml`" in comment(invalid=(entry,))
    assert "### 2 faults in suites that the change touches and in `.agentevals.yaml`" in comment(
        invalid=(suite, entry)
    )
    found, _ = annotations(reviews.review(invalid=(suite, entry)), 10)
    assert [one.title for one in found] == ["The suite is invalid", "The configuration is invalid"]
