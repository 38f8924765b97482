"""The outcome: what blocks, what could not be actual, and in which words."""

from dataclasses import replace
from typing import Literal

import pytest

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Decision, Outcome, Selection
from agentevals_action.model.run import Policy, RunSuite
from agentevals_action.review import gate
from agentevals_action.review.comparison import compare
from tests.support import results

ON_PULL_REQUEST = frozenset({"gates", "regressions"})
RERUN = BaselineInfo(source="rerun", wanted=True, commit="b" * 40)
NO_BASE = BaselineInfo(source="none", wanted=False, reason="the base branch has no commit")


def suite(
    *pairs: tuple[TestResult, TestResult | None], problem: str = "", path: str = "evals/EVAL.yaml"
) -> SuiteComparison:
    head, base = [head for head, _ in pairs], [base for _, base in pairs if base]
    facts = RunSuite(Selection(path, ()), "suite", tuple(row.eval_id for row in head), problem)
    return compare.compare_suite(facts, head, base)


def decide(
    *suites: SuiteComparison,
    baseline: BaselineInfo = RERUN,
    fail_on: frozenset[str] = ON_PULL_REQUEST,
    **policy: object,
) -> Decision:
    return gate.decide(Policy(fail_on, **policy), suites, baseline)  # type: ignore[arg-type]  # the keyword decides the type


PASSED, FAILED, ERROR = (
    results.result(),
    results.result(verdict="fail"),
    results.result(verdict=None),
)
GATE_FAILED = results.result(verdict="fail", gates=("safe",), failed=("safe",))


def test_decide__all_pass() -> None:
    actual = decide(suite((PASSED, PASSED)))
    assert (actual.outcome, actual.exit_code, actual.conclusion, actual.reasons) == (
        Outcome.PASSED,
        0,
        "success",
        (),
    )


def test_decide__no_suite_touched_passes_and_says_so() -> None:
    actual = decide()
    assert actual.outcome is Outcome.PASSED
    assert actual.reasons == ("the change affects no suite",)


def test_decide__a_failed_gate_blocks_whether_or_not_base_failed_it() -> None:
    actual = decide(suite((GATE_FAILED, GATE_FAILED)))
    assert (actual.outcome, actual.exit_code, actual.conclusion) == (Outcome.FAILED, 1, "failure")
    assert actual.reasons == ("1 test failed a required gate",)


def test_decide__a_regression_blocks() -> None:
    assert decide(suite((FAILED, PASSED))).reasons == ("1 test regressed",)


def test_decide__still_failing_does_not_block_a_pull_request() -> None:
    assert decide(suite((FAILED, FAILED))).outcome is Outcome.PASSED


def test_decide__still_failing_blocks_with_failures() -> None:
    assert decide(suite((FAILED, FAILED)), fail_on=frozenset({"failures"})).reasons == (
        "1 test failed",
    )


def test_decide__never_blocks_nothing_but_the_pass_rate() -> None:
    worse = suite((GATE_FAILED, PASSED), (PASSED, PASSED))
    assert decide(worse, fail_on=frozenset({"never"})).outcome is Outcome.PASSED
    actual = decide(worse, fail_on=frozenset({"never"}), min_pass_rate=0.6)
    assert actual.outcome is Outcome.FAILED
    assert actual.reasons == ("1 of 2 scored tests passed, under the `min-pass-rate` of 0.6",)


@pytest.mark.parametrize("worse", [(GATE_FAILED, PASSED), (FAILED, PASSED), (FAILED, FAILED)])
def test_decide__never_is_neutral_with_a_failure(
    worse: tuple[TestResult, TestResult],
) -> None:
    never = frozenset({"never"})
    failed, passed = (
        decide(suite(worse), fail_on=never),
        decide(suite((PASSED,) * 2), fail_on=never),
    )
    assert (failed.outcome, failed.exit_code, failed.conclusion) == (Outcome.PASSED, 0, "neutral")
    assert (passed.outcome, passed.exit_code, passed.conclusion) == (Outcome.PASSED, 0, "success")


@pytest.mark.parametrize("on_inconclusive", ["fail", "neutral", "pass"])
def test_decide__a_problem_makes_a_pass_inconclusive_and_hides_nothing_worse(
    on_inconclusive: Literal["fail", "neutral", "pass"],
) -> None:
    policy = Policy(ON_PULL_REQUEST, on_inconclusive=on_inconclusive)
    failing, passing = suite((GATE_FAILED, PASSED)), suite((PASSED, PASSED))
    failed = gate.decide(policy, [failing], RERUN, problems=["no space"])
    assert (failed.outcome, failed.reasons[-1]) == (Outcome.FAILED, "no space")
    unknown = gate.decide(policy, [passing], RERUN, problems=["no space"])
    assert (unknown.outcome, unknown.reasons) == (Outcome.INCONCLUSIVE, ("no space",))


def test_decide__what_could_not_start_is_invalid() -> None:
    decision = gate.decide(Policy(ON_PULL_REQUEST), (), NO_BASE, refused=["no checkout"])
    assert (decision.outcome, decision.reasons) == (Outcome.INVALID, ("no checkout",))


def test_decide__pass_rate_is_over_what_was_scored() -> None:
    actual = decide(suite((PASSED, PASSED), (ERROR, PASSED)), min_pass_rate=1.0)
    assert actual.outcome is Outcome.INCONCLUSIVE


