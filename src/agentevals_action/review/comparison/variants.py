"""The statistics of a variant: whether the same tests pass more often in the declared arm than in
another one (another target, or without the skill). Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from agentevals_action.model.comparison import Counts, Difference
from agentevals_action.review.comparison.statistics import paired_difference

#: The probability of a verdict on a variant that changes nothing.
LEVEL = 0.05
#: Tests with both verdicts up to which the test is exact; the time grows with their square.
_MOST_EXACT = 1000


@dataclass(frozen=True)
class Arms:
    """The samples of one test in the declared arm and in the variant."""

    declared: Counts
    variant: Counts

    @property
    def swapped(self) -> "Arms":
        """The variant in the place of the declared arm."""
        return Arms(self.variant, self.declared)

    @property
    def difference(self) -> float:
        """The pass rate of the declared arm minus that of the variant."""
        return (self.declared.rate or 0.0) - (self.variant.rate or 0.0)


@dataclass(frozen=True)
class ArmComparison:
    """What the samples say. `declared` and `variant` are mean pass rates of tests (0-1),
    `difference` is the first minus the second with its 95 % interval (None for fewer than two
    tests). `helps` and `hurts` are significant at `LEVEL`; without `can_show` no result of as many
    samples could have been."""

    declared: float
    variant: float
    difference: Difference | None
    helps: bool
    hurts: bool
    can_show: bool


def compare_arms(tests: Sequence[Arms]) -> ArmComparison | None:
    """Compares the arms over the tests with samples in both; None if there are none."""
    scored = [test for test in tests if test.declared.trials and test.variant.trials]
    if not scored:
        return None
    differences = [(test.difference, number) for number, test in enumerate(scored)]
    smallest = math.prod(
        smallest_p(1, test.declared.trials, test.variant.trials) for test in scored
    )
    return ArmComparison(
        declared=math.fsum(test.declared.rate or 0 for test in scored) / len(scored),
        variant=math.fsum(test.variant.rate or 0 for test in scored) / len(scored),
        difference=paired_difference(differences),
        helps=stratified_p(scored) <= LEVEL,
        hurts=stratified_p([test.swapped for test in scored]) <= LEVEL,
        can_show=smallest <= LEVEL,
    )


def stratified_p(tests: Sequence[Arms]) -> float:
    """The probability of at least as many passes in the declared arm as there are, if each test
    passes as often in both arms (one-sided).

    The exact conditional test of a common odds ratio over 2 x 2 tables (Birch 1964, "The detection
    of partial association, I"): of each test, the passes of one arm are hypergeometric, given those
    of both, and their sum is the convolution. With very many tests, its normal approximation with
    continuity correction (Mantel and Haenszel 1959)."""
    informative = [test for test in tests if 0 < _passes(test) < _trials(test)]
    observed = sum(test.declared.successes for test in informative)
    if len(informative) > _MOST_EXACT:
        mean = math.fsum(
            test.declared.trials * _passes(test) / _trials(test) for test in informative
        )
        deviation = math.sqrt(math.fsum(_variance(test) for test in informative))
        return 1 - NormalDist(mean, deviation).cdf(observed - 0.5)
    least, sums = 0, [1.0]
    for test in informative:
        first, probabilities = _hypergeometric(test)
        least, sums = least + first, _convolve(sums, probabilities)
    return min(math.fsum(sums[max(observed - least, 0) :]), 1.0)


def smallest_p(tests: int, declared: int, variant: int) -> float:
    """The smallest value that `stratified_p` can have for so many tests with so many samples of
    each in the two arms: all pass in the one, and none in the other. Only sizes where it is at most
    `LEVEL` can show a difference."""
    return float(math.comb(declared + variant, declared)) ** -tests


def _hypergeometric(test: Arms) -> tuple[int, Sequence[float]]:
    """The least number of passes in the declared arm, and the probabilities from it on."""
    own, other, passes = test.declared.trials, test.variant.trials, _passes(test)
    counts = range(max(0, passes - other), min(own, passes) + 1)
    total = math.comb(own + other, passes)
    ways = [math.comb(own, count) * math.comb(other, passes - count) for count in counts]
    return counts.start, [way / total for way in ways]


def _convolve(sums: Sequence[float], probabilities: Sequence[float]) -> list[float]:
    result = [0.0] * (len(sums) + len(probabilities) - 1)
    for index, total in enumerate(sums):
        for count, probability in enumerate(probabilities):
            result[index + count] += total * probability
    return result


def _variance(test: Arms) -> float:
    own, all_trials, passes = test.declared.trials, _trials(test), _passes(test)
    share = passes / all_trials
    return own * share * (1 - share) * (all_trials - own) / (all_trials - 1)


def _passes(test: Arms) -> int:
    return test.declared.successes + test.variant.successes


def _trials(test: Arms) -> int:
    return test.declared.trials + test.variant.trials
