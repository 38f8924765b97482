"""What a commit compared with itself says of its suites: figures, made ready to be told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agentevals_action.model.comparison import History
from agentevals_action.model.result import TestResult
from agentevals_action.review.selftest import flakiness, simulation
from agentevals_action.review.selftest.flakiness import Flakiness
from agentevals_action.review.selftest.simulation import Conditions, Urn

#: Pull requests that are drawn for each way of getting a base: a rate of 5 % is then told to within
#: 2 %.
PULL_REQUESTS = 500
#: False blocks that a gate may take, and the drop that it is to see.
WANTED, DROP = 0.05, 0.2
#: Samples a side that are looked at, in turn; after the last it is "more".
LADDER = (2, 3, 5, 7, 10, 15, 20, 30, 50)
#: Runs of each side that are drawn for one step of it.
_DRAWS = 200


@dataclass(frozen=True)
class Way:
    """How often this action would block a commit compared with itself, with base's results got in
    one way. `blocked` counts drawn pull requests, `gates` those in which a required gate failed,
    which needs no comparison; `extra_head` and `extra_base` are fresh samples for each sample of
    the suites."""

    name: str
    history: int
    blocked: History
    gates: History
    extra_head: float
    extra_base: float


@dataclass(frozen=True)
class SuiteFigures:
    """One suite, or all together (`path` empty). `alarm` is how often (0-1) a plain comparison of
    one run a side would block; `samples` how many a side it needs for at most 5 % (None: more than
    were looked at), `samples_for_drop` how many show a drop of 20 points of the mean score (None:
    not known)."""

    path: str
    tests: int
    flaky: int
    untold: int
    passed: History
    alarm: float
    samples: int | None
    samples_for_drop: int | None


@dataclass(frozen=True)
class SelfTest:
    """What was found. `tests` are those that were run, the flakiest first; `steady` counts those
    that answer and are graded the same each time, and were not."""

    samples: int
    steady: int
    tests: tuple[Flakiness, ...]
    suites: tuple[SuiteFigures, ...]
    ways: tuple[Way, ...]

    @property
    def total(self) -> SuiteFigures:
        """All suites together."""
        return self.suites[-1]

    @property
    def flaky(self) -> tuple[Flakiness, ...]:
        """The tests whose samples came out differently, the flakiest first."""
        return tuple(test for test in self.tests if test.is_flaky)

    @property
    def untold(self) -> tuple[Flakiness, ...]:
        """The tests with fewer than two samples that could be told: of these nothing is known."""
        return tuple(test for test in self.tests if test.alarm is None)


def examine(
    results: Sequence[TestResult],
    samples: int,
    steady: Mapping[str, int],
    conditions: Conditions,
    rng: Random,
) -> SelfTest:
    """The figures of results with so many samples each; `steady` counts by suite the tests that
    were not run. The history of the conditions is that of a store."""
    tests = tuple(
        sorted(
            map(flakiness.measure, results),
            key=lambda test: (-(test.alarm or 0.0), test.suite, test.test),
        )
    )
    urns = {
        (result.eval_path, result.eval_id): _urn(result)
        for result in results
        if len(flakiness.told(result)) > 1
    }
    chances = _Chances(urns, rng)
    paths = sorted({*steady, *(test.suite for test in tests)})
    suites = [
        _suite(
            path, [test for test in tests if test.suite == path], steady.get(path, 0), chances.of
        )
        for path in paths
    ]
    together = _suite("", tests, sum(steady.values()), chances.of)
    return SelfTest(
        samples=samples,
        steady=sum(steady.values()),
        tests=tests,
        suites=(*suites, together),
        ways=_ways([*urns.values()], conditions, rng) if urns else (),
    )


def _urn(result: TestResult) -> Urn:
    # The score, the verdict and the gates decide; the rest is only carried along.
    known = flakiness.told(result)
    slim = [
        type(one)(score=one.score, verdict=one.verdict, gates_failed=one.gates_failed)
        for one in known
    ]
    return Urn((result.eval_path, result.eval_id), slim, slim, result.gates)


class _Chances:
    """How often a plain comparison of a flaky test falls by the number of samples a side, each
    drawn once."""

    def __init__(self, urns: Mapping[simulation.Key, Urn], rng: Random) -> None:
        self._urns, self._rng = urns, rng
        self._known: dict[tuple[simulation.Key, int], float] = {}

    def of(self, test: Flakiness, samples: int) -> float:
        key = (test.suite, test.test)
        if (key, samples) not in self._known:
            self._known[key, samples] = simulation.chance_of_a_fall(
                self._urns[key], samples, _DRAWS, self._rng
            )
        return self._known[key, samples]


def _suite(
    path: str, tests: Sequence[Flakiness], steady: int, chance: Callable[[Flakiness, int], float]
) -> SuiteFigures:
    alarm = flakiness.together(test.alarm for test in tests if test.alarm is not None)
    shaky = [test for test in tests if test.alarm]
    variances = [test.score_variance for test in tests if test.score_variance is not None]
    steps = (
        number
        for number in LADDER
        if flakiness.together(chance(test, number) for test in shaky) <= WANTED
    )
    passed = sum((test.passed for test in tests), start=History(0, 0))
    return SuiteFigures(
        path=path,
        tests=len(tests) + steady,
        flaky=sum(test.is_flaky for test in tests),
        untold=sum(test.alarm is None for test in tests),
        passed=passed,
        alarm=alarm,
        samples=1 if alarm <= WANTED else next(steps, None),
        samples_for_drop=flakiness.samples_for_mean_drop([*variances, *[0.0] * steady], DROP),
    )


def _ways(urns: Sequence[Urn], conditions: Conditions, rng: Random) -> tuple[Way, ...]:
    stored = f"against {conditions.history} stored samples of base"
    return (
        _way(stored, urns, conditions, rng),
        _way(
            "base run again",
            urns,
            Conditions(1, rerun=True, confirm=conditions.confirm, alpha=conditions.alpha),
            rng,
        ),
    )


def _way(name: str, urns: Sequence[Urn], conditions: Conditions, rng: Random) -> Way:
    blocked = gates = head = base = 0
    for drawn in simulation.pull_requests(urns, conditions, PULL_REQUESTS, rng):
        blocked += bool(drawn.regressed)
        gates += bool(drawn.gates)
        head += drawn.head_samples
        base += drawn.base_samples
    runs = PULL_REQUESTS * len(urns)
    return Way(
        name,
        conditions.history,
        History(blocked, PULL_REQUESTS),
        History(gates, PULL_REQUESTS),
        extra_head=head / runs,
        extra_base=base / runs,
    )


def advice(found: SelfTest, alpha: float) -> str:
    """One line of what to do."""
    if found.untold:
        many = f"{len(found.untold)} test{' has' if len(found.untold) == 1 else 's have'}"
        return f"{many} fewer than two samples that could be told: mend what they end in, then measure again"
    worst = max(found.ways, key=lambda way: way.blocked.successes, default=None)
    shakiest = ", ".join(f"`{test.test}`" for test in found.flaky[:3])
    if (
        worst is not None
        and flakiness.interval(worst.blocked.successes, worst.blocked.trials)[0] > alpha
    ):
        return f"agentevals-action would block too often ({worst.name}): steady or quarantine {shakiest} first"
    if gates := [
        test
        for test in found.flaky
        if any(2 * count >= test.passed.trials for _, count in test.gates)
    ]:
        return f"a required gate of `{gates[0].test}` fails about as often as it holds, and blocks by that alone: steady it or loosen it"
    if found.total.alarm <= WANTED:
        return "a single run is nearly steady here; leave `confirm` on, it costs almost nothing"
    return f"keep `confirm` on and store a history of base; steady {shakiest} first, which raise the most suspicion"
