"""Simulated pull requests, decided like real ones."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from agentevals_action.model.comparison import Evidence, Finding
from agentevals_action.model.result import GateRecord, Key, SampleResult, TestResult
from agentevals_action.results import scoring
from agentevals_action.results.build import extended
from agentevals_action.review.comparison.decision_rule import (
    MIN_HISTORY,
    ConfirmationPlan,
    FreshSamples,
    Suspect,
    assess,
    compute_priors,
    find_lost_requirement,
)
from agentevals_action.review.run.confirmation import sample_again


@dataclass(frozen=True)
class Urn:
    """One test: the scored samples that base and head draw from, evenly and with replacement."""

    key: Key
    base: Sequence[SampleResult]
    head: Sequence[SampleResult]
    gates: tuple[GateRecord, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """How a pull request is decided: `history` samples of base (at least 1), and the inputs
    `samples`, `confirm` and `alpha`."""

    history: int = 20
    samples: int = 1
    confirm: int = 6
    alpha: float = 0.05


@dataclass(frozen=True)
class PullRequest:
    """A simulated pull request. `plain` are the tests whose verdict is lower in head's one sample
    than in base's latest one, `suspects` those that fell against base's history, with the `streams`
    that fresh samples are from, their `fresh` samples and their `evidence`. `gates` are the tests
    with a required gate that failed in more than half of head's samples, which blocks whatever base
    did."""

    plain: frozenset[Key]
    suspects: Sequence[Suspect]
    streams: Mapping[Key, FreshSamples]
    fresh: Mapping[Key, FreshSamples]
    evidence: Mapping[Key, Evidence]
    gates: frozenset[Key]

    @property
    def regressed(self) -> frozenset[Key]:
        """The regressions; one is enough to block."""
        found = self.evidence.items()
        return frozenset(key for key, evidence in found if evidence.finding is Finding.REGRESSED)

    @property
    def head_samples(self) -> int:
        """The number of fresh samples of head."""
        return sum(len(found.head) for found in self.fresh.values())

    @property
    def base_samples(self) -> int:
        """The number of fresh samples of base."""
        return sum(len(found.base) for found in self.fresh.values())


def pull_requests(
    urns: Sequence[Urn], conditions: Conditions, count: int, rng: Random
) -> Sequence[PullRequest]:
    """Simulated pull requests that touch all of these tests, independent of each other."""
    return asyncio.run(_pull_requests(urns, conditions, count, rng))


def _combined(urn: Urn, samples: Sequence[SampleResult]) -> TestResult:
    suite, test = urn.key
    score, verdict, gates = scoring.combine_samples(samples)
    return TestResult(
        timestamp="",
        eval_id=test,
        dataset=suite,
        eval_path=suite,
        score=score,
        verdict=verdict,
        gates=urn.gates,
        gates_failed=gates,
        samples=tuple(samples),
    )


@dataclass(frozen=True)
class Drawn:
    """One test of a pull request: head's result, base's of its latest sample, and base's of its
    history."""

    key: Key
    head: TestResult
    latest: TestResult
    history: TestResult


class Sampler(Protocol):
    """Takes fresh samples of both sides; `streams` are those that it would take, if that is known
    before."""

    streams: Mapping[Key, FreshSamples]

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]: ...

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]: ...


class _Test:
    """One urn with the result of each single sample, because pull requests draw the same samples
    again and again."""

    def __init__(self, urn: Urn, history: int) -> None:
        self.urn, self._history = urn, history
        distinct = {id(sample): sample for sample in (*urn.base, *urn.head)}
        made = {name: _combined(urn, [sample]) for name, sample in distinct.items()}
        self._bases = [made[id(sample)] for sample in urn.base]
        self._heads = [made[id(sample)] for sample in urn.head]
        outcomes = {(sample.score, sample.verdict, sample.gates_failed) for sample in urn.base}
        steady = len(outcomes) == 1
        self._steady = _combined(urn, [urn.base[0]] * history) if steady else None

    def draw(self, rng: Random, samples: int) -> tuple[TestResult, TestResult, TestResult]:
        """Head's result, base's of its latest sample, and base's of its history."""
        indices = rng.choices(range(len(self._bases)), k=self._history)
        history = self._steady or _combined(self.urn, [self.urn.base[index] for index in indices])
        head = rng.choice(self._heads)
        if samples > 1:
            head = _combined(self.urn, rng.choices(self.urn.head, k=samples))
        return head, self._bases[indices[-1]], history


async def _pull_requests(
    urns: Sequence[Urn], conditions: Conditions, count: int, rng: Random
) -> Sequence[PullRequest]:
    tests = [_Test(urn, conditions.history) for urn in urns]
    drawn = []
    for _ in range(count):
        drawn.append(await _pull_request(tests, conditions, rng))
        await asyncio.sleep(0)  # a signal ends the simulation here
    return drawn


async def _pull_request(tests: Sequence[_Test], conditions: Conditions, rng: Random) -> PullRequest:
    drawn = [Drawn(test.urn.key, *test.draw(rng, conditions.samples)) for test in tests]
    urns = {test.urn.key: test.urn for test in tests}

    def streams(keys: Sequence[Key]) -> _StreamSampler:
        return _StreamSampler(
            {
                key: FreshSamples(
                    tuple(rng.choices(urns[key].head, k=conditions.confirm)),
                    tuple(rng.choices(urns[key].base, k=MIN_HISTORY)),
                )
                for key in keys
            }
        )

    return await decide(drawn, conditions, streams)


async def decide(
    drawn: Sequence[Drawn], conditions: Conditions, make_sampler: Callable[[Sequence[Key]], Sampler]
) -> PullRequest:
    """What comes of a pull request. `make_sampler` takes the tests that are sampled again."""
    plain = {test.key for test in drawn if find_lost_requirement(test.head, test.latest)}
    failing = {test.key: test.head for test in drawn if test.head.gates_failed}
    suspects = [
        Suspect(test.key[0], test.head, test.history, kept)
        for test in drawn
        if (kept := find_lost_requirement(test.head, test.history))
    ]
    bases: dict[str, dict[str, TestResult]] = {}
    for test in drawn:
        bases.setdefault(test.key[0], {})[test.key[1]] = test.history
    fallen = {suspect.key for suspect in suspects}
    again = [test.key for test in drawn if test.key in fallen or test.key in failing]
    sampler, priors = make_sampler(again), compute_priors(bases)
    plan = ConfirmationPlan(conditions.confirm, conditions.alpha / max(len(suspects), 1))
    fresh = await sample_again(suspects, failing, plan, priors, sampler.head, sampler.base)
    evidence = {each.key: assess(each, fresh[each.key], plan, priors) for each in suspects}
    gates = {key for key, head in failing.items() if extended(head, fresh[key].head).gates_failed}
    return PullRequest(
        frozenset(plain), suspects, sampler.streams, fresh, evidence, frozenset(gates)
    )


class _StreamSampler:
    """Takes fresh samples from the streams, in their order."""

    def __init__(self, streams: Mapping[Key, FreshSamples]) -> None:
        self.streams = streams
        self._taken = Counter[Key]()

    async def head(self, key: Key, count: int) -> Sequence[SampleResult]:
        taken = self._taken[key]
        self._taken[key] += count
        return self.streams[key].head[taken : taken + count]

    async def base(self, key: Key, count: int) -> Sequence[SampleResult]:
        return self.streams[key].base[:count]
