"""Pull requests drawn from known or recorded samples and decided as real ones are: what `selftest`
and the benchmarks count."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from agentevals_action.errors import Interrupted
from agentevals_action.model.comparison import Evidence, Finding
from agentevals_action.model.result import GateRecord, SampleResult, TestResult, Verdict
from agentevals_action.results import scoring
from agentevals_action.review.comparison.confirmation import Evidences, Suspect, confirm
from agentevals_action.review.comparison.decision_rule import THICK, what_fell

#: A suite's path and a test's id.
Key = tuple[str, str]


@dataclass(frozen=True)
class Urn:
    """One test: what base and head draw their samples from, evenly and with replacement, at least
    one each, all of them told."""

    key: Key
    base: Sequence[SampleResult]
    head: Sequence[SampleResult]
    gates: tuple[GateRecord, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """What a pull request is decided by: `history` samples of base (at least 1), whether base can
    be sampled again (`rerun`), and the inputs `confirm` and `alpha`."""

    history: int = 20
    rerun: bool = True
    confirm: int = 6
    alpha: float = 0.05


@dataclass(frozen=True)
class Stream:
    """The fresh samples that are there for one suspect, in the order in which they would be drawn:
    `confirm` of head, and of base as many as a thin history is replaced by."""

    head: Sequence[SampleResult]
    base: Sequence[SampleResult]


@dataclass(frozen=True)
class PullRequest:
    """One that was drawn: `plain` are the tests whose verdict is lower on head's one sample than on
    base's latest one, `suspects` those that fell against base's history, `evidence` what became of
    them; `gates` are the tests with a required gate that failed in more than half of all of head's
    samples, which blocks whether base failed it or not."""

    plain: frozenset[Key]
    suspects: Sequence[Suspect]
    streams: Mapping[Key, Stream]
    evidence: Evidences
    gates: frozenset[Key]

    @property
    def regressed(self) -> frozenset[Key]:
        """The tests that are found to be worse: one is enough to block."""
        return frozenset(
            key for key, found in self.evidence.items() if found.finding is Finding.REGRESSED
        )

    @property
    def head_samples(self) -> int:
        """Fresh samples of head that it took."""
        return sum(len(found.head_samples) for found in self.evidence.values())

    @property
    def base_samples(self) -> int:
        """Fresh samples of base that it took."""
        return sum(len(found.base_samples) for found in self.evidence.values())


def pull_requests(
    urns: Sequence[Urn], conditions: Conditions, count: int, rng: Random
) -> Iterator[PullRequest]:
    """So many pull requests that touch all of these tests, each independent of the others and its
    tests of each other."""
    tests = [_Test(urn, conditions.history) for urn in urns]
    with asyncio.Runner() as runner:
        for _ in range(count):
            try:
                drawn = runner.run(_pull_request(tests, conditions, rng))
            except BaseExceptionGroup as group:
                # A signal that comes while a suspect is looked at is one of its task; it is to
                # leave as what it is.
                if interrupted := group.subgroup(Interrupted):
                    raise interrupted.exceptions[0] from None
                raise
            yield drawn


def chance_of_a_fall(urn: Urn, samples: int, draws: int, rng: Random) -> float:
    """How often (0-1) a plain comparison of so many samples a side sees this test fall, by so many
    drawn runs of each side."""
    base, head = (_outcomes(urn, pool, samples, draws, rng) for pool in (urn.base, urn.head))
    falls = (
        here.count * there.count
        for here in head
        for there in base
        if what_fell(here.result, there.result)
    )
    return sum(falls) / (draws * draws)


@dataclass(frozen=True)
class _Seen:
    """A result, and how many of the runs came out so."""

    result: TestResult
    count: int


def _outcomes(
    urn: Urn, pool: Sequence[SampleResult], samples: int, draws: int, rng: Random
) -> Sequence[_Seen]:
    runs = Counter[tuple[Verdict | None, tuple[str, ...]]]()
    for _ in range(draws):
        _, verdict, gates = scoring.combine_samples(rng.choices(pool, k=samples))
        runs[verdict, gates] += 1
    return [
        _Seen(_result(urn, (), None, verdict, gates), count)
        for (verdict, gates), count in runs.items()
    ]


def _combined(urn: Urn, samples: Sequence[SampleResult]) -> TestResult:
    return _result(urn, samples, *scoring.combine_samples(samples))


def _result(
    urn: Urn,
    samples: Sequence[SampleResult],
    score: float | None,
    verdict: Verdict | None,
    gates: Sequence[str],
) -> TestResult:
    return TestResult(
        timestamp="",
        eval_id=urn.key[1],
        dataset=urn.key[0],
        eval_path=urn.key[0],
        score=score,
        verdict=verdict,
        gates=urn.gates,
        gates_failed=tuple(gates),
        samples=tuple(samples),
    )


class _Test:
    """One urn, with the result of each single sample made once: pull requests draw the same ones
    over and over."""

    def __init__(self, urn: Urn, history: int) -> None:
        self.urn, self._history = urn, history
        made = {
            id(sample): _combined(urn, [sample])
            for sample in {id(one): one for one in (*urn.base, *urn.head)}.values()
        }
        self._bases = [made[id(sample)] for sample in urn.base]
        self._heads = [made[id(sample)] for sample in urn.head]
        steady = (
            len({(sample.score, sample.verdict, sample.gates_failed) for sample in urn.base}) == 1
        )
        self._steady = _combined(urn, [urn.base[0]] * history) if steady else None

    def draw(self, rng: Random) -> tuple[TestResult, TestResult, TestResult]:
        """Head's result of one sample, base's of its latest one, and base's of all its history."""
        places = rng.choices(range(len(self._bases)), k=self._history)
        whole = self._steady or _combined(self.urn, [self.urn.base[place] for place in places])
        return rng.choice(self._heads), self._bases[places[-1]], whole


