"""How often the test of a variant finds help that is there, and help that is not, measured and
printed: `python benchmarks/variants.py`.

The tests of a suite pass at known rates in two arms. They are not equally hard: the logarithm of
the odds of each differs, with a standard deviation of 1. Each simulated comparison draws tests and
samples of both arms and is decided by the code of the action. The same `--seed` gives the same
table."""

import argparse
import math
from collections.abc import Sequence
from random import Random

from agentevals_action.model.comparison import Counts
from agentevals_action.model.variant import smallest_p
from agentevals_action.review.comparison.variants import Arms, stratified_p

LEVEL = 0.05
#: Tests, and samples of each in each arm.
SIZES = ((3, 1), (3, 3), (5, 1), (5, 3), (8, 3), (12, 3), (20, 3), (20, 5))
#: The pass rates of the variant and of the declared arm, of a test of medium difficulty.
RATES = ((0.4, 0.8), (0.6, 0.8), (0.5, 0.5), (0.9, 0.9))


def share_found(
    tests: int, samples: int, rates: tuple[float, float], count: int, rng: Random
) -> float:
    """The share of `count` comparisons that say that the declared arm is better."""
    found = 0
    for _ in range(count):
        drawn = [_draw(samples, rates, rng) for _ in range(tests)]
        found += stratified_p(drawn) <= LEVEL
    return found / count


def _draw(samples: int, rates: tuple[float, float], rng: Random) -> Arms:
    ease = math.exp(rng.gauss(0, 1))
    variant, declared = (rate * ease / (rate * ease + 1 - rate) for rate in rates)
    passes = [sum(rng.random() < rate for _ in range(samples)) for rate in (declared, variant)]
    return Arms(*(Counts(number, samples) for number in passes))


def table(count: int, seed: int) -> Sequence[str]:
    """The lines of a Markdown table."""
    names = [f"{tests}×{samples}" for tests, samples in SIZES]
    lines = [f"| tests × samples | {' | '.join(names)} |", f"|---|{'--:|' * len(SIZES)}"]
    for rates in RATES:
        rng = Random(seed)
        shares = [share_found(*size, rates, count, rng) for size in SIZES]
        figures = " | ".join(f"{share:.2f}" for share in shares)
        lines.append(f"| {rates[0]:.0%} → {rates[1]:.0%} | {figures} |")
    least = " | ".join(f"{smallest_p(tests, each, each):.2g}" for tests, each in SIZES)
    return [*lines, f"| smallest p | {least} |"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="comparisons of each cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("\n".join(table(options.count, options.seed)))
