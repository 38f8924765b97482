"""How often a variant is decided as it is, measured and printed: `python benchmarks/variants.py`.

The tests of a suite pass at known rates in two arms. They are not equally hard: the logarithm of
the odds of each differs, with a standard deviation of 1. Each simulated review draws tests and
samples of both arms, and is decided by the code of the action, with the fresh samples of a
confirmation where it takes some. The same `--seed` gives the same table."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from agentevals_action.model.comparison import (
    ChangeKind,
    Outcome,
    SuiteComparison,
    TestComparison,
    VariantComparison,
)
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.run import Policy, RunSuite, RunVariant, Selection
from agentevals_action.model.variant import Variant, smallest_p
from agentevals_action.results.build import extended, with_samples
from agentevals_action.review.comparison.variants import with_variants

POLICY = Policy(frozenset({"gates", "regressions"}))
#: Tests, and samples of each in each arm.
SIZES = ((3, 1), (3, 3), (5, 1), (5, 3), (8, 3), (12, 3), (20, 3), (20, 5))
#: The pass rates of the variant and of the declared arm, of a test of medium difficulty.
RATES = ((0.4, 0.8), (0.6, 0.8), (0.5, 0.5), (0.9, 0.9))
PASS, FAIL = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
ROW = TestResult(
    timestamp="", eval_id="", dataset="suite", score=None, verdict=None, eval_path="suite"
)


def review(
    tests: int,
    samples: int,
    rates: tuple[float, float],
    rng: Random,
    must: Literal["not-hurt", "help"] | None = None,
) -> VariantComparison:
    """The comparison of one simulated review, whose variant and declared arm have these rates."""
    names = [f"test-{number}" for number in range(tests)]
    variant = Variant(name="other", target="other", must=must)
    run = RunSuite(
        Selection("suite", ()), "suite", tuple(names), variants=(RunVariant(variant, (*names,)),)
    )
    eases = {name: math.exp(rng.gauss(0, 1)) for name in names}

    def draw(rate: float, name: str, count: int) -> tuple[SampleResult, ...]:
        share = rate * eases[name] / (rate * eases[name] + 1 - rate)
        return tuple(PASS if rng.random() < share else FAIL for _ in range(count))

    head = [
        with_samples(replace(ROW, eval_id=name), draw(rates[1], name, samples)) for name in names
    ]
    rows = [
        with_samples(
            replace(ROW, eval_id=name, variant=variant.name), draw(rates[0], name, samples)
        )
        for name in names
    ]
    listed = tuple(TestComparison(row.eval_id, ChangeKind.NEW, row, None) for row in head)
    suite = SuiteComparison(run, listed, None, None)
    (found,) = with_variants([suite], rows, POLICY)[0].variants
    if found.needs_confirmation(is_part=False):
        rows = [
            replace(
                extended(row, draw(rates[0], row.eval_id, POLICY.confirm)),
                declared=draw(rates[1], row.eval_id, POLICY.confirm),
            )
            for row in rows
        ]
        (found,) = with_variants([suite], rows, POLICY)[0].variants
    return found


def share_found(
    tests: int, samples: int, rates: tuple[float, float], count: int, rng: Random
) -> float:
    """The share of `count` reviews that say that the declared arm is better."""
    found = (review(tests, samples, rates, rng).first for _ in range(count))
    return sum(first is not None and first.helps for first in found) / count


def share_blocked(
    tests: int, samples: int, rates: tuple[float, float], count: int, rng: Random
) -> float:
    """The share of `count` reviews that `must: not-hurt` blocks."""
    found = (review(tests, samples, rates, rng, "not-hurt").outcome for _ in range(count))
    return sum(outcome is Outcome.FAILED for outcome in found) / count


def table(count: int, seed: int) -> Sequence[str]:
    """The lines of a Markdown table."""
    names = [f"{tests}×{samples}" for tests, samples in SIZES]
    lines = [f"| tests × samples | {' | '.join(names)} |", f"|---|{'--:|' * len(SIZES)}"]
    for words, measure in (("found", share_found), ("`not-hurt` blocks", share_blocked)):
        for rates in RATES:
            arms = rates if measure is share_found else rates[::-1]
            rng = Random(seed)
            shares = [measure(*size, arms, count, rng) for size in SIZES]
            figures = " | ".join(f"{share:.2f}" for share in shares)
            lines.append(f"| {words}: {arms[0]:.0%} → {arms[1]:.0%} | {figures} |")
    least = " | ".join(f"{smallest_p(tests, each, each):.2g}" for tests, each in SIZES)
    return [*lines, f"| smallest p | {least} |"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="reviews of each cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("\n".join(table(options.count, options.seed)))
