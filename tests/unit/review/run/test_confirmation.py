import asyncio
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.comparison import ChangeKind, Counts, Evidence, Finding, TestComparison
from agentevals_action.model.result import ErrorInfo, Key, SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    Priors,
    Requirement,
    Suspect,
    assess,
    compute_priors,
)
from agentevals_action.review.run.confirmation import sample_again
from tests.support import results

SUITE = "evals/EVAL.yaml"
PASS, FAIL = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
ERROR = SampleResult(error=ErrorInfo(kind="target", message="the line is dead"))


def result(name: str, samples: Sequence[SampleResult], verdict: Verdict | None) -> TestResult:
    return replace(results.result(name, verdict, path=SUITE), samples=tuple(samples))


def suspect(name: str, base: Sequence[SampleResult] = (PASS,) * 20) -> Suspect:
    return Suspect(
        SUITE,
        result(name, [FAIL], "fail"),
        result(name, base, "pass"),
        Requirement("pass", frozenset()),
    )


@dataclass
class Agent:
    """Two sides that answer rightly as often as `head` and `base` say, by test; `failing` ends
    every sample of a side in an error."""

    head_rates: Mapping[str, float]
    base_rate: float = 1.0
    failing: frozenset[str] = frozenset()
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    rng: random.Random = field(default_factory=lambda: random.Random(5))

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]:
        return self._draw("head", key[1], count, self.head_rates[key[1]])

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]:
        if "refused" in self.failing:
            raise AttemptError("prepare", "`prepare` failed")
        return self._draw("base", key[1], count, self.base_rate)

    def count(self, side: str) -> int:
        return sum(count for where, _, count in self.asked if where == side)

    def _draw(self, side: str, test: str, count: int, rate: float) -> Sequence[SampleResult]:
        self.asked.append((side, test, count))
        return [
            ERROR if side in self.failing else PASS if self.rng.random() < rate else FAIL
            for _ in range(count)
        ]


def priors_by(*base: TestResult) -> Priors:
    return compute_priors({SUITE: {row.eval_id: row for row in base}})


def found(
    agent: Agent,
    *suspects: Suspect,
    horizon: int = 6,
    alpha: float = 0.05,
    others: int = 30,
) -> Mapping[Key, Evidence]:
    """The evidence about suspects of a suite with `others` that always hold on base."""
    steady = [result(f"other-{number}", [PASS] * 20, "pass") for number in range(others)]
    priors = priors_by(*steady, *(each.base for each in suspects))
    plan = ConfirmationPlan(horizon, alpha / len(suspects))
    sampling = sample_again(
        suspects, (), plan, priors, agent.head, agent.base, lambda: agent.settled.append(1)
    )
    fresh = asyncio.run(sampling)
    return {each.key: assess(each, fresh[each.key], plan, priors) for each in suspects}


def test_confirm__a_broken_test_is_a_regression_after_few_samples() -> None:
    agent = Agent({"a": 0.0})
    evidence = found(agent, suspect("a"))[SUITE, "a"]
    assert evidence.finding is Finding.REGRESSED
    assert (evidence.head, evidence.base) == (Counts(0, 3), Counts(20, 20))
    assert evidence.needed in (2, 3)
    assert evidence.chance is not None
    assert evidence.chance < 0.01
    assert agent.asked == [("head", "a", 3)]


@pytest.mark.parametrize("samples", [1, 5, 10])
def test_confirm__a_broken_test_is_found_however_many_samples_a_run_has(samples: int) -> None:
    rows = (result("a", [FAIL] * samples, "fail"), result("a", [PASS] * samples, "pass"))
    broken = Suspect(SUITE, *rows, Requirement("pass", frozenset()))
    assert found(Agent({"a": 0.0}), broken)[SUITE, "a"].finding is Finding.REGRESSED


def test_confirm__few_samples_of_base_are_repeated_only_where_that_matters() -> None:
    agent = Agent({"broken": 0.0, "slip": 1.0})
    evidences = found(agent, suspect("broken", [PASS]), suspect("slip", [PASS]))
    broken, slip = evidences[SUITE, "broken"], evidences[SUITE, "slip"]
    assert (broken.finding, broken.base) == (Finding.REGRESSED, Counts(5, 5))
    assert len(broken.base_samples) == 5
    assert (slip.finding, slip.head) == (Finding.CLEARED, Counts(3, 3))
    assert [test for side, test, _ in agent.asked if side == "base"] == ["broken"]
    assert len(agent.settled) == 2


def test_confirm__base_without_a_tree_is_not_sampled() -> None:
    """Its stored results decide alone, or leave it undecided."""
    for passes, finding, trials in ((1, Finding.UNDECIDED, 6), (4, Finding.REGRESSED, 5)):
        agent, broken = Agent({"a": 0.0}), suspect("a", [PASS] * passes)
        priors, plan = priors_by(broken.base), ConfirmationPlan(6, 0.02)
        fresh = asyncio.run(sample_again([broken], (), plan, priors, agent.head, None))
        evidence = assess(broken, fresh[broken.key], plan, priors)
        assert (evidence.finding, evidence.head) == (finding, Counts(0, trials))
        assert agent.count("base") == 0


def test_confirm__a_base_as_flaky_as_head_is_no_regression() -> None:
    """A quarter of the pull requests has this suspect at all: at most 5 in 100 are blocked."""
    blocked = 0
    for seed in range(100):
        agent = Agent({"a": 0.5}, base_rate=0.5, rng=random.Random(seed))
        blocked += found(agent, suspect("a", [PASS]))[SUITE, "a"].finding is Finding.REGRESSED
    assert blocked <= 20


