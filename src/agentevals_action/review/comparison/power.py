"""The smallest drop that a suite finds, by binomials over the rule that decides. Pure."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from agentevals_action.model.comparison import Counts, SmallestDrop
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Run, RunSuite
from agentevals_action.results.scoring import compute_verdict
from agentevals_action.review.comparison.decision_rule import (
    FIRST_SAMPLES,
    MIN_HISTORY,
    RANK,
    SUSPICION,
    as_head_scores,
)
from agentevals_action.review.comparison.statistics import (
    Prior,
    binomial,
    binomial_tail,
    failures_needed,
    fit_prior,
)

#: The pass rate of tests without a history.
USUAL_RATE = 0.9
#: The probability with which a drop is found.
POWER = 0.8
#: Samples above which a longer history changes little.
_LONGEST_HISTORY = 50
#: Values of the input `confirm` that are proposed to a suite that finds nothing.
_PROPOSED = (10, 20)
#: The number of pass rates on base, equally probable, that stand for all.
_RATES_ON_BASE = 5
#: Standard deviations around the mean beyond which a number is too improbable to matter.
_DEVIATIONS = 6
#: The numbers of suspects, at equal distances, that stand for all of a large suite.
_NUMBERS = 64


@dataclass(frozen=True)
class Sampling:
    """How a suite is sampled: `tests` that pass at the same `rate` (0–1) and independently of each
    other, `history` samples of each on base, which can run again, and `samples` on head. `confirm`
    and `alpha` are the inputs. No other suite has suspects."""

    tests: int
    samples: int
    confirm: int
    alpha: float
    rate: float = USUAL_RATE
    history: int = 1


def find_drop(run: Run, suite: RunSuite, base: Iterable[TestResult]) -> SmallestDrop | None:
    """The smallest drop that a suite of a run finds, by its results on base; None if the run has no
    base."""
    if not run.baseline.wanted:
        return None
    varying = set(suite.tests).difference(suite.steady)
    rows = [as_head_scores(row).main_samples for row in base if row.eval_id in varying]
    passes = [sample.verdict == "pass" for row in rows for sample in row if sample.verdict]
    sampling = Sampling(len(varying), run.samples, run.policy.confirm, run.policy.level)
    if passes:
        history = max(len(passes) // len(rows), 1)
        sampling = replace(sampling, rate=sum(passes) / len(passes), history=history)
    return smallest_drop(sampling, len(suite.steady))


def smallest_drop(sampling: Sampling, steady: int = 0) -> SmallestDrop:
    """The smallest drop, in hundredths, that a suite finds with a probability of `POWER`. `steady`
    more tests always give the same result."""
    found = SmallestDrop(sampling.tests, steady, sampling.samples, sampling.confirm, sampling.rate)
    if not sampling.tests or not sampling.confirm:
        return found
    head = _highest_found(sampling)
    larger = (replace(sampling, confirm=more) for more in _PROPOSED if more > sampling.confirm)
    enough = (each.confirm for each in larger if _highest_found(each) is not None)
    return replace(found, head=head, enough=None if head is not None else next(enough, None))


def _highest_found(sampling: Sampling) -> float | None:
    """The highest pass rate of head whose drop is found, of multiples of 0.05 and those of 0.01
    that are next to it."""
    chances, below = Chances(sampling), math.ceil(round(100 * sampling.rate, 9))

    def is_found(percent: int) -> bool:
        return chances.find(percent / 100) >= POWER

    near = next(filter(is_found, range(5 * ((below - 1) // 5), -1, -5)), None)
    if near is None:
        return None
    return next(filter(is_found, range(min(near + 5, below) - 1, near - 1, -1))) / 100


class Chances:
    """How probable it is that a sampling finds a drop.

    What decides about a test depends on all: the level on the number of suspects, over which it is
    summed, the prior on base's results, for which typical ones at some pass rates stand."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._history = min(sampling.history, _LONGEST_HISTORY)
        samples = sampling.tests * self._history
        passed = _quantiles(samples, sampling.rate, _RATES_ON_BASE)
        self._priors = Counter(fit_prior(self._typical(count / samples)) for count in passed)
        # Base is sampled again if its history is short.
        length = max(self._history, MIN_HISTORY)
        self._histories = [Counts(count, length) for count in range(length + 1)]
        self._needed = cache(self._find_needed)

    def find(self, rate: float) -> float:
        """The probability (0–1) that at least one test is confirmed as a regression if the pass
        rate of all falls to `rate`."""
        tests, suspects = self._sampling.tests, self._suspects(rate)
        share = math.fsum(suspects)
        confirmed = [self._confirm(needed, rate) for needed in range(self._sampling.confirm + 1)]
        likely, found = _likely(tests, share), 0.0
        distance = len(likely) // _NUMBERS + 1
        first = -(-likely.start // distance) * distance  # the same numbers at each rate
        for number in range(first, likely.stop, distance) if share else ():
            for prior, weight in self._priors.items():
                needed = self._needed(prior, max(number, 1))
                each = math.fsum(
                    part * confirmed[failures]
                    for part, failures in zip(suspects, needed, strict=True)
                    if failures
                )
                one = 1 - max(1 - each / share, 0.0) ** number
                found += distance * binomial(tests, number, share) * weight / _RATES_ON_BASE * one
        return found

    def _typical(self, rate: float) -> Iterable[Counts]:
        """The histories of all tests on base as they are distributed at a pass rate."""
        passed = _quantiles(self._history, rate, self._sampling.tests)
        return (Counts(count, self._history) for count in passed)

    def _suspects(self, rate: float) -> Sequence[float]:
        """For each history of a test, the probability of it with a fall of the verdict."""
        before = _distribution(self._history, self._sampling.rate)
        after = _distribution(self._sampling.samples, rate)
        falls = [
            chance * math.fsum(each for lower, each in after if lower < rank)
            for rank, chance in before
        ]
        if self._history >= MIN_HISTORY:
            return falls
        again = _distribution(MIN_HISTORY, self._sampling.rate)
        return [math.fsum(falls) * chance for _, chance in again]

    def _find_needed(self, prior: Prior, suspects: int) -> Sequence[int | None]:
        """For each history of a test, the failures that make a regression."""
        level, horizon = self._sampling.alpha / suspects, self._sampling.confirm
        return [
            failures_needed(history + SUSPICION, prior, horizon, level)
            for history in self._histories
        ]

    def _confirm(self, needed: int, rate: float) -> float:
        """The probability of so many failures among the fresh samples, the first of which do not
        all pass."""
        horizon = self._sampling.confirm
        first = min(FIRST_SAMPLES, horizon)
        later = rate**first * binomial_tail(horizon - first, needed, 1 - rate)
        return binomial_tail(horizon, needed, 1 - rate) - later


def _likely(trials: int, rate: float) -> range:
    """The numbers of successes that are not too improbable."""
    mean, spread = trials * rate, _DEVIATIONS * math.sqrt(trials * rate * (1 - rate)) + 1
    return range(max(math.floor(mean - spread), 0), min(math.ceil(mean + spread), trials) + 1)


def _quantiles(trials: int, rate: float, ranges: int) -> Iterable[int]:
    """The middles of equally probable ranges of the number of successes, in their order."""
    numbers = _likely(trials, rate)
    sums = list(accumulate(binomial(trials, number, rate) for number in numbers))
    places = (bisect_left(sums, (place + 0.5) / ranges) for place in range(ranges))
    return (numbers[min(place, len(numbers) - 1)] for place in places)


def _distribution(samples: int, rate: float) -> Sequence[tuple[int, float]]:
    """For each number of passed samples the rank of the test's verdict, and the probability."""
    return [
        (RANK[compute_verdict(passed / samples)], binomial(samples, passed, rate))
        for passed in range(samples + 1)
    ]
