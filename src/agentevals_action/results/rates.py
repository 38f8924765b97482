"""Rates with their uncertainty."""

import math
from statistics import NormalDist

#: The quantile of the normal distribution for two-sided 95 %.
Z95 = NormalDist().inv_cdf(0.975)


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