@pytest.mark.slow
def test_confirm__the_level_holds_for_all_suspects_together() -> None:
    flaky = [PASS] * 16 + [FAIL] * 4
    blocked = 0
    for seed in range(200):
        agent = Agent({f"t{number}": 0.8 for number in range(20)}, rng=random.Random(seed))
        evidences = found(agent, *(suspect(f"t{number}", flaky) for number in range(20)))
        blocked += any(each.finding is Finding.REGRESSED for each in evidences.values())
    assert blocked <= 10


def test_confirm__samples_that_cannot_be_taken_are_stated() -> None:
    for failing, reason in {"base": "the line is dead", "refused": "`prepare` failed"}.items():
        agent = Agent({"a": 0.0}, failing=frozenset({failing}))
        evidence = found(agent, suspect("a", [PASS]))[SUITE, "a"]
        assert evidence.base == Counts(1, 1)
        assert reason in evidence.reason
        undecided = found(agent, suspect("a", [PASS]), alpha=0.0001, others=0)[SUITE, "a"]
        assert undecided.finding is Finding.ERROR
    agent = Agent({"a": 1.0}, failing=frozenset({"head"}))
    evidence = found(agent, suspect("a"))[SUITE, "a"]
    assert (evidence.finding, evidence.reason) == (Finding.ERROR, "the line is dead")
    assert agent.count("head") == 3


def test_confirm__a_shard_takes_all_samples_that_may_be_needed() -> None:
    """It does not know how many suspects there are."""
    agent = Agent({"broken": 0.0, "slip": 1.0})
    suspects = (suspect("broken", [PASS]), suspect("slip", [PASS]))
    priors = priors_by(*(each.base for each in suspects))
    plan = ConfirmationPlan(6, None)
    asyncio.run(sample_again(suspects, (), plan, priors, agent.head, agent.base))
    assert sorted(agent.asked) == [
        ("base", "broken", 5),
        ("head", "broken", 3),
        ("head", "broken", 3),
        ("head", "slip", 3),
    ]


def is_unproven(evidence: Evidence) -> bool:
    return TestComparison("t", ChangeKind.UNDECIDED, None, None, evidence=evidence).is_unproven


def test_confirm__so_many_broken_tests_that_none_is_certain_stay_unproven() -> None:
    agent = Agent({f"t{number}": 0.0 for number in range(100)})
    suspects = [suspect(f"t{number}", [PASS] * 5) for number in range(100)]
    evidences = found(agent, *suspects, horizon=3)
    assert list(map(is_unproven, evidences.values())) == [True] * 100
    assert agent.count("head") == 300
    flaky = suspect("t0", [PASS] * 10 + [FAIL] * 10)
    evidence = found(Agent({"t0": 0.0}), flaky, horizon=3)[flaky.key]
    assert (evidence.finding, is_unproven(evidence)) == (Finding.UNDECIDED, False)


def test_confirm__all_samples_are_taken_before_a_test_is_unproven() -> None:
    """A flaky test that fails three times in a row must not make the outcome inconclusive."""
    for rate, head in ((0.0, Counts(0, 6)), (0.3, Counts(1, 4))):
        agent = Agent({"a": rate}, rng=random.Random(0))
        evidence = found(agent, suspect("a", [PASS] * 5), alpha=1e-9, others=0)[SUITE, "a"]
        assert (evidence.finding, evidence.head) == (Finding.UNDECIDED, head)


A = (SUITE, "a")


def failure(agent: Agent, limit: int = 6, *suspects: Suspect) -> Sequence[SampleResult]:
    """The fresh samples of a test that blocks by itself."""
    priors, plan = priors_by(*(each.base for each in suspects)), ConfirmationPlan(limit, 0.01)
    settled = agent.settled
    sampling = sample_again(
        suspects, [A], plan, priors, agent.head, None, lambda: settled.append(1)
    )
    (fresh,) = asyncio.run(sampling).values()
    assert settled == [1]
    return fresh.head


@pytest.mark.parametrize(("rate", "expected"), [(0.0, (FAIL,) * 4), (1.0, (PASS,) * 3)])
def test_failure__is_sampled_until_its_majority_is_known(
    rate: float, expected: Sequence[SampleResult]
) -> None:
    """A failure needs more than half of the limit."""
    agent = Agent({"a": rate})
    assert failure(agent) == expected
    assert agent.count("head") == len(expected)


def test_failure__of_a_suspect_that_is_no_regression_continues_its_samples() -> None:
    agent, flaky = Agent({"a": 0.0}), suspect("a", [PASS] * 10 + [FAIL] * 10)
    assert failure(agent, 6, flaky) == (FAIL,) * 4
    assert agent.asked == [("head", "a", 3), ("head", "a", 1)]
    regressed = Agent({"a": 0.0})
    assert failure(regressed, 6, suspect("a")) == (FAIL,) * 3


@pytest.mark.parametrize(("failing", "limit"), [({"head"}, 6), ((), 2)])
def test_failure__with_fewer_than_three_scored_samples_stands(
    failing: Collection[str], limit: int
) -> None:
    agent = Agent({"a": 1.0}, failing=frozenset(failing))
    assert failure(agent, limit) == ()
    assert agent.count("head") <= 6
