"""The development of the suites over the stored runs of the default branch: a point for each run,
the flake rate of each test, and the gates and tests that never show anything."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agentevals_action.baselines.run_files import RUNS
from agentevals_action.model.baseline import StoredRun
from agentevals_action.model.result import Fingerprint, GateRecord, TestResult

#: Runs from which on it is remarkable that a gate never failed, or that nothing ever passed.
MANY_RUNS, SOME_RUNS = 40, 5


@dataclass(frozen=True)
class Point:
    """A run of a suite on a commit. `passed` and `errored` count some of its `tests`. `cost` is the
    mean of the agent per sample (US dollars), None if unknown. `question`, `grading` and `agent`
    count the tests with another fingerprint of that name than in their run before."""

    time: str
    commit: str
    tests: int
    passed: int
    errored: int = 0
    cost: float | None = None
    question: int = 0
    grading: int = 0
    agent: int = 0

    @property
    def scored(self) -> int:
        """The number of tests that were scored."""
        return self.tests - self.errored

    @property
    def pass_rate(self) -> float | None:
        """The share (0-1) of the scored tests that passed; None if none was scored."""
        return self.passed / self.scored if self.scored else None


@dataclass(frozen=True)
class FlakyTest:
    """A test of whose latest version `passed` of the `samples` passed. `flips` counts the adjacent
    samples of which only one passed."""

    id: str
    passed: int
    samples: int
    flips: int

    @property
    def rate(self) -> float:
        """The flake rate: the share (0-1) of neighbouring samples that differ."""
        return self.flips / max(self.samples - 1, 1)


@dataclass(frozen=True)
class GateTrend:
    """A gate of the `tests` (ids) in the latest run, which `runs` of the last 50 scored."""

    name: str
    tests: tuple[str, ...]
    runs: int


@dataclass(frozen=True)
class SuiteTrend:
    """The runs of the suite at `path`, oldest first, and its flaky tests, the worst first; those of
    a `variant` of it if one is named. Of the last 50 runs: the gates that never failed and those
    that never passed, and the tests (ids) that no run scored."""

    path: str
    points: tuple[Point, ...]
    flaky: tuple[FlakyTest, ...] = ()
    variant: str = ""
    never_failed: tuple[GateTrend, ...] = ()
    never_passed: tuple[GateTrend, ...] = ()
    never_scored: tuple[str, ...] = ()


@dataclass
class _SuiteHistory:
    """What is known of a suite; of each test the latest fingerprint, and whether its samples with
    that fingerprint passed."""

    points: list[Point] = field(default_factory=list)
    runs: list[Sequence[TestResult]] = field(default_factory=list)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    passes: dict[str, list[bool]] = field(default_factory=dict)


def compute_trends(runs: Iterable[StoredRun]) -> tuple[SuiteTrend, ...]:
    """The trends of the suites in these runs (oldest first), by path, each before its variants."""
    arms: defaultdict[tuple[str, str], _SuiteHistory] = defaultdict(_SuiteHistory)
    for run in runs:
        by_arm: defaultdict[tuple[str, str], list[TestResult]] = defaultdict(list)
        for result in run.results:
            by_arm[result.eval_path, result.variant].append(result)
        for arm, results in by_arm.items():
            changed = _add_samples(arms[arm], results)
            arms[arm].points.append(_point(run, results, changed))
            arms[arm].runs.append(results)
    return tuple(_trend(*arm, suite) for arm, suite in sorted(arms.items()))


def _trend(path: str, variant: str, suite: _SuiteHistory) -> SuiteTrend:
    gates = list(_find_gates(suite.runs[-RUNS:]))
    return SuiteTrend(
        path,
        tuple(suite.points),
        tuple(_flaky(suite.passes)),
        variant,
        tuple(gate for gate, states in gates if states == {True} and gate.runs >= MANY_RUNS),
        tuple(gate for gate, states in gates if states == {False} and gate.runs >= SOME_RUNS),
        tuple(_never_scored(suite.runs[-RUNS:])),
    )


def _find_gates(runs: Sequence[Sequence[TestResult]]) -> Iterator[tuple[GateTrend, set[bool]]]:
    """The gates of the latest run, each with its states in all runs (True: it held). What could not
    be scored has none."""
    held: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for result in (result for results in runs for result in results):
        for name in {gate.name for gate in result.gates}:
            if result.verdict or name in result.gates_failed:
                held[result.eval_id, name].append(name not in result.gates_failed)
    tests: defaultdict[GateRecord, list[str]] = defaultdict(list)
    for result in runs[-1]:
        for gate in dict.fromkeys(result.gates):
            tests[gate].append(result.eval_id)
    for gate, names in tests.items():
        states = [held[name, gate.name] for name in names]
        yield GateTrend(gate.name, tuple(names), max(map(len, states))), set().union(*states)


def _never_scored(runs: Sequence[Sequence[TestResult]]) -> Iterator[str]:
    """The tests of the latest run that were in some runs, and have no verdict in any."""
    results = [result for results in runs for result in results]
    scored = {result.eval_id for result in results if result.verdict}
    number = Counter(result.eval_id for result in results)
    for result in runs[-1]:
        if result.eval_id not in scored and number[result.eval_id] >= SOME_RUNS:
            yield result.eval_id


def _add_samples(suite: _SuiteHistory, results: Sequence[TestResult]) -> Mapping[str, int]:
    """Adds the samples of a run. Returns the number of tests whose fingerprint changed, by its
    part (`question`, `grading`, `agent`)."""
    changed: Counter[str] = Counter()
    for result in results:
        now, before = result.fingerprint, suite.fingerprints.get(result.eval_id)
        if now is None:
            continue
        if now != before:
            suite.passes[result.eval_id] = []
            names = ("question", "grading", "agent")
            changed.update(
                name for name in names if before and getattr(now, name) != getattr(before, name)
            )
        suite.fingerprints[result.eval_id] = now
        suite.passes[result.eval_id] += [
            sample.verdict == "pass"
            for sample in result.main_samples
            if sample.error is None and not sample.cached
        ]
    return changed


def _point(run: StoredRun, results: Sequence[TestResult], changed: Mapping[str, int]) -> Point:
    samples = [sample for result in results for sample in result.main_samples]
    costs = [sample.trace_summary.cost_usd for sample in samples if sample.trace_summary]
    # Accident: an agent reports a negative cost, or one that makes a sum infinite.
    known = [cost for cost in costs if cost is not None and 0 <= cost < math.inf]
    verdicts = [result.verdict for result in results]
    return Point(
        time=run.time or "",
        commit=run.commit or "",
        tests=len(results),
        passed=verdicts.count("pass"),
        errored=verdicts.count(None),
        cost=sum(cost / len(known) for cost in known) if known else None,
        **changed,
    )


def _flaky(passes: Mapping[str, Sequence[bool]]) -> Sequence[FlakyTest]:
    found = []
    for name, passed in passes.items():
        if flips := sum(before != after for before, after in pairwise(passed)):
            found.append(FlakyTest(name, sum(passed), len(passed), flips))
    return sorted(found, key=lambda test: (-test.rate, test.id))
