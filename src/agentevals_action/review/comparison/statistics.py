"""Pure: the arithmetic under a comparison: what a base's history predicts of fresh samples, and how
sure a mean difference is."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentevals_action.model.comparison import Difference, History

#: Failure rates that a test is taken to have one of: closer together where most tests are.
_RATES = (
    0.002,
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.07,
    0.1,
    0.13,
    0.16,
    0.2,
    0.25,
    0.3,
    0.35,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.98,
)
#: Steps of expectation and maximisation: the weights hardly move any more.
_STEPS = 60
#: Two-sided 95 % and one-sided 80 % quantiles of the normal distribution.
_Z95, _Z80 = 1.959963984540054, 0.8416212335729143


@dataclass(frozen=True)
class Prior:
    """How likely each failure rate is for a test of this suite before its own history is looked at:
    `weights` sum to 1."""

    weights: tuple[float, ...] = (1 / len(_RATES),) * len(_RATES)


def fit_prior(histories: Iterable[History]) -> Prior:
    """The prior of one suite from the histories of its tests (empirical Bayes).

    The mixture of failure rates that makes the histories most likely (Kiefer and Wolfowitz 1956),
    by expectation and maximisation (Laird 1978), on a grid, with one more test of which nothing is
    known, so that no rate is ever ruled out. No shape is assumed: a suite may hold many tests that
    never fail beside a few that fail half of the time."""
    counts = Counter(history for history in histories if history.trials)
    likelihoods = [(many, _likelihoods(history)) for history, many in counts.items()]
    total = counts.total() + 1
    weights = Prior().weights
    for _ in range(_STEPS if counts else 0):
        sums = [1 / len(_RATES)] * len(_RATES)
        for many, likelihood in likelihoods:
            for place, share in enumerate(_posterior(weights, likelihood)):
                sums[place] += many * share
        weights = tuple(value / total for value in sums)
    return Prior(weights)


def failures_needed(history: History, prior: Prior, horizon: int, level: float) -> int | None:
    """The least number of failures among `horizon` fresh samples that the base's history makes less
    likely than `level`.

    At least 2: one failure alone is never evidence. None when even `horizon` failures are too
    likely: the history is too thin or too flaky for so few samples."""
    return next(
        (count for count in range(2, horizon + 1) if tail(history, prior, horizon, count) <= level),
        None,
    )


def tail(history: History, prior: Prior, trials: int, failures: int) -> float:
    """Probability (0-1) of at least so many failures among fresh samples if nothing has changed:
    posterior predictive."""
    shares = _posterior(prior.weights, _likelihoods(history))
    return min(
        math.fsum(
            share * _binomial_tail(trials, failures, rate)
            for share, rate in zip(shares, _RATES, strict=True)
        ),
        1.0,
    )


def _posterior(weights: Sequence[float], likelihoods: Sequence[float]) -> list[float]:
    products = [
        weight * likelihood for weight, likelihood in zip(weights, likelihoods, strict=True)
    ]
    total = math.fsum(products)
    return [product / total for product in products]


@lru_cache(maxsize=4096)
def _likelihoods(history: History) -> tuple[float, ...]:
    logs = [
        history.failures * math.log(rate) + history.successes * math.log1p(-rate) for rate in _RATES
    ]
    largest = max(logs)
    return tuple(math.exp(value - largest) for value in logs)


@lru_cache(maxsize=4096)
def _binomial_tail(trials: int, failures: int, rate: float) -> float:
    counts = range(failures, trials + 1)
    return math.fsum(
        math.comb(trials, count) * rate**count * (1 - rate) ** (trials - count) for count in counts
    )


def paired_difference(differences: Sequence[tuple[float, Hashable]]) -> Difference | None:
    """The mean of question-level differences (head minus base), each with its cluster; None for
    fewer than two clusters.

    Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640): the clustered standard error
    (equation 4) of question-level paired differences (section "Paired analysis"); the smallest
    detectable difference by its power analysis, two-sided 5 % and 80 % power."""
    count = len(differences)
    sums: dict[Hashable, float] = defaultdict(float)
    if not count:
        return None
    mean = math.fsum(value for value, _ in differences) / count
    for value, cluster in differences:
        sums[cluster] += value - mean
    if len(sums) < 2:
        return None
    # With few clusters the plain sum is too small by (G - 1) / G on average.
    correction = len(sums) / (len(sums) - 1)
    error = math.sqrt(correction * math.fsum(part * part for part in sums.values())) / count
    return Difference(
        mean, mean - _Z95 * error, mean + _Z95 * error, (_Z95 + _Z80) * error, count, len(sums)
    )
