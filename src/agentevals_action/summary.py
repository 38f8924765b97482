"""Pure: the totals of a suite (specification, section 7)."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentevals_action.model.result import EvaluatorResult, EvaluatorSummary, SuiteSummary, TestResult

_TOP_MISSES = 10
#: Different misses that are counted side by side; beyond it those that were seen least are let go.
_MOST_MISSES = 10_000


@dataclass
class _Sum:
    """The exact sum of numbers, and how many they are: parts that do not overlap, as Shewchuk adds them (1997, "Adaptive precision
    floating-point arithmetic"), are a handful however many the numbers."""

    count: int = 0
    _parts: list[float] = field(default_factory=list)

    def add(self, value: float | None) -> None:
        """One more number; None is none."""
        if value is None:
            return
        self.count += 1
        parts = []
        for part in self._parts:
            large, small = (value, part) if abs(value) >= abs(part) else (part, value)
            value = large + small
            if rest := small - (value - large):
                parts.append(rest)
        self._parts = [*parts, value]

    @property
    def total(self) -> float:
        return math.fsum(self._parts)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Evaluator:
    total: int = 0
    error: int = 0
    scores: _Sum = field(default_factory=_Sum)

    def add(self, result: EvaluatorResult) -> None:
        self.total += 1
        self.error += result.score is None
        self.scores.add(result.score)


def _count(misses: "Counter[str]", more: Iterable[str]) -> None:
    misses.update(more)
    if len(misses) > _MOST_MISSES:
        kept = misses.most_common(_MOST_MISSES // 2)
        misses.clear()
        misses.update(dict(kept))


def summarise(path: str, name: str, results: Iterable[TestResult]) -> SuiteSummary:
    """Totals over one suite's results, which are gone through once and not held.

    Pass rate = pass / (total - error), None when nothing was scored; the mean score is over what was scored; cost (US dollars) sums what
    is known, None when nothing is; duration (milliseconds) sums the tests'. Misses come by how often, then by first seen, at most ten.
    """
    verdicts: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    evaluators: dict[tuple[str, str], _Evaluator] = {}
    scores, costs, durations = _Sum(), _Sum(), _Sum()
    for result in results:
        verdicts[result.verdict or "error"] += 1
        _count(misses, result.misses)
        scores.add(result.score if result.verdict else None)
        costs.add(result.cost_usd)
        durations.add(result.duration_ms)
        for evaluated in result.evaluator_results:
            evaluators.setdefault((evaluated.name, evaluated.type), _Evaluator()).add(evaluated)
    total = verdicts.total()
    scored = total - verdicts["error"]
    return SuiteSummary(
        eval_path=path,
        dataset=name,
        total=total,
        passed=verdicts["pass"],
        borderline=verdicts["borderline"],
        failed=verdicts["fail"],
        errored=verdicts["error"],
        pass_rate=verdicts["pass"] / scored if scored else None,
        average_score=scores.mean,
        by_evaluator=tuple(
            EvaluatorSummary(name=key[0], type=key[1], total=one.total, error=one.error, average_score=one.scores.mean)
            for key, one in evaluators.items()
        ),
        top_misses=tuple(miss for miss, _ in misses.most_common(_TOP_MISSES)),
        cost_usd=costs.total if costs.count else None,
        duration_ms=durations.total,
    )
