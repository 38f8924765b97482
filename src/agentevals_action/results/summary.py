"""The totals of a suite, and the interval of a rate."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean
from typing import TypeVar

from agentevals_action.model.result import (
    ADVISORY,
    EvaluatorResult,
    EvaluatorSummary,
    SuiteSummary,
    TestResult,
)
from agentevals_action.model.trace import total, total_spending
from agentevals_action.results import scoring

_TOP_MISSES = 10
#: The quantile of the normal distribution for two-sided 95 %.
Z95 = NormalDist().inv_cdf(0.975)

Number = TypeVar("Number", int, float)


def summarise(
    path: str, name: str, results: Iterable[TestResult], samples: int = 1
) -> SuiteSummary:
    """The totals of one suite's results, in suite order, of a run with `samples` for each test.

    Pass rate = pass / scored, None if nothing was scored. The mean score is over the
    scored tests, without samples that confirmed a suspect. Costs (US dollars), tokens and the
    duration (milliseconds) sum what is known, None if nothing is known. The misses are the ten most
    frequent, ties in the order of the suite."""
    tests = tuple(results)
    verdicts = Counter(test.state for test in tests)
    scored = sum(test.verdict is not None for test in tests)
    # A row of another tool has figures, but no samples.
    traces = [
        trace
        for test in tests
        for trace in ([sample.trace_summary for sample in test.samples] or [test.trace_summary])
    ]
    usages = [trace.usage for trace in traces if trace]
    durations = _known(test.duration_ms for test in tests)
    misses = Counter(miss for test in tests for miss in test.misses)
    return SuiteSummary(
        eval_path=path,
        dataset=name,
        total=len(tests),
        passed=verdicts["pass"],
        borderline=verdicts["borderline"],
        failed=verdicts["fail"],
        errored=verdicts["error"],
        advisory=verdicts[ADVISORY],
        pass_rate=verdicts["pass"] / scored if scored else None,
        pass_all=pass_all(tests, samples),
        average_score=_mean(_known(map(_own_score, tests))),
        by_evaluator=_by_evaluator(tests),
        top_misses=tuple(miss for miss, _ in misses.most_common(_TOP_MISSES)),
        spent=total_spending(test.spent for test in tests),
        usage=total(usages, partial=True),
        samples=len(traces),
        samples_with_cost=len(_known(usage.cost_usd for usage in usages)),
        samples_with_tokens=len(_known(usage.total_tokens for usage in usages)),
        duration_ms=sum(durations) if durations else None,
    )


def pass_all(results: Iterable[TestResult], samples: int) -> float | None:
    """The share (0-1) of the scored tests that pass in all `samples` samples: pass^k. None for one
    sample, without a scored test, or if a test has fewer samples.

    For a test with more samples (base's history), the probability that all `samples` drawn samples
    pass (Yao et al. 2024, "τ-bench", arXiv 2406.12045, section 3). The samples of a confirmation do
    not count: they are a choice of suspects."""
    scored = [test.main_samples for test in results if test.verdict]
    if samples < 2 or not scored or any(len(taken) < samples for taken in scored):
        return None
    passed = ((sum(sample.verdict == "pass" for sample in taken), len(taken)) for taken in scored)
    return fmean(math.comb(count, samples) / math.comb(taken, samples) for count, taken in passed)


def _by_evaluator(tests: Iterable[TestResult]) -> tuple[EvaluatorSummary, ...]:
    by_evaluator: dict[tuple[str, str], list[EvaluatorResult]] = {}
    for test in tests:
        for result in test.evaluator_results:
            by_evaluator.setdefault((result.name, result.type), []).append(result)
    return tuple(
        EvaluatorSummary(
            name=name,
            type=type,
            total=len(results),
            error=sum(result.score is None for result in results),
            average_score=_mean(_known(result.score for result in results)),
        )
        for (name, type), results in by_evaluator.items()
    )


def _known(values: Iterable[Number | None]) -> list[Number]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _own_score(result: TestResult) -> float | None:
    """A test's score by the run's own samples, None if it has no verdict."""
    if result.verdict is None or not result.fresh_samples:
        return result.score if result.verdict else None
    return scoring.combine_samples(result.main_samples)[0]


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a rate (0–1) by Wilson 1927; 0–1 without trials."""
    if not trials:
        return 0.0, 1.0
    rate, z2 = successes / trials, Z95**2
    middle = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = math.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials * trials))
    half = Z95 / (1 + z2 / trials) * spread
    low = 0.0 if not successes else max(middle - half, 0.0)
    high = 1.0 if successes == trials else min(middle + half, 1.0)
    return low, high
