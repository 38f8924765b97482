"""Weights, gates and verdicts."""

from collections import Counter
from collections.abc import Iterable, Sequence

from agentevals_action.model.result import (
    ADVISORY,
    BORDERLINE_SCORE,
    PASS_SCORE,
    ErrorInfo,
    EvaluatorResult,
    SampleResult,
    Verdict,
)

#: Samples below which a majority does not decide.
MIN_MAJORITY = 3


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is at least a threshold, both rounded to 9 decimals against float noise."""
    return round(score, 9) >= round(threshold, 9)


def weighted_mean(scores: Sequence[tuple[float, float]]) -> float:
    """Mean of (score, weight) pairs: sum(score * weight) / sum(weight), the plain mean if all
    weights are 0; at least one pair."""
    total = sum(weight for _, weight in scores)
    if total == 0:
        return sum(score for score, _ in scores) / len(scores)
    return sum(score * weight for score, weight in scores) / total


def compute_verdict(score: float, gates_failed: Iterable[str] = ()) -> Verdict:
    """`pass` from 0.8, `borderline` from 0.6, else `fail`; one failed gate makes it `fail` whatever
    the score."""
    if tuple(gates_failed):
        return "fail"
    if reaches(score, PASS_SCORE):
        return "pass"
    return "borderline" if reaches(score, BORDERLINE_SCORE) else "fail"


def find_deciding(results: Sequence[EvaluatorResult]) -> Sequence[EvaluatorResult]:
    """The results that are not advisory; none if they have no weight and are no gates, and an
    advisory judge beside them has a weight: the suite lets the judge alone decide."""
    deciding = [result for result in results if not result.advisory]
    counts = any(
        result.weight or result.required is not False or result.gates_failed for result in deciding
    )
    has_judge = any(result.weight for result in results if result.advisory)
    return deciding if counts or not has_judge else ()


def score_sample(
    results: Sequence[EvaluatorResult],
) -> tuple[float | None, Verdict | None, tuple[str, ...]]:
    """Score, verdict and failed gates of one attempt, without what is advisory.

    A failed gate is `fail` even if another evaluator ended in an error; the score is then the mean
    of the other scores (None without any). Else one error leaves the sample without both."""
    results = find_deciding(results)
    scored = [(result.score, result.weight) for result in results if result.score is not None]
    gates = tuple(dict.fromkeys(gate for result in results for gate in result.gates_failed))
    errored = any(result.error for result in results) or not scored
    if errored and not gates:
        return None, None, ()
    score = weighted_mean(scored) if scored else None
    return score, "fail" if gates else compute_verdict(score or 0.0), gates


def find_error(results: Sequence[EvaluatorResult]) -> ErrorInfo | None:
    """The first error of an evaluator that decides about an attempt; an error of kind `advisory`
    if no evaluator decides."""
    deciding = find_deciding(results)
    reasons = [result.advisory for result in results if result.advisory]
    if reasons and not deciding:
        return ErrorInfo(kind=ADVISORY, message=reasons[0])
    return next((result.error for result in deciding if result.error), None)


def deciding_samples(samples: Sequence[SampleResult]) -> Sequence[SampleResult]:
    """The samples about which an evaluator decides; all samples if there are none."""
    return [sample for sample in samples if not sample.is_advisory] or samples


def combine_samples(
    samples: Sequence[SampleResult],
) -> tuple[float | None, Verdict | None, tuple[str, ...]]:
    """Score, verdict and failed gates of a test over its samples that an evaluator decides about.

    The score is the mean, the verdict follows from it; a gate fails if it failed in more
    than half of the samples. A sample that could not be scored leaves the test without score and
    verdict, unless a gate failed in more than half of all samples."""
    samples = deciding_samples(samples)
    counts = Counter(gate for sample in samples for gate in dict.fromkeys(sample.gates_failed))
    gates = tuple(name for name, count in counts.items() if 2 * count > len(samples))
    scores = [sample.score for sample in samples if sample.score is not None]
    errored = any(sample.error is not None or sample.verdict is None for sample in samples)
    if gates:
        return (sum(scores) / len(scores) if scores else None), "fail", gates
    if errored or not scores:
        return None, None, ()
    score = sum(scores) / len(scores)
    return score, compute_verdict(score), ()
