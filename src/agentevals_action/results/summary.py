"""The totals of a suite."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentevals_action.formatting import distinct
from agentevals_action.model.result import (
    EvaluatorResult,
    EvaluatorSummary,
    SuiteRun,
    SuiteSummary,
    TestResult,
)
from agentevals_action.results import scoring

_TOP_MISSES = 10
_MOST_MISSES = 10_000  # different misses that are counted; beyond it the rare ones are dropped


@dataclass
class _Sum:
    """The sum of the known values, and their number."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def known(self) -> float | None:
        return self.total if self.count else None

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Evaluator:
    first: int
    total: int = 0
    errors: int = 0
    scores: _Sum = field(default_factory=_Sum)

    def add(self, result: EvaluatorResult) -> None:
        self.total += 1
        self.errors += result.score is None
        self.scores.add(result.score)


class SuiteTotals:
    """Adds up the results of one suite, in any order, and holds none of them."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()
        self._first_misses: dict[str, int] = {}
        self._evaluators: dict[tuple[str, str], _Evaluator] = {}
        self._scores, self._durations, self._costs = _Sum(), _Sum(), _Sum()
        self._replies: Counter[str] = Counter()
        self._cost_sources: tuple[str, ...] = ()
        self._samples = self._samples_with_tokens = 0
        self._agent_costs, self._input_tokens, self._output_tokens = _Sum(), _Sum(), _Sum()

    def add(self, index: int, result: TestResult) -> None:
        """Adds the result of the test at this index of the run."""
        self._verdicts[result.verdict or "error"] += 1
        self._scores.add(_own_score(result))
        self._durations.add(result.duration_ms)
        self._costs.add(result.cost_usd)
        self._cost_sources = distinct([self._cost_sources, result.cost_sources])
        self._replies["all"] += result.replies
        self._replies["cached"] += result.cached_replies
        self._replies["unpriced"] += result.unpriced_replies
        self._add_misses(index, result.misses)
        for evaluated in result.evaluator_results:
            key = (evaluated.name, evaluated.type)
            evaluator = self._evaluators.setdefault(key, _Evaluator(index))
            evaluator.first = min(evaluator.first, index)
            evaluator.add(evaluated)
        self._add_traces(result)

    def _add_misses(self, index: int, misses: Iterable[str]) -> None:
        for miss in misses:
            self._misses[miss] += 1
            self._first_misses[miss] = min(index, self._first_misses.get(miss, index))
        if len(self._misses) > _MOST_MISSES:
            self._misses = Counter(dict(self._misses.most_common(_MOST_MISSES // 2)))
            self._first_misses = {miss: self._first_misses[miss] for miss in self._misses}

    def _add_traces(self, result: TestResult) -> None:
        # A row of another tool has figures, but no samples.
        traces = [sample.trace_summary for sample in result.samples] or [result.trace_summary]
        self._samples += len(traces)
        for trace in filter(None, traces):
            self._agent_costs.add(trace.cost_usd)
            self._input_tokens.add(trace.input_tokens)
            self._output_tokens.add(trace.output_tokens)
            is_known = trace.input_tokens is not None and trace.output_tokens is not None
            self._samples_with_tokens += is_known

    def summary(self, path: str, name: str) -> SuiteSummary:
        """The totals of what was added.

        Pass rate = pass / (total - error), None if nothing was scored. The mean score is over the
        scored tests, without samples that confirmed a suspect. Costs (US dollars) and tokens sum
        what is known, None if nothing is; the duration (milliseconds) sums the tests'. The misses
        are the ten most frequent, ties in the order of the suite."""
        total = self._verdicts.total()
        scored = total - self._verdicts["error"]
        evaluators = sorted(self._evaluators.items(), key=lambda item: item[1].first)
        misses = sorted(
            self._misses, key=lambda miss: (-self._misses[miss], self._first_misses[miss])
        )
        return SuiteSummary(
            eval_path=path,
            dataset=name,
            total=total,
            passed=self._verdicts["pass"],
            borderline=self._verdicts["borderline"],
            failed=self._verdicts["fail"],
            errored=self._verdicts["error"],
            pass_rate=self._verdicts["pass"] / scored if scored else None,
            average_score=self._scores.mean,
            by_evaluator=tuple(
                EvaluatorSummary(
                    name=key[0],
                    type=key[1],
                    total=one.total,
                    error=one.errors,
                    average_score=one.scores.mean,
                )
                for key, one in evaluators
            ),
            top_misses=tuple(misses[:_TOP_MISSES]),
            cost_usd=self._costs.known,
            cost_sources=self._cost_sources,
            agent_cost_usd=self._agent_costs.known,
            input_tokens=_whole(self._input_tokens),
            output_tokens=_whole(self._output_tokens),
            samples=self._samples,
            samples_with_cost=self._agent_costs.count,
            samples_with_tokens=self._samples_with_tokens,
            replies=self._replies["all"],
            cached_replies=self._replies["cached"],
            unpriced_replies=self._replies["unpriced"],
            duration_ms=self._durations.total,
        )


def summarise(path: str, name: str, results: Iterable[TestResult]) -> SuiteSummary:
    """The totals of one suite's results, which are read once and not held."""
    totals = SuiteTotals()
    for index, result in enumerate(results):
        totals.add(index, result)
    return totals.summary(path, name)


def suite_run(path: str, name: str, results: Iterable[TestResult]) -> SuiteRun:
    """The run of a suite with these results."""
    results = tuple(results)
    return SuiteRun(path, name, results, summarise(path, name, results))


def _whole(tokens: _Sum) -> int | None:
    return int(tokens.total) if tokens.count else None


def _own_score(result: TestResult) -> float | None:
    """A test's score by the run's own samples, None if it has no verdict."""
    if result.verdict is None or not result.confirming:
        return result.score if result.verdict else None
    return scoring.combine_samples(result.main_samples)[0]
