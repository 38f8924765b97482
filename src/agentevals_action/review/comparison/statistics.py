"""The statistics of a comparison: what a history of base predicts of fresh samples, and how certain
a mean difference is. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from agentevals_action.model.comparison import Counts, Difference
from agentevals_action.results.summary import Z95

#: The quantile of the normal distribution for a power of 80 %.
_Z80 = NormalDist().inv_cdf(0.8)

#: The grid of failure rates: denser where most tests are.
_RATES = (
    *(0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2),
    *(0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98),
)
#: Steps of expectation and maximisation, after which the weights hardly change.
_STEPS = 60


@dataclass(frozen=True)
class Prior:
    """The probability of each failure rate for a test of a suite before its own history is
    considered; the sum is 1."""

    weights: tuple[float, ...] = (1 / len(_RATES),) * len(_RATES)


def fit_prior(histories: Iterable[Counts]) -> Prior:
    """The prior of a suite from the histories of its tests (empirical Bayes).

    The mixture of failure rates with the maximum likelihood (Kiefer and Wolfowitz 1956), by
    expectation and maximisation (Laird 1978) on a grid, with one more test without a history, so
    that no rate gets the probability 0. No shape is assumed: a suite may have many tests that never
    fail and a few that fail half of the time.
    """
    counts = Counter(history for history in histories if history.trials)
    likelihoods = [(number, _likelihoods(history)) for history, number in counts.items()]
    total = counts.total() + 1
    weights = Prior().weights
    for _ in range(_STEPS if counts else 0):
        sums = [1 / len(_RATES)] * len(_RATES)
        for number, likelihood in likelihoods:
            for index, share in enumerate(_posterior(weights, likelihood)):
                sums[index] += number * share
        weights = tuple(value / total for value in sums)
    return Prior(weights)


def failures_needed(history: Counts, prior: Prior, horizon: int, level: float) -> int | None:
    """The smallest number of failures among `horizon` fresh samples whose probability, given the
    history of base, is at most `level`.

    At least 2, because one failure alone is never evidence. None when even `horizon` failures are
    too probable: the history is too short or too flaky.
    """
    counts = range(2, horizon + 1)
    return next((count for count in counts if tail(history, prior, horizon, count) <= level), None)


@lru_cache(maxsize=4096)
def tail(history: Counts, prior: Prior, trials: int, failures: int) -> float:
    """The probability (0–1) of at least `failures` among fresh samples if nothing has changed
    (posterior predictive)."""
    shares = _posterior(prior.weights, _likelihoods(history))
    terms = (
        share * binomial_tail(trials, failures, rate)
        for share, rate in zip(shares, _RATES, strict=True)
    )
    return min(math.fsum(terms), 1.0)


def _posterior(weights: Sequence[float], likelihoods: Sequence[float]) -> list[float]:
    products = [
        weight * likelihood for weight, likelihood in zip(weights, likelihoods, strict=True)
    ]
    total = math.fsum(products)
    return [product / total for product in products]


@lru_cache(maxsize=4096)
def _likelihoods(history: Counts) -> tuple[float, ...]:
    logs = [
        history.failures * math.log(rate) + history.successes * math.log1p(-rate) for rate in _RATES
    ]
    largest = max(logs)
    return tuple(math.exp(value - largest) for value in logs)


def binomial(trials: int, count: int, rate: float) -> float:
    """The probability (0–1) of `count` successes among the trials at a success rate."""
    return math.comb(trials, count) * rate**count * (1 - rate) ** (trials - count)


@lru_cache(maxsize=4096)
def binomial_tail(trials: int, failures: int, rate: float) -> float:
    """The probability (0–1) of at least `failures` failures among the trials at a failure rate."""
    return math.fsum(binomial(trials, count, rate) for count in range(failures, trials + 1))


def sign_test(successes: int, trials: int) -> float:
    """The probability (0–1) of at least `successes` if each trial succeeds as often as not:
    the exact one-sided sign test (Dixon and Mood 1946, "The statistical sign test"). In integers,
    which do not overflow."""
    ways: int = sum(math.comb(trials, count) for count in range(successes, trials + 1))
    return ways / (1 << trials)


def paired_difference(differences: Sequence[tuple[float, Hashable]]) -> Difference | None:
    """The mean of question-level differences (head minus base), each with its cluster. None for
    fewer than two clusters.

    Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640): the clustered standard error
    (equation 4) of question-level paired differences (section "Paired analysis"), and the smallest
    detectable difference by its power analysis, two-sided 5 % and 80 % power.
    """
    count = len(differences)
    if not count:
        return None
    mean = math.fsum(value for value, _ in differences) / count
    sums: dict[Hashable, float] = defaultdict(float)
    for value, cluster in differences:
        sums[cluster] += value - mean
    if len(sums) < 2:
        return None
    # With few clusters the plain sum is too small by (G - 1) / G on average.
    correction = len(sums) / (len(sums) - 1)
    error = math.sqrt(correction * math.fsum(part * part for part in sums.values())) / count
    low, high, detectable = mean - Z95 * error, mean + Z95 * error, (Z95 + _Z80) * error
    return Difference(mean, low, high, detectable, count, len(sums))
