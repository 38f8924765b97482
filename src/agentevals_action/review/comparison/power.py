"""The smallest drop that a suite finds, by binomials over the rule that decides. Pure."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
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
from agentevals_action.settings import MAX_SAMPLES

#: The probability with which a drop is found.
POWER = 0.8


def find_drop(run: Run, suite: RunSuite, base: Iterable[TestResult]) -> SmallestDrop | None:
    """The smallest drop that a suite of a run finds, by its results on base; None if the run has no
    base. A test that always fails on base cannot fall, and does not count."""
    if not run.baseline.wanted:
        return None
    varying = set(suite.tests).difference(suite.steady)
    rows = [as_head_scores(row).main_samples for row in base if row.eval_id in varying]
    scored = [[sample.verdict for sample in row if sample.verdict] for row in rows]
    able = [row for row in scored if len(row) < MIN_HISTORY or {*row} != {"fail"}]
    verdicts = [verdict for row in able for verdict in row]
    drop = SmallestDrop(
        tests=len(varying) - len(scored) + len(able),
        samples=run.samples,
        confirm=run.policy.confirm,
        alpha=run.policy.level,
        steady=len(suite.steady),
    )
    if verdicts:
        history = min(max(len(verdicts) // len(able), 1), MAX_SAMPLES)
        drop = replace(drop, base=verdicts.count("pass") / len(verdicts), history=history)
    return with_head(drop)


def with_head(suite: SmallestDrop) -> SmallestDrop:
    """The smallest drop, in hundredths, that a suite finds with a probability of `POWER`."""
    if not suite.tests or not suite.confirm:
        return suite
    rates = (percent / 100 for percent in range(99, -1, -1))
    drops = (rate for rate in rates if rate < suite.base and chance_to_find(suite, rate) >= POWER)
    return replace(suite, head=next(drops, None))


def chance_to_find(suite: SmallestDrop, head: float) -> float:
    """A cautious estimate of the probability (0–1) that at least one test is confirmed as a
    regression if the pass rate of all tests falls to `head`.

    The decision about a test depends on all: its level on the number of suspects, its prior on
    base's results. Both are taken to be worse than expected, by a standard deviation."""
    before = _distribution(suite.history, suite.base)
    after = _distribution(suite.samples, head)
    suspects = [
        chance * math.fsum(part for lower, part in after if lower < rank) for rank, chance in before
    ]
    share = min(math.fsum(suspects), 1.0)
    if suite.history < MIN_HISTORY:  # base is sampled again
        suspects = [share * chance for _, chance in _distribution(MIN_HISTORY, suite.base)]
    number = suite.tests * share + math.sqrt(suite.tests * share * (1 - share))
    level, prior, confirmed = suite.alpha / max(number, 1), _low_prior(suite), 0.0
    for passed, chance in enumerate(suspects):
        history = Counts(passed, len(suspects) - 1) + SUSPICION
        needed = failures_needed(history, prior, suite.confirm, level)
        if needed is not None:
            confirmed += chance * _confirm(suite.confirm, needed, head)
    return 1 - max(1 - confirmed, 0.0) ** suite.tests


@lru_cache
def _low_prior(suite: SmallestDrop) -> Prior:
    """The prior of typical results on base, where the suite passes a standard deviation less often
    than it should."""
    deviation = math.sqrt(suite.base * (1 - suite.base) / (suite.tests * suite.history))
    chances = _distribution(suite.history, max(suite.base - deviation, 0.0))
    sums = list(accumulate(chance for _, chance in chances))[:-1]
    places = ((place + 0.5) / suite.tests for place in range(suite.tests))
    return fit_prior(Counts(bisect_left(sums, place), suite.history) for place in places)


def _confirm(horizon: int, needed: int, rate: float) -> float:
    """The probability of at least `needed` failures among `horizon` fresh samples, of which the
    first `FIRST_SAMPLES` do not all pass."""
    first = min(FIRST_SAMPLES, horizon)
    later = rate**first * binomial_tail(horizon - first, needed, 1 - rate)
    return binomial_tail(horizon, needed, 1 - rate) - later


def _distribution(samples: int, rate: float) -> Sequence[tuple[int, float]]:
    """For each number of passed samples the rank of the test's verdict, and the probability."""
    return [
        (RANK[compute_verdict(passed / samples)], binomial(samples, passed, rate))
        for passed in range(samples + 1)
    ]
