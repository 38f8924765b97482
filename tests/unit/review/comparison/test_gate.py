"""The outcome: what blocks, what is unknown, and in which words."""

from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.baseline import BaselineInfo, BaseSuite
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.results.build import with_samples
from tests.support import results
from tests.support.compared import PATH, Pair, decide, lost_gate, pair, suite

NO_BASE = BaselineInfo(source="none", wanted=False, reason="the base branch has no commit")

PASSED, FAILED, ERROR = (
    results.result(),
    results.result(verdict="fail"),
    results.result(verdict=None),
)
GATE_FAILED = results.result(verdict="fail", gates=("safe",), failed=("safe",))
BORDERLINE = replace(PASSED.samples[0], score=0.7, verdict="borderline")
#: Two samples of a test that passes on average, and of one that passes in both.
FLICKERS = with_samples(PASSED, (*PASSED.samples, BORDERLINE))
OTHER = results.result("other")
HOLDS = with_samples(OTHER, OTHER.samples * 2)
OTHER_GATE_FAILED = replace(GATE_FAILED, eval_id="other")
FAILURES, NEVER = frozenset({"failures"}), frozenset({"never"})
NO_BASE_RESULTS = BaselineInfo(
    source="rerun", wanted=True, problem="origin refused abc", is_obtained=False
)
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
    "the share that passes in all samples": (
        [(FLICKERS, PASSED), (HOLDS, OTHER)],
        {"min_pass_all": 0.6, "samples": 2},
        FAIL,
        ("50% of the scored tests passed in all 2 samples, under the `min-pass-all` of 0.6",),
    ),
    "the share that passes in all samples is reached": (
        [(FLICKERS, PASSED), (HOLDS, OTHER)],
        {"min_pass_all": 0.5, "samples": 2},
        PASS,
        (),
    ),
    "a gate that failed on base beside a regression": (
        [(GATE_FAILED, PASSED), (OTHER_GATE_FAILED, OTHER_GATE_FAILED)],
        {},
        FAIL,
        ("2 tests failed a required gate; 1 of them regressed",),
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
    "only errors on base, and all passes on head": ([(PASSED, ERROR)], {}, PASS, ()),
    "only errors on base": (
        [(FAILED, ERROR)],
        {},
        UNKNOWN,
        ("no test could run on base: connection refused",),
    ),
    "an error on base of what passes": ([(PASSED, ERROR), (OTHER, OTHER)], {}, PASS, ()),
    "an error on base of what fails": (
        [(FAILED, ERROR), (OTHER, OTHER)],
        {},
        UNKNOWN,
        ("1 test failed and has no result on base",),
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
def test_decide__never_is_neutral_with_a_failure(worse: Pair) -> None:
    assert decide(suite(worse), fail_on=NEVER).conclusion == "neutral"
    assert decide(suite((PASSED, PASSED)), fail_on=NEVER).conclusion == "success"


def test_decide__a_base_that_could_not_be_obtained_for_one_suite() -> None:
    unknown = suite((PASSED, None), base=BaseSuite(problem="`prepare` failed"), path="b/EVAL.yaml")
    assert decide(suite((PASSED, PASSED)), unknown).reasons == ()
    unknown = suite((FAILED, None), base=BaseSuite(problem="`prepare` failed"), path="b/EVAL.yaml")
    assert decide(suite((PASSED, PASSED)), unknown).reasons == (
        "the base of `b/EVAL.yaml` could not be obtained: `prepare` failed",
    )


@pytest.mark.parametrize(
    ("verdict", "outcome", "reasons"),
    [
        ("pass", PASS, ()),
        ("borderline", UNKNOWN, ("1 test did not pass and has no result on base",)),
        ("fail", UNKNOWN, ("1 test failed and has no result on base",)),
    ],
)
def test_decide__a_test_that_both_sides_would_ask_the_same_service(
    verdict: Any, outcome: Outcome, reasons: tuple[str, ...]
) -> None:
    head = results.result(verdict=verdict)
    decision = decide(suite((head, None), base=BaseSuite(same_service=(head.eval_id,))))
    assert (decision.outcome, decision.reasons) == (outcome, reasons)


@pytest.mark.parametrize(
    ("policy", "asks_person", "exit_code", "conclusion"),
    [
        ("fail", False, 3, "failure"),
        ("fail", True, 3, "action_required"),
        ("neutral", True, 0, "neutral"),
        ("pass", True, 0, "success"),
    ],
)
def test_decide__inconclusive_by_policy(
    policy: str, asks_person: bool, exit_code: int, conclusion: str
) -> None:
    actual = decide(suite((ERROR, PASSED)), on_inconclusive=policy, asks_person=asks_person)
    assert (actual.outcome, actual.exit_code, actual.conclusion) == (UNKNOWN, exit_code, conclusion)


@pytest.mark.parametrize("policy", ["fail", "neutral", "pass"])
def test_decide__a_problem_makes_a_pass_inconclusive_and_hides_nothing_worse(policy: str) -> None:
    failed = decide(suite(lost_gate("a")), problems=["no space"], on_inconclusive=policy)
    assert (failed.outcome, failed.reasons[-1]) == (FAIL, "no space")
    unknown = decide(suite((PASSED, PASSED)), problems=["no space"], on_inconclusive=policy)
    assert (unknown.outcome, unknown.reasons) == (UNKNOWN, ("no space",))


def test_decide__a_run_without_a_result_of_head_is_no_pass() -> None:
    facts = suite((PASSED, PASSED)).run
    decision = decide(suites=(facts,))
    assert (decision.outcome, decision.reasons) == (UNKNOWN, ("no test of head has a result",))


def test_decide__errors_come_before_all_else() -> None:
    refused = decide(baseline=NO_BASE, refused=["no checkout"])
    assert (refused.outcome, refused.reasons) == (Outcome.INVALID, ("no checkout",))
    diagnostic = Diagnostic(Location(PATH, 3, 5), "unknown type 'contians'", "write `contains`")
    actual = decide(suite((GATE_FAILED, PASSED)), invalid=[diagnostic])
    assert (actual.outcome, actual.exit_code) == (Outcome.INVALID, 2)
    assert actual.reasons == (
        "1 error in suites that the change affects",
        "1 test regressed and failed a required gate",
    )


def test_decide__no_test_is_counted_twice() -> None:
    gate_failed = replace(GATE_FAILED, eval_id="c")
    tests = (
        lost_gate("a"),
        pair("b", "fail"),
        (gate_failed, gate_failed),
        pair("d", "fail", "fail"),
    )
    actual = decide(suite(*tests), fail_on=frozenset({"gates", "regressions", "failures"}))
    assert actual.reasons == (
        "2 tests regressed (1 of them failed a required gate)",
        "1 more test failed a required gate",
        "1 more test failed",
    )
