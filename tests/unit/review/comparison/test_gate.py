"""The outcome: what blocks, what could not be actual, and in which words."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Decision, Outcome
from agentevals_action.model.run import Policy, RunSuite, Selection
from agentevals_action.review.comparison import compare, gate
from tests.support import results

ON_PULL_REQUEST = frozenset({"gates", "regressions"})
RERUN = BaselineInfo(source="rerun", wanted=True, commit="b" * 40)
NO_BASE = BaselineInfo(source="none", wanted=False, reason="the base branch has no commit")


Pair = tuple[TestResult, TestResult | None]


def suite(*pairs: Pair, problem: str = "", path: str = "evals/EVAL.yaml") -> SuiteComparison:
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


OTHER = results.result("other")
FAILURES, NEVER = frozenset({"failures"}), frozenset({"never"})
NO_BASE_RESULTS = BaselineInfo(source="rerun", wanted=True, problem="origin refused abc")
UNKNOWN, PASS, FAIL = Outcome.INCONCLUSIVE, Outcome.PASSED, Outcome.FAILED
#: The pairs of head and base, the settings, and what they give.
CASES: dict[str, tuple[list[Pair], dict[str, Any], Outcome, tuple[str, ...]]] = {
    "all pass": ([(PASSED, PASSED)], {}, PASS, ()),
    "a gate that failed on base": (
        [(GATE_FAILED, GATE_FAILED)],
        {},
        FAIL,
        ("1 test failed a required gate",),
    ),
    "a regression": ([(FAILED, PASSED)], {}, FAIL, ("1 test regressed",)),
    "still failing": ([(FAILED, FAILED)], {}, PASS, ()),
    "still failing, by failures": (
        [(FAILED, FAILED)],
        {"fail_on": FAILURES},
        FAIL,
        ("1 test failed",),
    ),
    "never": ([(GATE_FAILED, PASSED)], {"fail_on": NEVER}, PASS, ()),
    "the pass rate": (
        [(GATE_FAILED, PASSED), (OTHER, OTHER)],
        {"fail_on": NEVER, "min_pass_rate": 0.6},
        FAIL,
        ("1 of 2 scored tests passed, under the `min-pass-rate` of 0.6",),
    ),
    "the pass rate is of what was scored": (
        [(OTHER, OTHER), (ERROR, PASSED)],
        {"min_pass_rate": 1.0},
        UNKNOWN,
        ("1 test ended in an error",),
    ),
    "a gate beside an error": (
        [(GATE_FAILED, PASSED), (replace(ERROR, eval_id="other"), OTHER)],
        {},
        FAIL,
        ("1 test regressed and failed a required gate", "1 test ended in an error"),
    ),
    "nothing scored": (
        [(ERROR, PASSED)],
        {},
        UNKNOWN,
        ("1 test ended in an error", "the suite `evals/EVAL.yaml` scored no test"),
    ),
    "no base results": (
        [(PASSED, None)],
        {"baseline": NO_BASE_RESULTS},
        UNKNOWN,
        ("the base could not be obtained: origin refused abc",),
    ),
    "no base results that matter": (
        [(PASSED, None)],
        {"baseline": NO_BASE_RESULTS, "fail_on": frozenset({"gates"})},
        PASS,
        (),
    ),
    "only errors on base": (
        [(PASSED, ERROR)],
        {},
        UNKNOWN,
        ("the base could not be obtained: all its tests ended in errors",),
    ),
    "an error on base of what passes": ([(PASSED, ERROR), (OTHER, OTHER)], {}, PASS, ()),
    "an error on base of what fails": (
        [(FAILED, ERROR), (OTHER, OTHER)],
        {},
        UNKNOWN,
        ("1 test could not be compared with the base and did not pass on head",),
    ),
    "nothing to compare with": ([(FAILED, None)], {"baseline": NO_BASE}, PASS, ()),
    "what blocks is not unknown too": (
        [(GATE_FAILED, ERROR), (OTHER, OTHER)],
        {},
        FAIL,
        ("1 test failed a required gate",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decide__by_tests_and_settings(name: str) -> None:
    pairs, settings, outcome, reasons = CASES[name]
    decision = decide(suite(*pairs), **settings)
    assert (decision.outcome, decision.reasons) == (outcome, reasons)
    assert decision.exit_code == {PASS: 0, FAIL: 1, UNKNOWN: 3}[outcome]


def test_decide__no_suite_touched_passes_and_says_so() -> None:
    assert decide().reasons == ("the change affects no suite",)
    assert decide(untouched="neutral").conclusion == "neutral"


@pytest.mark.parametrize("worse", [(GATE_FAILED, PASSED), (FAILED, PASSED), (FAILED, FAILED)])
def test_decide__never_is_neutral_with_a_failure(worse: tuple[TestResult, TestResult]) -> None:
    assert decide(suite(worse), fail_on=NEVER).conclusion == "neutral"
    assert decide(suite((PASSED, PASSED)), fail_on=NEVER).conclusion == "success"


def test_decide__a_base_that_could_not_be_obtained_for_one_suite() -> None:
    known = suite((PASSED, PASSED))
    unknown = suite((PASSED, None), problem="`prepare` failed", path="b/EVAL.yaml")
    assert decide(known, unknown).reasons == (
        "the base of `b/EVAL.yaml` could not be obtained: `prepare` failed",
    )


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


@pytest.mark.parametrize(
    ("policy", "exit_code", "conclusion"),
    [("fail", 3, "failure"), ("neutral", 0, "neutral"), ("pass", 0, "success")],
)
def test_decide__inconclusive_by_policy(policy: str, exit_code: int, conclusion: str) -> None:
    actual = decide(suite((ERROR, PASSED)), on_inconclusive=policy)
    assert (actual.exit_code, actual.conclusion) == (exit_code, conclusion)
    assert actual.outcome is Outcome.INCONCLUSIVE


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
