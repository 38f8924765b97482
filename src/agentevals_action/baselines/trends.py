"""The development of the suites over the stored runs of the default branch: a point for each run,
the flake rate of each test, and the gates, tests and judges that show nothing."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Literal

from agentevals_action.baselines.run_files import RUNS
from agentevals_action.model.baseline import StoredRun
from agentevals_action.model.result import Fingerprint, GateRecord, TestResult, by_path

#: Runs from which on it is remarkable that a gate never failed, or that nothing ever passed.
MANY_RUNS, SOME_RUNS = 40, 5


@dataclass(frozen=True)
class Point:
    """A run of a suite on a commit. `passed` and `errored` count some of its `tests`, which are
    without tests that only advisory judges score. `cost` is the mean cost of the agent per sample
    (US dollars), None if unknown. `question`, `grading` and `agent` count the tests whose
    fingerprint differs in this part from their run before."""

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
    """A test; of the `samples` of its latest version, `passed` passed. `flips` counts the pairs of
    adjacent samples of which only one passed."""

    id: str
    passed: int
    samples: int
    flips: int

    @property
    def rate(self) -> float:
        """The flake rate: the share (0-1) of adjacent samples that differ."""
        return self.flips / max(self.samples - 1, 1)


@dataclass(frozen=True)
class Idle:
    """What shows nothing: a gate of the `tests` (ids) in the latest run that never failed or never
    passed, a judge that is not calibrated, or (without an `evaluator`) a test that was never
    scored, in `runs` of the last 50 runs."""

    kind: Literal["never failed", "never passed", "never scored", "not calibrated"]
    tests: tuple[str, ...]
    runs: int
    evaluator: str = ""


@dataclass(frozen=True)
class SuiteTrend:
    """The runs of the suite at `path`, or of its `variant`: the `points`, oldest first, the flaky
    tests, the worst first, and what is idle."""

    path: str
    points: tuple[Point, ...]
    flaky: tuple[FlakyTest, ...] = ()
    variant: str = ""
    idle: tuple[Idle, ...] = ()


@dataclass
class _SuiteHistory:
    """The history of a suite, with the latest fingerprint of each test, and whether its samples
    with that fingerprint passed."""

    points: list[Point] = field(default_factory=list)
    runs: list[Sequence[TestResult]] = field(default_factory=list)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    passes: dict[str, list[bool]] = field(default_factory=dict)


def compute_trends(
    runs: Iterable[StoredRun], calibrated: Collection[str] | None = None
) -> tuple[SuiteTrend, ...]:
    """The trends of the suites in these runs (oldest first), by path, each suite before its
    variants. `calibrated` are the keys of calibrated judges; None if that does not matter."""
    arms: defaultdict[tuple[str, str], _SuiteHistory] = defaultdict(_SuiteHistory)
    for run in runs:
        by_arm: defaultdict[tuple[str, str], list[TestResult]] = defaultdict(list)
        for result in run.results:
            by_arm[result.eval_path, result.variant].append(result)
        for arm, results in by_arm.items():
            changed = _add_samples(arms[arm], results)
            arms[arm].points.append(_point(run, results, changed))
            arms[arm].runs.append(results)
    return tuple(
        SuiteTrend(
            path,
            tuple(suite.points),
            tuple(_flaky(suite.passes)),
            variant,
            (*_find_idle(suite.runs[-RUNS:]), *_find_judges(suite.runs[-RUNS:], calibrated)),
        )
        for (path, variant), suite in sorted(arms.items())
    )


def _find_idle(runs: Sequence[Sequence[TestResult]]) -> Iterator[Idle]:
    """The gates and tests of the latest run that show nothing in all of these runs. A test that
    could not be scored shows nothing about its gates, nor does an advisory judge."""
    scored: defaultdict[str, list[bool]] = defaultdict(list)
    held: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for result in chain.from_iterable(runs):
        scored[result.eval_id].append(result.verdict is not None)
        for name in {gate.name for gate in result.gates}:
            is_held = result.verdict and name not in result.advisory
            if is_held or name in result.gates_failed:
                held[result.eval_id, name].append(name not in result.gates_failed)
    tests: defaultdict[GateRecord, list[str]] = defaultdict(list)
    for result in runs[-1]:
        number = len(scored[result.eval_id])
        if number >= SOME_RUNS and not any(scored[result.eval_id]):
            yield Idle("never scored", (result.eval_id,), number)
        for gate in dict.fromkeys(result.gates):
            tests[gate].append(result.eval_id)
    for gate, names in tests.items():
        by_test = [held[name, gate.name] for name in names]
        states, number = set().union(*by_test), max(map(len, by_test))
        if states == {True} and number >= MANY_RUNS:
            yield Idle("never failed", tuple(names), number, gate.name)
        if states == {False} and number >= SOME_RUNS:
            yield Idle("never passed", tuple(names), number, gate.name)


def _find_judges(
    runs: Sequence[Sequence[TestResult]], calibrated: Collection[str] | None
) -> Iterator[Idle]:
    """The judges of the latest run that are not calibrated."""
    if calibrated is None:
        return
    tests: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for result in runs[-1]:
        for sample in result.main_samples:
            for name, opinion in by_path(sample.evaluator_results).items():
                if opinion.judge and opinion.judge.key not in calibrated:
                    tests[name][result.eval_id] = None
    for name, judged in tests.items():
        yield Idle("not calibrated", tuple(judged), len(runs), name)


def _add_samples(suite: _SuiteHistory, results: Sequence[TestResult]) -> Mapping[str, int]:
    """Adds the samples of a run. Returns the number of tests whose fingerprint changed, by its
    part (`question`, `grading`, `agent`)."""
    changed: Counter[str] = Counter()
    for result in results:
        new, old = result.fingerprint, suite.fingerprints.get(result.eval_id)
        if new is None:
            continue
        if new != old:
            suite.passes[result.eval_id] = []
            names = ("question", "grading", "agent")
            changed.update(
                name for name in names if old and getattr(new, name) != getattr(old, name)
            )
        suite.fingerprints[result.eval_id] = new
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
    verdicts = [result.verdict for result in results if not result.is_advisory]
    return Point(
        time=run.time or "",
        commit=run.commit or "",
        tests=len(verdicts),
        passed=verdicts.count("pass"),
        errored=verdicts.count(None),
        cost=sum(cost / len(known) for cost in known) if known else None,
        **changed,
    )


def _flaky(passes: Mapping[str, Sequence[bool]]) -> Sequence[FlakyTest]:
    flaky = []
    for name, passed in passes.items():
        if flips := sum(before != after for before, after in pairwise(passed)):
            flaky.append(FlakyTest(name, sum(passed), len(passed), flips))
    return sorted(flaky, key=lambda test: (-test.rate, test.id))
