"""Head against base: what a test became, and what is never called a regression."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.result import (
    EvaluatorResult,
    Fingerprint,
    SampleResult,
    TestResult,
    Verdict,
)
from agentevals_action.model.run import RunSuite, Selection
from agentevals_action.review.comparison import compare
from agentevals_action.review.rescoring import needs_head_scores
from tests.support import results


def one(
    head: TestResult,
    base: TestResult | None,
    problem: str = "",
    question_files: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> TestComparison:
    facts = RunSuite(
        Selection("evals/EVAL.yaml", ()),
        "suite",
        (head.eval_id,),
        problem,
        question_files=question_files,
    )
    return compare.compare_suite(facts, [head], [base] if base else ()).tests[0]


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
    assert one(results.result(verdict=head), results.result(verdict=base)).change is change


def test_change__a_gate_that_held_fails_though_the_test_failed_before() -> None:
    base = results.result(verdict="fail", gates=("safe", "polite"), failed=("polite",))
    head = results.result(verdict="fail", gates=("safe", "polite"), failed=("safe", "polite"))
    actual = one(head, base)
    assert actual.change is ChangeKind.REGRESSED
    assert actual.gates_lost == ("safe",)


def test_change__a_gate_that_is_new_on_head_is_no_lost_gate() -> None:
    base = results.result(verdict="fail", gates=())
    head = results.result(verdict="fail", gates=("safe",), failed=("safe",))
    assert one(head, base).change is ChangeKind.STILL_FAILING


def test_change__a_failed_gate_that_holds_again_improves() -> None:
    base = results.result(verdict="fail", gates=("safe", "polite"), failed=("safe", "polite"))
    head = results.result(verdict="fail", gates=("safe", "polite"), failed=("polite",))
    assert one(head, base).change is ChangeKind.IMPROVED


def test_change__a_removed_gate_is_listed() -> None:
    base = results.result(verdict="fail", gates=("safe",), failed=("safe",))
    actual = one(results.result(verdict="pass"), base)
    assert actual.gates_removed == ("safe",)


def test_change__another_question_is_never_a_regression() -> None:
    base = results.result(verdict="pass")
    head = results.result(verdict="fail", print=results.fingerprint(question="other"))
    actual = one(head, base, question_files={"test": ("prompts/system.md",)})
    assert actual.change is ChangeKind.QUESTION_CHANGED
    assert "prompts/system.md" in actual.reason
    assert "watch" in actual.reason


def test_change__another_agent_is_compared() -> None:
    base = results.result(verdict="pass")
    assert (
        one(results.result(verdict="fail", print=results.fingerprint(agent="other")), base).change
        is ChangeKind.REGRESSED
    )


def test_change__another_grading_is_compared_only_when_scored_again() -> None:
    base = results.result(verdict="pass")
    head = results.result(verdict="fail", print=results.fingerprint(grading="other"))
    assert one(head, base).change is ChangeKind.NOT_COMPARABLE
    again = one(head, replace(base, rescored=base))
    assert again.change is ChangeKind.REGRESSED
    assert again.regraded


def test_change__a_gate_removed_by_another_grading_is_listed() -> None:
    base = results.result(verdict="pass", gates=("safe",))
    head = results.result(verdict="pass", print=results.fingerprint(grading="other"))
    actual = one(head, replace(base, rescored=results.result(verdict="pass")))
    assert actual.change is ChangeKind.UNCHANGED
    assert actual.gates_removed == ("safe",)


def test_change__another_grading_of_a_base_that_erred_is_an_error_on_base() -> None:
    base = results.result(verdict=None, answer=None)
    assert (
        one(results.result(print=results.fingerprint(grading="other")), base).change
        is ChangeKind.BASE_ERROR
    )


def test_change__new_when_the_base_has_no_such_test() -> None:
    assert one(results.result(), None).change is ChangeKind.NEW


def test_change__a_base_that_could_not_be_obtained_makes_nothing_new() -> None:
    actual = one(results.result(), None, problem="the worktree could not be made")
    assert actual.change is ChangeKind.BASE_ERROR
    assert actual.reason == "the worktree could not be made"


def test_change__removed_tests_come_last_with_their_gates() -> None:
    base = (results.result("gone", gates=("safe",)), results.result("kept"))
    head = (results.result("kept"), results.result("added"))
    facts = RunSuite(Selection("e", ()), "suite", ("kept", "added"))
    suite = compare.compare_suite(facts, head, base)
    assert [(test.id, test.change) for test in suite.tests] == [
        ("kept", ChangeKind.UNCHANGED),
        ("added", ChangeKind.NEW),
        ("gone", ChangeKind.REMOVED),
    ]
    assert suite.tests[-1].gates_removed == ("safe",)


def test_needs_head_scores__only_the_same_question_with_a_stored_answer() -> None:
    head = results.result(print=results.fingerprint(grading="other"))
    assert needs_head_scores(head, results.result())
    assert not needs_head_scores(head, results.result(answer=None))
    assert not needs_head_scores(results.result(), results.result())
    assert not needs_head_scores(
        results.result(print=results.fingerprint("other", "other")), results.result()
    )


def test_needs_head_scores__not_where_a_program_judged_a_folder_that_is_gone() -> None:
    def graded(kind: str, digest: str, changes: str | None) -> TestResult:
        inner = EvaluatorResult(name="inner", type=kind, score=1.0, passed=True)
        outer = EvaluatorResult(
            name="outer", type="composite", score=1.0, passed=True, evaluator_results=(inner,)
        )
        sample = SampleResult(
            verdict="pass",
            score=1.0,
            output_messages=({"role": "assistant", "content": "hi"},),
            file_changes=changes,
        )
        fingerprint = Fingerprint(question="q", grading=digest, agent="a")
        return replace(
            results.result(verdict="pass"),
            evaluator_results=(outer,),
            samples=(sample,),
            fingerprint=fingerprint,
        )

    assert needs_head_scores(graded("code_judge", "new", None), graded("code_judge", "old", None))
    assert needs_head_scores(graded("llm_judge", "new", "+x"), graded("llm_judge", "old", "+x"))
    assert not needs_head_scores(graded("code_judge", "new", ""), graded("code_judge", "old", ""))
    actual = one(graded("code_judge", "new", "+x"), graded("code_judge", "old", "+x"))
    assert (actual.change, actual.reason) == (
        ChangeKind.NOT_COMPARABLE,
        "the grading changed and the folder in which base's agent worked is gone",
    )


def test_change__what_base_reaches_now_and_then_is_no_improvement() -> None:
    wavering = (
        SampleResult(verdict="pass", score=1.0),
        SampleResult(verdict="fail", score=0.0),
        SampleResult(verdict="fail", score=0.0),
    )
    base = replace(results.result(verdict="fail"), samples=wavering)
    assert one(results.result(verdict="pass"), base).change is ChangeKind.UNCHANGED
    steady = replace(base, samples=wavering[1:])
    assert one(results.result(verdict="pass"), steady).change is ChangeKind.IMPROVED
