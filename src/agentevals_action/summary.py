"""Pure: the totals of a suite (specification, section 7)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentevals_action.model.result import EvaluatorResult, EvaluatorSummary, SuiteSummary, TestResult

_TOP_MISSES = 10


@dataclass
class _Evaluator:
    total: int = 0
    error: int = 0
    scores: list[float] = field(default_factory=list)

    def add(self, result: EvaluatorResult) -> None:
        self.total += 1
        if result.score is None:
            self.error += 1
        else:
            self.scores.append(result.score)


def summarise(path: str, name: str, results: Iterable[TestResult]) -> SuiteSummary:
    """Totals over one suite's results, which are gone through once.

    Pass rate = pass / (total - error), None when nothing was scored; the mean score is over what was scored; cost (US dollars) sums what
    is known, None when nothing is; duration (milliseconds) sums the tests'. Misses come by how often, then by first seen, at most ten.
    """
    verdicts: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    evaluators: dict[tuple[str, str], _Evaluator] = {}
    scores: list[float] = []
    costs: list[float] = []
    duration = 0.0
    for result in results:
        verdicts[result.verdict or "error"] += 1
        misses.update(result.misses)
        scores += [] if result.score is None or result.verdict is None else [result.score]
        costs += [] if result.cost_usd is None else [result.cost_usd]
        duration += result.duration_ms or 0.0
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
        average_score=_mean(scores),
        by_evaluator=tuple(
            EvaluatorSummary(name=key[0], type=key[1], total=one.total, error=one.error, average_score=_mean(one.scores))
            for key, one in evaluators.items()
        ),
        top_misses=tuple(miss for miss, _ in misses.most_common(_TOP_MISSES)),
        cost_usd=sum(costs) if costs else None,
        duration_ms=duration,
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
