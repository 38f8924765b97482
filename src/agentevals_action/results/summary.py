"""Pure: the totals of a suite (specification, section 7)."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentevals_action.model.result import (
    EvaluatorResult,
    EvaluatorSummary,
    SuiteSummary,
    TestResult,
)
from agentevals_action.results import scoring

_TOP_MISSES = 10
#: Different misses that are counted side by side; beyond it those that were seen least are let go.
_MOST_MISSES = 10_000


@dataclass
class _Sum:
    """The exact sum of numbers, and how many they are: parts that do not overlap, as Shewchuk adds
    them (1997, "Adaptive precision floating-point arithmetic"), are a handful however many the
    numbers."""

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


@dataclass
class _Spending:
    """What a run cost, and what agents took over all samples."""

    paid: _Sum = field(default_factory=_Sum)
    replies: int = 0
    cached: int = 0
    unpriced: int = 0
    samples: int = 0
    with_tokens: int = 0
    agents: _Sum = field(default_factory=_Sum)
    input_tokens: int | None = None
    output_tokens: int | None = None

    def add(self, result: TestResult) -> None:
        self.paid.add(result.cost_usd)
        self.replies += result.replies
        self.cached += result.cached_replies
        self.unpriced += result.unpriced_replies
        # A row of another tool has figures and no samples.
        for figures in [sample.trace_summary for sample in result.samples] or [
            result.trace_summary
        ]:
            self.samples += 1
            if figures is None:
                continue
            self.agents.add(figures.cost_usd)
            self.input_tokens = _plus(self.input_tokens, figures.input_tokens)
            self.output_tokens = _plus(self.output_tokens, figures.output_tokens)
            self.with_tokens += (
                figures.input_tokens is not None and figures.output_tokens is not None
            )

    def fields(self) -> Mapping[str, Any]:
        """The fields of a summary that tell of it."""
        return {
            "cost_usd": self.paid.total if self.paid.count else None,
            "agent_cost_usd": self.agents.total if self.agents.count else None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "samples": self.samples,
            "samples_with_cost": self.agents.count,
            "samples_with_tokens": self.with_tokens,
            "replies": self.replies,
            "cached_replies": self.cached,
            "unpriced_replies": self.unpriced,
        }


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more


def _count(misses: "Counter[str]", more: Iterable[str]) -> None:
    misses.update(more)
    if len(misses) > _MOST_MISSES:
        kept = misses.most_common(_MOST_MISSES // 2)
        misses.clear()
        misses.update(dict(kept))


def _own_score(result: TestResult) -> float | None:
    """A test's score by the run's own samples, None when it has no verdict."""
    if result.verdict is None or not result.confirming:
        return result.score if result.verdict else None
    return scoring.combine_samples(result.main_samples)[0]


def summarise(path: str, name: str, results: Iterable[TestResult]) -> SuiteSummary:
    """Totals over one suite's results, which are gone through once and not held.

    Pass rate = pass / (total - error), None when nothing was scored; the mean score is over what
    was scored, without samples that confirmed a suspicion, as is the difference to base; costs (US
    dollars) and tokens sum what is known, None when nothing is; duration (milliseconds) sums the
    tests'. Misses come by how often, then by first seen, at most ten."""
    verdicts: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    evaluators: dict[tuple[str, str], _Evaluator] = {}
    scores, durations, spending = _Sum(), _Sum(), _Spending()
    for result in results:
        verdicts[result.verdict or "error"] += 1
        _count(misses, result.misses)
        scores.add(_own_score(result))
        durations.add(result.duration_ms)
        spending.add(result)
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
            EvaluatorSummary(
                name=key[0],
                type=key[1],
                total=one.total,
                error=one.error,
                average_score=one.scores.mean,
            )
            for key, one in evaluators.items()
        ),
        top_misses=tuple(miss for miss, _ in misses.most_common(_TOP_MISSES)),
        duration_ms=durations.total,
        **spending.fields(),
    )
