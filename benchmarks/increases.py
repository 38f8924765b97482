"""How often a rise of cost or time is found and an unchanged suite blocked, measured and printed:
`python benchmarks/increases.py`.

The figures of the tests of a suite are log-normal: the logarithm of the typical figure of a test
has a standard deviation of 0.7 over the tests (every third test takes over twice, or under half of
the median), and that of a sample one of `noise` around its test. Each simulated review draws
samples of both sides and is decided by the code of the action, beside a condition on regressions,
so that each has half of `alpha`; with the fresh samples of a confirmation where it takes some. The
same `--seed` gives the same table."""

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from random import Random

from agentevals_action.model.comparison import Increase, Outcome
from agentevals_action.model.result import SampleResult, TestResult, TraceSummary
from agentevals_action.model.run import Figure, Policy, RunSuite, Selection
from agentevals_action.results.build import with_samples, with_suite_samples
from agentevals_action.review.comparison.decision_rule import FIRST_SAMPLES
from agentevals_action.review.comparison.increases import find_increases

#: Tests, samples of each on each side, and the noise of a sample.
SIZES = ((5, 1, 0.25), (20, 1, 0.25), (60, 1, 0.25), (60, 1, 0.4), (60, 3, 0.4))
#: The rise, and the limit.
RISES = ((0.0, 0.0), (0.0, 0.1), (0.1, 0.1), (0.2, 0.1), (0.3, 0.1), (0.5, 0.2))
SPREAD = 0.7
RUN = RunSuite(Selection("suite", ()), "suite", ())


def review(
    figure: Figure, size: tuple[int, int, float], rise: float, limit: float, rng: Random
) -> tuple[Increase, bool]:
    """The condition of one simulated review, and whether its suite was sampled again."""
    tests, samples, noise = size
    is_cost = figure == "cost"
    policy = Policy(
        frozenset({"gates", "regressions"}),
        max_cost_increase=limit if is_cost else None,
        max_latency_increase=None if is_cost else limit,
    )
    typical = [math.exp(rng.gauss(0, SPREAD)) for _ in range(tests)]

    def draw(mean: float, count: int) -> Sequence[SampleResult]:
        taken = [mean * math.exp(rng.gauss(0, noise)) for _ in range(count)]
        return [
            SampleResult(
                score=1.0,
                verdict="pass",
                trace_summary=TraceSummary(cost_usd=value, duration_ms=value),
            )
            for value in taken
        ]

    def row(number: int, mean: float) -> TestResult:
        made = TestResult(
            timestamp="", eval_id=str(number), dataset="", score=None, verdict=None, eval_path=""
        )
        return with_samples(made, draw(mean, samples))

    pairs = [
        (row(number, mean * (1 + rise)), row(number, mean)) for number, mean in enumerate(typical)
    ]
    (found,) = find_increases(RUN, pairs, policy, 1)
    if not found.needs_confirmation(is_part=False):
        return found, False
    again = [
        (
            with_suite_samples(head, draw(mean * (1 + rise), FIRST_SAMPLES)),
            with_suite_samples(base, draw(mean, FIRST_SAMPLES)),
        )
        for (head, base), mean in zip(pairs, typical, strict=True)
    ]
    (found,) = find_increases(RUN, again, policy, 1)
    return found, True


def shares(
    figure: Figure, size: tuple[int, int, float], rise: float, limit: float, count: int, rng: Random
) -> tuple[float, float, float]:
    """The shares of `count` reviews that are blocked, that are inconclusive, and whose suites are
    sampled again."""
    found = [review(figure, size, rise, limit, rng) for _ in range(count)]
    outcomes = Counter(increase.outcome for increase, _ in found)
    kinds = (outcomes[Outcome.FAILED], outcomes[Outcome.INCONCLUSIVE])
    return kinds[0] / count, kinds[1] / count, sum(again for _, again in found) / count


def table(count: int, seed: int) -> Sequence[str]:
    """The lines of a Markdown table."""
    names = [f"{tests}×{samples}, {noise:g}" for tests, samples, noise in SIZES]
    lines = [f"| tests × samples, noise | {' | '.join(names)} |", f"|---|{'--:|' * len(SIZES)}"]
    figures: tuple[Figure, ...] = ("cost", "latency")
    for figure in figures:
        for rise, limit in RISES:
            found = [shares(figure, size, rise, limit, count, Random(seed)) for size in SIZES]
            cells = " | ".join(f"{failed:.1%} ({again:.0%})" for failed, _, again in found)
            lines.append(f"| {figure} {rise:+.0%}, limit {limit:.0%} | {cells} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="reviews of each cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("\n".join(table(options.count, options.seed)))
