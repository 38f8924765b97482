"""The groups of tests, and their order."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from agentevals_action.formatting import counted
from agentevals_action.model.comparison import Evidence, Finding, SuiteComparison
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import Fingerprint, TestResult
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.groups import GROUPS
from agentevals_action.reports.view.sentences import alert, describe_change, headline
from tests.support import results, reviews

HELD = Quarantine(tests=("*",), owner="grace", reason="the service moves", expires=date(2026, 3, 1))
GATE: dict[str, Any] = {"gates": ("g",)}
FAILED: dict[str, Any] = {"gates": ("g",), "failed": ("g",)}


def compare_one(
    head: TestResult | None, base: TestResult | None, evidence: Evidence | None = None
) -> SuiteComparison:
    heads, bases = (head,) if head else (), (base,) if base else ()
    return reviews.compared(heads, bases, evidence={"a": evidence} if evidence else {})


def find_groups(suite: SuiteComparison) -> list[str]:
    view = build_view(reviews.review(suite))
    return [key for key, tests in view.groups.items() if tests]


def checked(*passed: bool) -> TestResult:
    """A test that passes whose composite has a child for each of these."""
    children = tuple(
        results.evaluated(f"child {number}", float(is_held), passed=is_held)
        for number, is_held in enumerate(passed)
    )
    return reviews.result(
        "a", evaluator_results=(results.evaluated(passed=True, evaluator_results=children),)
    )


def rubric(hits: tuple[str, ...] = (), misses: tuple[str, ...] = ()) -> TestResult:
    """A test that passes, with a rubric of five criteria that passes, too."""
    result = replace(results.evaluated(passed=True, misses=misses), type="rubric")
    return reviews.result("a", evaluator_results=(result,), hits=hits, misses=misses)


LOST = ["evaluatorsLost"]
PASS, FAIL = reviews.result("a"), reviews.result("a", "fail")
CASES: dict[str, tuple[TestResult | None, TestResult | None, Evidence | None, list[str]]] = {
    "same": (PASS, PASS, None, []),
    "gate": (reviews.result("a", "fail", **FAILED), PASS, None, ["failedGates"]),
    "regressed": (FAIL, PASS, None, ["regressions"]),
    "new and failed": (FAIL, None, None, ["failures", "new"]),
    "error": (reviews.result("a", None), PASS, None, ["errors"]),
    "error on base": (PASS, reviews.result("a", None), None, ["notCompared"]),
    "improved": (PASS, FAIL, None, ["improved"]),
    "new": (PASS, None, None, ["new"]),
    "with an evaluator that fails now": (checked(True, False), checked(True, True), None, LOST),
    "with an evaluator that failed before": (checked(True, False), checked(True, False), None, []),
    "with an evaluator that is new": (checked(True, False), checked(True), None, []),
    "with a criterion that is lost": (
        rubric(misses=("r-1: A.",)),
        rubric(hits=("r-1: A.",)),
        None,
        LOST,
    ),
    "with a criterion that base lacks": (rubric(misses=("r-1: A.",)), rubric(), None, []),
    "removed": (None, PASS, None, ["removed"]),
    "question": (
        reviews.result("a", print=results.fingerprint(question="other")),
        PASS,
        None,
        ["questionChanged"],
    ),
    "still failing": (FAIL, FAIL, None, ["stillFailing"]),
    "gate now and then": (
        reviews.history("a", 3, 4, **FAILED),
        PASS,
        None,
        ["flaky", "scoreMoved"],
    ),
    "undecided": (
        FAIL,
        PASS,
        reviews.evidence(Finding.UNDECIDED, (20, 20), (1, 3)),
        ["undecided"],
    ),
    "unproven": (FAIL, PASS, reviews.evidence(Finding.UNDECIDED, (5, 5), (0, 3)), ["unproven"]),
    "cleared": (FAIL, PASS, reviews.evidence(Finding.CLEARED, (5, 5), (3, 3)), ["flaky"]),
    "unconfirmed": (FAIL, PASS, reviews.evidence(Finding.ERROR, (1, 1), (0, 0)), ["errors"]),
    "undecided, with a gate": (
        reviews.result("a", "fail", **FAILED),
        PASS,
        reviews.evidence(Finding.UNDECIDED, (12, 20), (1, 4)),
        ["failedGates"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_groups__of_a_test(name: str) -> None:
    head, base, evidence, expected = CASES[name]
    suite = compare_one(head, base, evidence)
    assert find_groups(suite) == expected
    assert find_groups(reviews.waived(suite, {"a": HELD}, {})) == ["quarantined"]


def test_groups__an_accepted_regression_but_no_failed_gate_is_accepted() -> None:
    accepted = {"a": "ada"}
    assert find_groups(reviews.waived(compare_one(FAIL, PASS), {}, accepted)) == ["accepted"]
    gate = compare_one(reviews.result("a", "fail", **FAILED), PASS)
    assert find_groups(reviews.waived(gate, {}, accepted)) == ["failedGates"]


def test_groups__of_edits() -> None:
    view = build_view(reviews.edited())
    assert [test.comparison.id for test in view.groups["passedByEdits"]] == [
        "refund-over-limit",
        "greets-by-name",
    ]
    assert [test.comparison.id for test in view.groups["notScoredByBase"]] == ["opening-hours"]


def test_groups__keys_and_titles_are_unique() -> None:
    assert len({group.key for group in GROUPS}) == len({group.label for group in GROUPS})
    assert len(GROUPS) == len({group.key for group in GROUPS})


def test_errors__are_counted_by_kind() -> None:
    (errors,) = (group for group in GROUPS if group.key == "errors")
    heads = [results.result(name, None, error="why") for name in ("a", "b")]
    tests = [*reviews.compared(tuple(heads), ()).tests, *compare_one(FAIL, PASS).tests]
    assert errors.describe(tests) == (
        "2 tests ended in an error: target failed and 1 test got worse and could not be confirmed"
    )


def test_headline__names_what_does_not_count_and_what_was_removed() -> None:
    assert headline(build_view(reviews.waived_alone())).endswith(
        "; 1 regression accepted by `ada`; 2 tests in quarantine; 1 test undecided."
    )
    assert headline(build_view(reviews.gone())) == (
        "Passed: 2 tests in 1 suite, all pass; none regressed; "
        "1 suite, 1 test and 3 required gates of the base were removed."
    )


def test_headline__does_not_call_unregressed_what_was_not_compared() -> None:
    head = (reviews.result("a"), reviews.result("b"))
    ends = {("a", "b"): "", ("b",): "none regressed; "}
    for names, before in ends.items():
        suite = reviews.compared(head, head[: 2 - len(names)], same_service=names)
        assert headline(build_view(reviews.review(suite))) == (
            "Passed: 2 tests in 1 suite, all pass; "
            f"{before}{counted(len(names), 'test')} could not be compared with the base "
            "(both sides would ask the same service)."
        )


def test_alert__is_no_tip_where_an_incomparable_test_fails_that_passed_on_base() -> None:
    other = Fingerprint(question="other", grading="g", agent="a")
    before = (replace(reviews.result("a"), fingerprint=other),)
    after = replace(reviews.result("a", "fail"), fingerprint=replace(other, question="new"))
    view = build_view(reviews.review(reviews.compared((after,), before)))
    assert view.review.decision.outcome == "passed"
    assert alert(view) == "WARNING"
    assert "1 test passed on base and fails on head, and cannot be compared" in headline(view)


def test_change__is_described_with_its_waiver_and_its_confirmation() -> None:
    tests = {
        test.id: describe_change(test)
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


def test_turns__are_numbered_and_next_to_each_other_where_the_first_is() -> None:
    names = (("a2", "a"), ("-", None), ("b1", "b"), ("a1", "a"), ("+", "alone"), ("b2", "b"))
    head = tuple(reviews.result(name, conversation_id=talk) for name, talk in names)
    view = build_view(reviews.review(reviews.compared(head, None)))
    assert view.groups["new"] == view.tests
    assert [(test.comparison.id, str(test.turn or "")) for test in view.tests] == [
        ("a2", "turn 1 of 2"),
        ("a1", "turn 2 of 2"),
        ("-", ""),
        ("b1", "turn 1 of 2"),
        ("b2", "turn 2 of 2"),
        ("+", ""),
    ]
