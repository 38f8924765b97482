"""Head against base: the change of each test, and what is never called a regression."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult, Verdict
from agentevals_action.model.run import RunSuite, Selection
from agentevals_action.review.comparison.states import compare_suite
from agentevals_action.review.run.rescoring import needs_head_scores
from tests.support import results
from tests.support.compared import suite


def compared(head: TestResult, on_base: TestResult | None, **fields: Any) -> TestComparison:
    return suite((head, on_base), **fields).tests[0]


@pytest.mark.parametrize(
    ("base", "head", "change"),
    [
        ("pass", "pass", ChangeKind.UNCHANGED),
        ("borderline", "borderline", ChangeKind.UNCHANGED),
        ("fail", "fail", ChangeKind.STILL_FAILING),
        ("pass", "borderline", ChangeKind.REGRESSED),
        ("pass", "fail", ChangeKind.REGRESSED),
        ("borderline", "fail", ChangeKind.REGRESSED),
        ("fail", "borderline", ChangeKind.IMPROVED),
        ("borderline", "pass", ChangeKind.IMPROVED),
        ("pass", None, ChangeKind.HEAD_ERROR),
        (None, None, ChangeKind.HEAD_ERROR),
        (None, "pass", ChangeKind.BASE_ERROR),
        (None, "fail", ChangeKind.BASE_ERROR),
    ],
)
def test_change__by_verdicts(
    base: Verdict | None, head: Verdict | None, change: ChangeKind
) -> None:
    assert compared(results.result(verdict=head), results.result(verdict=base)).change is change


BOTH = ("safe", "polite")


@pytest.mark.parametrize(
    ("base", "head", "change"),
    [
        ((BOTH, ("polite",)), (BOTH, BOTH), ChangeKind.REGRESSED),
        (((), ()), (("safe",), ("safe",)), ChangeKind.STILL_FAILING),
        ((BOTH, BOTH), (BOTH, ("polite",)), ChangeKind.IMPROVED),
    ],
    ids=["held on base", "new on head", "holds again"],
)
def test_change__by_failed_gates(
    base: tuple[tuple[str, ...], ...], head: tuple[tuple[str, ...], ...], change: ChangeKind
) -> None:
    on_head, on_base = (
        results.result(verdict="fail", gates=gates, failed=failed) for gates, failed in (head, base)
    )
    actual = compared(on_head, on_base)
    assert actual.change is change
    assert actual.gates_lost == (("safe",) if change is ChangeKind.REGRESSED else ())


def test_change__a_removed_gate_is_listed() -> None:
    base = results.result(verdict="fail", gates=("safe",), failed=("safe",))
    assert compared(results.result(verdict="pass"), base).gates_removed == ("safe",)
    other = results.result(verdict="pass", print=results.fingerprint(grading="other"))
    base = results.result(verdict="pass", gates=("safe",))
    actual = compared(other, replace(base, by_head=results.result(verdict="pass")))
    assert (actual.change, actual.gates_removed) == (ChangeKind.UNCHANGED, ("safe",))


def test_change__another_question_is_never_a_regression() -> None:
    head = results.result(verdict="fail", print=results.fingerprint(question="other"))
    files = {"test": ("prompts/system.md",)}
    actual = compared(head, results.result(verdict="pass"), question_files=files)
    assert actual.change is ChangeKind.QUESTION_CHANGED
    assert "prompts/system.md" in actual.reason
    assert "watch" in actual.reason


def test_change__another_question_of_a_runner_s_tests_names_its_file() -> None:
    head = results.result(verdict="fail", print=results.fingerprint(question="other"))
    files = ("prompts/a.txt",)
    actual = compared(head, results.result(), runner="pytest", suite_question_files=files)
    assert actual.change is ChangeKind.QUESTION_CHANGED
    assert actual.reason == (
        "changed through prompts/a.txt; if that is the agent's own prompt, put it under `watch`"
    )


def test_change__another_agent_is_compared() -> None:
    head = results.result(verdict="fail", print=results.fingerprint(agent="other"))
    assert compared(head, results.result(verdict="pass")).change is ChangeKind.REGRESSED


def test_change__another_grading_is_compared_only_when_scored_again() -> None:
    base = results.result(verdict="pass")
    head = results.result(verdict="fail", print=results.fingerprint(grading="other"))
    assert compared(head, base).change is ChangeKind.NOT_COMPARABLE
    again = compared(head, replace(base, by_head=base))
    assert (again.change, again.rescored) == (ChangeKind.REGRESSED, True)
    error = results.result(verdict=None, answer=None)
    assert compared(head, error).change is ChangeKind.BASE_ERROR


def test_change__new_when_the_base_has_no_such_test() -> None:
    assert compared(results.result(), None).change is ChangeKind.NEW
    unknown = compared(
        results.result(), None, base=BaseSuite(problem="the worktree could not be made")
    )
    assert unknown.change is ChangeKind.BASE_ERROR
    assert unknown.reason == "the worktree could not be made"


def test_change__not_comparable_when_both_sides_ask_the_same_service() -> None:
    names = {"base": BaseSuite(same_service=(results.result().eval_id,))}
    actual = compared(results.result(), None, **names)
    assert actual.change is ChangeKind.NOT_COMPARABLE
    assert actual.reason == "both sides would ask the same service"
    assert compared(results.result(verdict=None), None, **names).change is ChangeKind.HEAD_ERROR


def test_change__removed_tests_come_last_with_their_gates() -> None:
    kept, added, gone = results.result("kept"), results.result("added"), results.result("gone")
    base = replace(gone, gates=results.result(gates=("safe",)).gates)
    actual = compare_suite(RunSuite(Selection("e", ()), "suite", ()), (kept, added), (base, kept))
    assert [(test.id, test.change, test.gates_removed) for test in actual.tests] == [
        ("kept", ChangeKind.UNCHANGED, ()),
        ("added", ChangeKind.NEW, ()),
        ("gone", ChangeKind.REMOVED, ("safe",)),
    ]


def test_change__what_base_reaches_now_and_then_is_no_improvement() -> None:
    failed = SampleResult(verdict="fail", score=0.0)
    varying = (SampleResult(verdict="pass", score=1.0), failed, failed)
    base = replace(results.result(verdict="fail"), samples=varying)
    assert compared(results.result(verdict="pass"), base).change is ChangeKind.UNCHANGED
    steady = replace(base, samples=varying[1:])
    assert compared(results.result(verdict="pass"), steady).change is ChangeKind.IMPROVED


def test_needs_head_scores__only_the_same_question_with_a_stored_answer() -> None:
    head = results.result(print=results.fingerprint(grading="other"))
    assert needs_head_scores(head, results.result())
    assert not needs_head_scores(head, results.result(answer=None))
    assert not needs_head_scores(results.result(), results.result())
    other = results.result(print=results.fingerprint("other", "other"))
    assert not needs_head_scores(other, results.result())


def graded(kind: str, grading: str, changes: str | None) -> TestResult:
    """A result of a composite with this type of evaluator in it, about an agent in a workspace."""
    inner = EvaluatorResult(name="inner", type=kind, score=1.0)
    outer = EvaluatorResult(name="outer", type="composite", score=1.0, evaluator_results=(inner,))
    row = results.result(print=results.fingerprint(grading=grading), evaluator_results=(outer,))
    return replace(row, samples=(replace(row.samples[0], file_changes=changes),))


def test_needs_head_scores__not_where_a_program_judged_a_folder_that_is_gone() -> None:
    assert needs_head_scores(graded("code_judge", "new", None), graded("code_judge", "old", None))
    assert needs_head_scores(graded("llm_judge", "new", "+x"), graded("llm_judge", "old", "+x"))
    head, base = graded("code_judge", "new", ""), graded("code_judge", "old", "")
    assert not needs_head_scores(head, base)
    actual = compared(head, base)
    assert (actual.change, actual.reason) == (
        ChangeKind.NOT_COMPARABLE,
        "the grading changed and the folder in which base's agent worked is gone",
    )
