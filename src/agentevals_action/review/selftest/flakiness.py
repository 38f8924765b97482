"""Flakiness: how much the samples of a test differ on one commit, the effect on a comparison, and
the number of samples that compensates it. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.model.comparison import Counts
from agentevals_action.model.result import SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import find_fall
from agentevals_action.review.comparison.statistics import Z80, Z95, Z95_ONE_SIDED

#: Tolerance for the rounding of rates and of sample sizes.
_EPSILON = 1e-9


@dataclass(frozen=True)
class Flakiness:
    """One test over many samples of one commit. `passed` counts the scored samples, `errors` the
    others. `verdicts` and `gates` count each verdict and each failed gate.

    `alarm` is the probability (0–1) that the second of two runs is worse, None for fewer than two
    scored samples. `score_variance` and `cost_usd` are those of one sample, None if unknown.
    `problem` is the message of the first error."""

    suite: str
    test: str
    passed: Counts
    errors: int
    verdicts: tuple[tuple[Verdict, int], ...]
    gates: tuple[tuple[str, int], ...]
    alarm: float | None
    score_variance: float | None
    cost_usd: float | None
    problem: str = ""

    @property
    def is_flaky(self) -> bool:
        """Whether the samples differ in their verdict or in the gates that failed."""
        return len(self.verdicts) > 1 or any(count != self.passed.trials for _, count in self.gates)


def measure(result: TestResult) -> Flakiness:
    """The flakiness of a test from its samples."""
    scored = scored_samples(result)
    verdicts = Counter(sample.verdict for sample in scored if sample.verdict)
    gates = Counter(gate for sample in scored for gate in sample.gates_failed)
    errors = [sample.error for sample in result.samples if sample.verdict is None and sample.error]
    # A cached reply cost nothing this time, so the cost of a sample is unknown.
    paid = None if result.cached_replies or not result.samples else result.cost_usd
    return Flakiness(
        suite=result.eval_path,
        test=result.eval_id,
        passed=Counts(verdicts["pass"], len(scored)),
        errors=len(result.samples) - len(scored),
        verdicts=tuple(verdicts.most_common()),
        gates=tuple(gates.most_common()),
        alarm=_alarm(result, scored) if len(scored) > 1 else None,
        score_variance=_variance([one.score for one in scored if one.score is not None]),
        cost_usd=None if paid is None else paid / len(result.samples),
        problem=errors[0].message if errors else "",
    )


def scored_samples(result: TestResult) -> tuple[SampleResult, ...]:
    """The samples of a result that were scored."""
    return tuple(sample for sample in result.samples if sample.verdict is not None)


def _alarm(result: TestResult, samples: Sequence[SampleResult]) -> float:
    """The share of ordered pairs of different samples whose second is worse: unbiased whatever the
    true rates are."""
    counts = Counter((sample.verdict, sample.gates_failed) for sample in samples)
    results = {key: replace(result, verdict=key[0], gates_failed=key[1]) for key in counts}
    falls = sum(
        counts[base] * counts[head]
        for base in counts
        for head in counts
        if find_fall(results[head], results[base])
    )
    return falls / (len(samples) * (len(samples) - 1))


def _variance(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def combine_alarms(alarms: Iterable[float]) -> float:
    """The probability (0–1) that at least one of several independent tests raises an alarm."""
    return 1 - math.prod(1 - alarm for alarm in alarms)


def undetected_rate(samples: int) -> float:
    """How often (0–1) a test may still differ whose samples are all equal: the upper end of a
    one-sided 95 % interval."""
    return 1 - 0.05 ** (1 / samples) if samples else 1.0


def samples_for_drop(rate: float, drop: float) -> int | None:
    """Samples on each side that show a fall of one test's pass rate by `drop` with 80 % power,
    one-sided at 5 %. None if the rate is smaller than the drop.

    Fleiss, Tytun and Ury 1980, "A simple approximation for calculating sample sizes for comparing
    independent proportions" (Biometrics 36, 343-346), with its correction for continuity, which is
    close to Fisher's exact test.
    """
    after = rate - drop
    if after < -_EPSILON or drop <= 0:
        return None
    after = max(after, 0.0)
    middle = (rate + after) / 2
    within = rate * (1 - rate) + after * (1 - after)
    spread = Z95_ONE_SIDED * math.sqrt(2 * middle * (1 - middle)) + Z80 * math.sqrt(within)
    plain = (spread / drop) ** 2
    return math.ceil(plain / 4 * (1 + math.sqrt(1 + 4 / (plain * drop))) ** 2)


def samples_for_mean_drop(variances: Sequence[float], drop: float) -> int | None:
    """Samples of each test on both sides that show a fall of a suite's mean score by `drop`,
    two-sided at 5 % with 80 % power. None without a variance.

    The power analysis of Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640), solved for
    the samples of each question, with tests that all fall equally. The variances are those of one
    sample's score within each test.
    """
    if not variances:
        return None
    within = math.fsum(variances) / len(variances)
    needed = 2 * within * ((Z95 + Z80) / drop) ** 2 / len(variances)
    return max(math.ceil(needed - _EPSILON), 1)