async def _pull_request(tests: Sequence[_Test], conditions: Conditions, rng: Random) -> PullRequest:
    plain: set[Key] = set()
    failing: dict[Key, TestResult] = {}
    suspects: list[Suspect] = []
    streams: dict[Key, Stream] = {}
    bases: dict[str, list[TestResult]] = {}
    for test in tests:
        key, (head, latest, whole) = test.urn.key, test.draw(rng)
        bases.setdefault(key[0], []).append(whole)
        if what_fell(head, latest):
            plain.add(key)
        if head.gates_failed:
            failing[key] = head
        if held := what_fell(head, whole):
            suspects.append(Suspect(key[0], head, whole, held))
            streams[key] = Stream(
                rng.choices(test.urn.head, k=conditions.confirm),
                rng.choices(test.urn.base, k=THICK),
            )
    evidence = await confirm(
        suspects, bases, conditions.confirm, conditions.alpha, _Streams(streams, conditions.rerun)
    )
    gates = frozenset(
        key for key, head in failing.items() if _fails_a_gate(head, evidence.get(key))
    )
    return PullRequest(frozenset(plain), suspects, streams, evidence, gates)


def _fails_a_gate(head: TestResult, evidence: Evidence | None) -> bool:
    _, _, gates = scoring.combine_samples(
        (*head.samples, *(evidence.head_samples if evidence else ()))
    )
    return bool(gates)


@dataclass
class _Streams:
    """Fresh samples in the order in which they stand in the streams."""

    streams: Mapping[Key, Stream]
    rerun: bool
    _taken: dict[Key, int] = field(default_factory=dict)

    async def head(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        taken = self._taken.get((suite, test), 0)
        self._taken[suite, test] = taken + count
        return self.streams[suite, test].head[taken : taken + count]

    async def base(self, suite: str, test: str, count: int) -> Sequence[SampleResult]:
        return self.streams[suite, test].base[:count]

    def base_open(self, suite: str, test: str) -> bool:  # noqa: ARG002
        return self.rerun

    def settled(self, suite: str, test: str) -> None:
        """Nobody watches a simulation."""