def test_decide__an_error_on_head_is_inconclusive() -> None:
    actual = decide(suite((PASSED, PASSED), (ERROR, PASSED)))
    assert (actual.outcome, actual.exit_code, actual.conclusion) == (
        Outcome.INCONCLUSIVE,
        3,
        "failure",
    )


def test_decide__a_failed_gate_beats_an_error_and_keeps_both_reasons() -> None:
    actual = decide(suite((GATE_FAILED, PASSED), (ERROR, PASSED)))
    assert actual.outcome is Outcome.FAILED
    assert "1 test ended in an error" in actual.reasons


def test_decide__a_suite_that_scored_nothing_is_inconclusive() -> None:
    assert "the suite `evals/EVAL.yaml` scored no test" in decide(suite((ERROR, PASSED))).reasons
    assert decide(suite()).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("policy", "exit_code", "conclusion"),
    [("fail", 3, "failure"), ("neutral", 0, "neutral"), ("pass", 0, "success")],
)
def test_decide__inconclusive_by_policy(policy: str, exit_code: int, conclusion: str) -> None:
    actual = decide(suite((ERROR, PASSED)), on_inconclusive=policy)
    assert (actual.exit_code, actual.conclusion) == (exit_code, conclusion)
    assert actual.outcome is Outcome.INCONCLUSIVE


def test_decide__a_base_that_could_not_be_obtained_is_never_a_pass() -> None:
    problem = BaselineInfo(source="rerun", wanted=True, problem="origin refused abc")
    actual = decide(suite((PASSED, None), problem="origin refused abc"), baseline=problem)
    assert actual.outcome is Outcome.INCONCLUSIVE
    assert actual.reasons == ("the base could not be obtained: origin refused abc",)


def test_decide__a_base_that_could_not_be_obtained_does_not_matter_without_regressions() -> None:
    problem = BaselineInfo(source="rerun", wanted=True, problem="origin refused abc")
    assert (
        decide(
            suite((PASSED, None), problem="x"), baseline=problem, fail_on=frozenset({"gates"})
        ).outcome
        is Outcome.PASSED
    )


def test_decide__a_base_that_could_not_be_obtained_for_one_suite() -> None:
    actual = decide(
        suite((PASSED, PASSED)),
        suite((PASSED, None), problem="`prepare` failed", path="b/EVAL.yaml"),
    )
    assert actual.reasons == ("the base of `b/EVAL.yaml` could not be obtained: `prepare` failed",)


def test_decide__a_base_of_nothing_but_errors_could_not_be_obtained() -> None:
    assert decide(suite((PASSED, ERROR))).outcome is Outcome.INCONCLUSIVE


def test_decide__an_error_on_base_matters_only_where_head_does_not_pass() -> None:
    other = results.result("other")
    assert decide(suite((PASSED, ERROR), (other, other))).outcome is Outcome.PASSED
    actual = decide(suite((FAILED, ERROR), (other, other)))
    assert actual.outcome is Outcome.INCONCLUSIVE
    assert actual.reasons == (
        "1 test could not be compared with the base and did not pass on head",
    )


def test_decide__nothing_to_compare_with_is_no_doubt() -> None:
    assert decide(suite((FAILED, None)), baseline=NO_BASE).outcome is Outcome.PASSED


def test_decide__errors_come_before_all_else() -> None:
    diagnostic = Diagnostic(
        Location("evals/EVAL.yaml", 3, 5), "unknown evaluator type 'contians'", "write `contains`"
    )
    actual = gate.decide(
        Policy(ON_PULL_REQUEST), [suite((GATE_FAILED, PASSED))], RERUN, [diagnostic]
    )
    assert (actual.outcome, actual.exit_code) == (Outcome.INVALID, 2)
    assert actual.reasons == (
        "1 error in suites that the change affects",
        "1 test regressed and failed a required gate",
    )


def named(id: str, one: TestResult) -> TestResult:
    return replace(one, eval_id=id)


def test_decide__no_test_is_counted_twice() -> None:
    held = results.result(gates=("safe",))
    pairs = ((GATE_FAILED, held), (FAILED, PASSED), (GATE_FAILED, GATE_FAILED), (FAILED, FAILED))
    tests = [
        (named(f"t{at}", head), named(f"t{at}", base)) for at, (head, base) in enumerate(pairs)
    ]
    actual = decide(suite(*tests), fail_on=frozenset({"gates", "regressions", "failures"}))
    assert actual.reasons == (
        "2 tests regressed (1 of them failed a required gate)",
        "1 more test failed a required gate",
        "1 more test failed",
    )


def test_decide__what_blocks_is_not_unknown_too() -> None:
    both = suite((GATE_FAILED, ERROR), (named("other", PASSED), named("other", PASSED)))
    assert decide(both).reasons == ("1 test failed a required gate",)
    without = decide(both, fail_on=frozenset({"regressions"}))
    assert without.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("policy", "conclusion"),
    [("fail", "action_required"), ("neutral", "neutral"), ("pass", "success")],
)
def test_decide__only_what_blocks_asks_for_a_person(
    policy: Literal["fail", "neutral", "pass"], conclusion: str
) -> None:
    asking = Policy(ON_PULL_REQUEST, on_inconclusive=policy, asks_person=True)
    decision = gate.decide(asking, [suite((ERROR, PASSED))], RERUN)
    assert decision.conclusion == conclusion
