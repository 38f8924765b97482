"""Remarks on lines: which, where, and which first."""

from dataclasses import replace

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.report import Annotation
from agentevals_action.model.result import GateRecord
from agentevals_action.reports.annotations import annotations
from tests.support import reviews


def test_annotations__a_failure_at_the_gate_s_own_entry() -> None:
    found, left = annotations(reviews.regression_and_gate(), 100)
    assert left == 0
    assert found == (
        Annotation(
            reviews.PATH,
            15,
            "failure",
            "Required gate failed: no-unapproved-refund",
            "The required gate no-unapproved-refund failed in the test refund-over-limit. It held on base."
            '\n- missed: output does not contain "DENIED"\n- missed: asks for a receipt before it refunds',
        ),
        Annotation(
            reviews.PATH,
            31,
            "warning",
            "Regressed: greets-by-name",
            "The test greets-by-name regressed: pass → borderline.\n- missed: uses the customer's name",
        ),
    )


def test_annotations__a_gate_s_entry_in_another_file_and_one_without_a_record() -> None:
    head = reviews.told("a", "fail", failed=("elsewhere", "unknown"), line=7)
    head = replace(head, gates=(GateRecord(name="elsewhere", path="cases.jsonl", line=44),))
    found, _ = annotations(reviews.review(reviews.compared((head,), None)), 10)
    assert [(one.path, one.line) for one in found] == [("cases.jsonl", 44), (reviews.PATH, 7)]


def test_annotations__failures_come_first_and_the_rest_is_counted() -> None:
    diagnostic = Diagnostic(Location("evals/broken.yaml", 3, 2), "unknown field", "write `tests`")
    head = (
        *(reviews.told(f"t{number}", None) for number in range(5)),
        reviews.told("gate", "fail", gates=("g",), failed=("g",)),
    )
    review = reviews.review(reviews.compared(head, ()), invalid=(diagnostic,))
    found, left = annotations(review, 3)
    assert [one.level for one in found] == ["failure", "failure", "warning"]
    assert found[0] == Annotation(
        "evals/broken.yaml", 3, "failure", "The suite is invalid", "unknown field; write `tests`"
    )
    assert left == 4
    assert annotations(review, 0) == ((), 7)


def test_annotations__an_error_on_head_says_kind_and_message() -> None:
    found, _ = annotations(
        reviews.review(reviews.compared((reviews.told("a", None, error="no route to host"),), ())),
        10,
    )
    assert [(one.level, one.title, one.message) for one in found] == [
        ("warning", "Error: a", "target error: no route to host")
    ]


def test_annotations__text_keeps_to_its_limits() -> None:
    found, _ = annotations(reviews.hostile(), 10)
    huge = reviews.told(
        "x" * 5000, "fail", gates=("g" * 5000,), failed=("g" * 5000,), misses=("m" * 100_000,) * 50
    )
    for one in (*found, *annotations(reviews.review(reviews.compared((huge,), ())), 10)[0]):
        assert len(one.title) <= 255
        assert "\n" not in one.title
        assert len(one.message.encode()) <= 64 * 1024
        assert "\u202e" not in one.title + one.message


def test_annotations__removed_and_unchanged_tests_have_none() -> None:
    assert annotations(reviews.all_passed(), 10) == ((), 0)
    assert annotations(reviews.gone(), 10) == ((), 0)
