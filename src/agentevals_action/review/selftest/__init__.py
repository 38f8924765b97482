"""The self-test: what a comparison of a commit with itself would do, from many samples of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from agentevals_action.formatting import counted
from agentevals_action.model.comparison import NOTHING, Counts
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.results import rates
from agentevals_action.review.comparison.decision_rule import Key
from agentevals_action.review.selftest import flakiness, simulation
from agentevals_action.review.selftest.flakiness import Flakiness
from agentevals_action.review.selftest.simulation import Conditions, Urn

#: Simulated pull requests for each source of base. The error of a rate of 5 % is then 2 %.
PULL_REQUESTS = 500
#: The accepted rate of false blocks, and the drop of the score that a gate is to detect.
WANTED, DROP = 0.05, 0.2
#: The numbers of samples on each side that are tried, in turn.
SAMPLE_COUNTS = (2, 3, 5, 7, 10, 15, 20, 30, 50)
#: Drawn runs of each side for one number of samples.
_DRAWS = 200


@dataclass(frozen=True)
class SimulatedGate:
    """How often this action blocks a commit compared with itself, for one source of base. `blocked`
    counts simulated pull requests, `gates` those in which a required gate failed, which needs no
    comparison. `extra_head` and `extra_base` are fresh samples for each sample of the suites."""

    name: str
    history: int
    blocked: Counts
    gates: Counts
    extra_head: float
    extra_base: float


@dataclass(frozen=True)
class SuiteFigures:
    """The figures of one suite, or of all (empty `path`). `unscored` counts tests with fewer than
    two scored samples.

    `alarm` is how often (0–1) a plain comparison of one run on each side blocks. `samples` on each
    side reduce that to 5 % (None: more than were tried), `samples_for_drop` show a drop of 20
    points of the mean score (None: unknown)."""

    path: str
    tests: int
    flaky: int
    unscored: int
    passed: Counts
    alarm: float
    samples: int | None
    samples_for_drop: int | None


@dataclass(frozen=True)
class SelfTest:
    """The result. `tests` are those that ran, the flakiest first. `steady` counts the deterministic
    tests, which did not run. The last of `suites` are all together."""

    samples: int
    steady: int
    tests: tuple[Flakiness, ...]
    suites: tuple[SuiteFigures, ...]
    gates: tuple[SimulatedGate, ...]

    @property
    def total(self) -> SuiteFigures:
        """All suites together."""
        return self.suites[-1]

    @property
    def flaky(self) -> tuple[Flakiness, ...]:
        """The tests whose samples differ, the flakiest first."""
        return tuple(test for test in self.tests if test.is_flaky)

    @property
    def unscored(self) -> tuple[Flakiness, ...]:
        """The tests with fewer than two scored samples, whose flakiness is unknown."""
        return tuple(test for test in self.tests if test.alarm is None)


def examine(
    results: Sequence[TestResult],
    samples: int,
    steady: Mapping[str, int],
    conditions: Conditions,
    rng: Random,
) -> SelfTest:
    """The self-test of results with `samples` samples each. `steady` counts the tests of each suite
    that did not run. The history of the conditions is that of a store."""
    tests = tuple(
        sorted(
            map(flakiness.measure, results),
            key=lambda test: (-(test.alarm or 0.0), test.suite, test.test),
        )
    )
    urns = {
        (result.eval_path, result.eval_id): _urn(result)
        for result in results
        if len(flakiness.scored_samples(result)) > 1
    }

    @cache
    def chance_of_fall(test: Key, count: int) -> float:
        return simulation.chance_of_fall(urns[test], count, _DRAWS, rng)

    def figures(path: str, tests: Sequence[Flakiness], steady: int) -> SuiteFigures:
        alarm = flakiness.combine_alarms(test.alarm for test in tests if test.alarm is not None)
        shaky = [(test.suite, test.test) for test in tests if test.alarm]
        variances = [test.score_variance for test in tests if test.score_variance is not None]
        enough = (
            count
            for count in SAMPLE_COUNTS
            if flakiness.combine_alarms(chance_of_fall(test, count) for test in shaky) <= WANTED
        )
        return SuiteFigures(
            path=path,
            tests=len(tests) + steady,
            flaky=sum(test.is_flaky for test in tests),
            unscored=sum(test.alarm is None for test in tests),
            passed=sum((test.passed for test in tests), start=NOTHING),
            alarm=alarm,
            samples=1 if alarm <= WANTED else next(enough, None),
            samples_for_drop=flakiness.samples_for_mean_drop([*variances, *[0.0] * steady], DROP),
        )

    suites = [
        figures(path, [test for test in tests if test.suite == path], steady.get(path, 0))
        for path in sorted({*steady, *(test.suite for test in tests)})
    ]
    total = figures("", tests, sum(steady.values()))
    stored = f"against {conditions.history} stored samples of base"
    sources = {stored: conditions, "base run again": replace(conditions, history=1, rerun=True)}
    gates = (_simulate(name, [*urns.values()], source, rng) for name, source in sources.items())
    return SelfTest(
        samples=samples,
        steady=sum(steady.values()),
        tests=tests,
        suites=(*suites, total),
        gates=tuple(gates) if urns else (),
    )


def _urn(result: TestResult) -> Urn:
    """The samples with what decides: score, verdict and gates."""
    samples = [
        SampleResult(score=one.score, verdict=one.verdict, gates_failed=one.gates_failed)
        for one in flakiness.scored_samples(result)
    ]
    return Urn((result.eval_path, result.eval_id), samples, samples, result.gates)


def _simulate(name: str, urns: Sequence[Urn], conditions: Conditions, rng: Random) -> SimulatedGate:
    blocked = gates = head = base = 0
    for drawn in simulation.pull_requests(urns, conditions, PULL_REQUESTS, rng):
        blocked += bool(drawn.regressed)
        gates += bool(drawn.gates)
        head += drawn.head_samples
        base += drawn.base_samples
    samples = PULL_REQUESTS * len(urns)
    return SimulatedGate(
        name,
        conditions.history,
        Counts(blocked, PULL_REQUESTS),
        Counts(gates, PULL_REQUESTS),
        extra_head=head / samples,
        extra_base=base / samples,
    )


def advice(found: SelfTest, alpha: float) -> str:
    """One sentence about what to do."""
    if found.unscored:
        has = "has" if len(found.unscored) == 1 else "have"
        tests = f"{counted(len(found.unscored), 'test')} {has}"
        return f"{tests} fewer than two scored samples: fix their errors, then measure again"
    flakiest = ", ".join(f"`{test.test}`" for test in found.flaky[:3])
    worst = max(found.gates, key=lambda gate: gate.blocked.successes, default=None)
    if worst and rates.interval(worst.blocked.successes, worst.blocked.trials)[0] > alpha:
        return (
            f"agentevals-action would block too often ({worst.name}): "
            f"steady or quarantine {flakiest} first"
        )
    for test in found.flaky:
        if any(2 * count >= test.passed.trials for _, count in test.gates):
            return (
                f"a required gate of `{test.test}` fails about as often as it holds, "
                "and blocks by that alone: steady it or loosen it"
            )
    if found.total.alarm <= WANTED:
        return "a single run is nearly steady here; leave `confirm` on, it costs almost nothing"
    return (
        "keep `confirm` on and store a history of base; "
        f"steady {flakiest} first, which raise the most suspicion"
    )
