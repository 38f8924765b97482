"""How often head's answers are called worse, measured and printed: `python benchmarks/pairwise.py`.

Each simulated review has pairs of answers of equal or of different quality. A judge says which is
much better in both orders, or leaves a tie, and the code of the action counts and tests. `found` is
before the confirmation, `blocked` is with one more comparison of fresh answers that must show the
same. The same `--seed` gives the same table."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from agentevals_action.model.comparison import PairwiseComparison
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult
from agentevals_action.review.comparison.pairwise import compare_pairs

#: The probability of a false loss of one suite: half of the default `alpha`, as of two conditions.
LEVEL = 0.025
#: The numbers of decisive pairs, and the share of all pairs that are decisive.
SIZES, SHARES = (10, 20, 40, 60, 100), (1.0, 0.5)
#: The shares of decisive pairs in which base's answer is the better one.
LOSSES = (0.5, 0.6, 0.7, 0.8)
ROW = TestResult(
    timestamp="", eval_id="", dataset="suite", score=None, verdict=None, eval_path="suite"
)


@cache
def _row(number: int, score: float) -> TestResult:
    result = EvaluatorResult(name="pairwise", type="pairwise", score=score)
    pair = SampleResult(evaluator_results=(result,))
    return replace(ROW, eval_id=str(number), pairs=(pair,))


def review(decisive: int, share: float, losses: float, rng: Random) -> PairwiseComparison:
    """The comparison of one simulated suite with so many decisive pairs, which are a share of all.
    Base's answer is much better in a share of them."""
    scores = [0.0 if rng.random() < losses else 1.0 for _ in range(decisive)]
    scores += [0.5] * (round(decisive / share) - decisive)
    rows = [_row(number, score) for number, score in enumerate(scores)]
    (found,) = compare_pairs(rows)
    return replace(found, level=LEVEL)


def share_found(
    decisive: int, share: float, losses: float, count: int, rng: Random, *, confirmed: bool = False
) -> float:
    """The share of `count` reviews that call head's answers worse; with `confirmed`, twice."""
    rounds = 1 + confirmed
    return (
        sum(
            all(review(decisive, share, losses, rng).finding == "worse" for _ in range(rounds))
            for _ in range(count)
        )
        / count
    )


def table(count: int, seed: int) -> Sequence[str]:
    """The lines of a Markdown table."""
    lines = [
        f"| decisive pairs | {' | '.join(map(str, SIZES))} |",
        f"|---|{'--:|' * len(SIZES)}",
    ]
    for share in SHARES:
        for losses in LOSSES:
            for words, confirmed in (("found", False), ("blocked", True)):
                rng = Random(seed)
                shares = [
                    share_found(size, share, losses, count, rng, confirmed=confirmed)
                    for size in SIZES
                ]
                figures = " | ".join(f"{each:.2f}" for each in shares)
                name = f"{words}: {losses:.0%} losses, {share:.0%} of all pairs decisive"
                lines.append(f"| {name} | {figures} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="reviews of each cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("\n".join(table(options.count, options.seed)))
