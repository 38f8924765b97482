"""Whether the cost or the time of a suite rose: which tests count, what is shown, and what is
unknown."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.comparison import Increase, Outcome
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult, TraceSummary
from agentevals_action.model.run import Figure, Policy, RunSuite, Selection
from agentevals_action.results.build import with_samples, with_suite_samples
from agentevals_action.review.comparison.increases import (
    Pair,
    find_increases,
    measure_rise,
)
from tests.support import results

SUITE = RunSuite(Selection("EVAL.yaml", ()), "suite", ())
REGRESSIONS = frozenset({"gates", "regressions"})
PASS, FAIL, UNKNOWN = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE
ERROR = SampleResult(error=ErrorInfo(kind="target", message="base is gone"))


def sample(cost: float | None, **fields: Any) -> SampleResult:
    trace = TraceSummary(cost_usd=cost, duration_ms=None if cost is None else 1000 * cost)
    return SampleResult(score=1.0, verdict="pass", trace_summary=trace, **fields)


def row(
    name: str, costs: Sequence[float | None], again: Sequence[float | SampleResult | None] = ()
) -> TestResult:
    """A test whose samples have these costs, and a thousand times as many milliseconds; `again` are
    those of the confirmation."""
    made = replace(results.result(name), target="agent")
    made = with_samples(made, [sample(cost) for cost in costs])
    taken = [each if isinstance(each, SampleResult) else sample(each) for each in again]
    return with_suite_samples(made, taken)


def pairs(head: Sequence[Any], base: Sequence[Any]) -> list[Pair]:
    """Tests with these samples, and maybe fresh ones, on both sides."""
    found = []
    for number, sides in enumerate(zip(head, base, strict=True)):
        rows = [
            row(f"t{number}", *each) if isinstance(each, tuple) else row(f"t{number}", each)
            for each in sides
        ]
        found.append((rows[0], rows[1]))
    return found


def find(tests: Sequence[Pair], **fields: Any) -> Increase:
    """The condition that the cost does not rise by more than 20 %."""
    policy = Policy(REGRESSIONS, **{"max_cost_increase": 0.2, **fields})
    (found,) = find_increases(SUITE, tests, policy, 1)
    return found


SAME, MORE = ([1.0], [1.0] * 3), ([1.5], [1.5] * 3)
ONCE, NOISE = ([1.5], [1.0] * 3), ([1.5], [2.0, 1.0, 0.8])
#: The tests of head and of base, fields of the policy, the outcome and the beginning of the reason.
CASES: dict[str, tuple[Sequence[Any], Sequence[Any], dict[str, Any], Outcome, str]] = {
    "nothing changed": ([[1.0]] * 6, [[1.0]] * 6, {}, PASS, ""),
    "a rise up to the limit": ([[1.2]] * 6, [[1.0]] * 6, {}, PASS, ""),
    "a confirmed rise": ([MORE] * 6, [SAME] * 6, {}, FAIL, ""),
    "a rise that is not confirmed": ([ONCE] * 6, [SAME] * 6, {}, PASS, ""),
    "a rise of which no fresh samples are there": (
        *([[1.5]] * 6, [[1.0]] * 6, {}, UNKNOWN),
        "it rose and could not be confirmed: no fresh samples were taken",
    ),
    "a rise of which base takes no samples": (
        *([([1.5], [ERROR])] * 6, [([1.0], [ERROR])] * 6, {}, UNKNOWN),
        "it rose and could not be confirmed: base is gone",
    ),
    "a rise without a confirmation": ([[1.5]] * 6, [[1.0]] * 6, {"confirm": 0}, FAIL, ""),
    "a rise of one test of many is not beyond noise": (
        *([[4.0], *[[1.0]] * 5], [[1.0]] * 6, {"confirm": 0}, PASS, ""),
    ),
    "a rise of all samples of so few tests": (
        *([MORE] * 2, [SAME] * 2, {}, UNKNOWN),
        "it rose, and the tests are too few to show it (2 tests)",
    ),
    "few tests that did not rise again": ([ONCE] * 2, [SAME] * 2, {}, PASS, ""),
    "a cost that is unknown on head": (
        *([[None], *[[1.0]] * 6], [[1.0]] * 7, {}, UNKNOWN),
        "unknown on head of 1 test (target `agent`: give it a `price`)",
    ),
    "a cost of which one sample is unknown on head": (
        *([[1.0, None], *[[1.0]] * 6], [[1.0]] * 7, {}, UNKNOWN),
        "unknown on head of 1 test (target `agent`: give it a `price`)",
    ),
    "a confirmed rise beside a cost that is unknown": (
        *([[None], *[MORE] * 6], [[1.0], *[SAME] * 6], {}, FAIL),
        "unknown on head of 1 test (target `agent`: give it a `price`)",
    ),
    "a cost that is unknown on base": (
        *([[1.0]] * 7, [[None], *[[1.0]] * 6], {}, PASS),
        "unknown on base of 1 test (target `agent`: give it a `price`)",
    ),
    "a cost that is unknown in some samples of base": (
        *([[1.0]] * 6, [[None, 1.0]] * 6, {}, PASS, ""),
    ),
    "a cost that is known of no test": (
        *([[1.0]] * 6, [[None]] * 6, {}, UNKNOWN),
        "no test has it on both sides; unknown on base of 6 tests",
    ),
    "what cost nothing": ([[1.0]] * 6, [[0.0]] * 6, {}, UNKNOWN, "it is 0 on base"),
    "what costs nothing": ([[0.0]] * 6, [[0.0]] * 6, {}, PASS, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_increase__by_samples_of_both_sides(name: str) -> None:
    head, base, fields, outcome, reason = CASES[name]
    found = find(pairs(head, base), **fields)
    assert (found.outcome, found.reason[: len(reason)]) == (outcome, reason)
    assert bool(found.reason) == bool(reason)
    time = find(pairs(head, base), max_cost_increase=None, max_latency_increase=0.2, **fields)
    assert time.outcome is outcome


def test_increase__the_tests_have_a_verdict_and_one_question_on_both_sides() -> None:
    (asked, was), (scored, failed), *rest = pairs([[9.0], [9.0], *[[1.0]] * 6], [[1.0]] * 8)
    asked = replace(asked, fingerprint=results.fingerprint("another"))
    found = find([(asked, was), (scored, replace(failed, verdict=None)), *rest])
    assert found.first is not None
    assert (found.first.pairs, found.first.ratio) == (6, 1.0)
    advisory = ErrorInfo(kind="advisory", message="only advisory judges")
    judged = find([(replace(scored, verdict=None, error=advisory), failed), *rest])
    assert judged.first is not None
    assert (judged.first.pairs, judged.first.ratio) == (7, 15 / 7)


def test_increase__without_a_pair_only_a_base_that_should_be_there_is_unknown() -> None:
    policy = Policy(REGRESSIONS, max_cost_increase=0.1, max_latency_increase=0.1)
    assert find_increases(SUITE, [], policy, 1) == ()
    assert find_increases(SUITE, pairs([[9.0]], [[1.0]]), Policy(REGRESSIONS), 1) == ()
    gone = replace(SUITE, base=BaseSuite(problem="origin refused\nmore"))
    assert [
        (found.figure, found.outcome, found.reason) for found in find_increases(gone, [], policy, 1)
    ] == [("cost", UNKNOWN, "origin refused"), ("latency", UNKNOWN, "origin refused")]
    shared = replace(SUITE, base=BaseSuite(same_service=("a",)))
    assert (
        find_increases(shared, [], policy, 1)[0].reason == "both sides would ask the same service"
    )


def test_increase__cached_replies_are_compared_by_what_they_cost_once() -> None:
    tests = [
        (
            with_samples(head, [replace(each, cached=True) for each in head.samples]),
            with_samples(base, base.samples),
        )
        for head, base in pairs([[1.5]] * 6, [[1.0]] * 6)
    ]
    assert find(tests, confirm=0).outcome is FAIL
    # Fresh samples would have other replies, unless all of them are recorded.
    assert find(tests).outcome is UNKNOWN
    steady = replace(SUITE, steady=tuple(head.eval_id for head, _ in tests))
    policy = Policy(REGRESSIONS, max_cost_increase=0.2)
    (found,) = find_increases(steady, tests, policy, 1)
    assert (found.outcome, found.fresh) == (FAIL, None)


def test_rise__cost_is_of_the_sum_and_time_of_the_typical_test() -> None:
    # One long test, which takes as long as before.
    points = [[(100.0, 100.0)], *[[(1.0, 1.5)]] * 9]
    cost, time = (measure_rise(points, figure, 0.2, 0.05) for figure in ("cost", "latency"))
    assert cost
    assert time
    assert cost.ratio == pytest.approx(113.5 / 109)
    assert cost.exceeds is False
    assert (time.ratio, time.exceeds) == (1.5, True)
    assert time.low is not None


def test_rise__the_turns_of_a_conversation_are_one_test() -> None:
    turns = [(1.0, 2.0)] * 12
    alone = measure_rise([[each] for each in turns], "cost", 0.2, 0.05)
    together = measure_rise([turns[:6], turns[6:]], "cost", 0.2, 0.05)
    assert alone
    assert together
    assert (alone.exceeds, together.exceeds) == (True, None)
    assert (alone.pairs, together.pairs) == (12, 12)


@pytest.mark.parametrize("figure", ["cost", "latency"])
def test_rise__its_bound_is_the_same_each_time_and_lower_at_a_lower_level(figure: Figure) -> None:
    rng = Random(3)
    points = [[(1.0, 1.4 * math.exp(rng.gauss(0, 0.2)))] for _ in range(40)]
    once, again, strict = (
        measure_rise(points, figure, 0.1, level) for level in (0.05, 0.05, 0.001)
    )
    assert once == again
    assert once
    assert strict
    assert once.low
    assert strict.low
    assert 1.1 < strict.low < once.low < once.ratio


def test_needs_confirmation__a_part_is_sampled_if_the_figure_rose_in_it() -> None:
    unsure = find(pairs([[2.2], [0.9], [1.0], [1.1], [1.2], [1.3]], [[1.0]] * 6))
    assert unsure.first
    assert unsure.first.exceeds is False
    for found, needed in (
        (unsure, (False, True)),
        (find(pairs([[1.0]] * 6, [[1.0]] * 6)), (False, False)),
        (find(pairs([[1.5]] * 6, [[1.0]] * 6)), (True, True)),
        (find(pairs([[1.5]] * 2, [[1.0]] * 2)), (True, True)),
        (find(pairs([[1.0]] * 6, [[None]] * 6)), (False, False)),
    ):
        assert tuple(found.needs_confirmation(is_part=part) for part in (False, True)) == needed


@pytest.mark.parametrize(
    ("fail_on", "limits", "share"),
    [
        (REGRESSIONS, {}, 1),
        (REGRESSIONS, {"max_cost_increase": 0.1}, 2),
        (REGRESSIONS, {"max_cost_increase": 0.1, "max_latency_increase": 0.1}, 3),
        (frozenset({"failures"}), {"max_latency_increase": 0.1}, 1),
        (frozenset({"never"}), {}, 1),
    ],
)
def test_level__is_alpha_divided_among_the_conditions(
    fail_on: frozenset[str], limits: dict[str, float], share: int
) -> None:
    assert Policy(fail_on, alpha=0.06, **limits).level == pytest.approx(0.06 / share)  # type: ignore[arg-type]  # of a table
