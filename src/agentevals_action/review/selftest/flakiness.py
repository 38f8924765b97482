"""Pure: how much a test's answers differ by themselves, what that does to a comparison, and how
many samples would still it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.model.comparison import History
from agentevals_action.model.result import SampleResult, TestResult, Verdict
from agentevals_action.review.comparison.decision_rule import what_fell

#: Quantiles of the normal distribution: two-sided and one-sided 95 %, one-sided 80 %.
_Z95_TWO, _Z95_ONE, _Z80 = 1.959963984540054, 1.6448536269514722, 0.8416212335729143


@dataclass(frozen=True)
class Flakiness:
    """One test over many samples of one commit. `passed` counts those that could be told, `errors`
    the others; `verdicts` says how often each was seen, `gates` how often each failed. `alarm` is
    the chance (0-1) that of two runs of the same commit the second is worse, None for fewer than
    two samples that could be told. `score_variance` is that of one sample's score, `cost_usd` what
    one sample costs; None where they are not known."""

    suite: str
    test: str
    passed: History
    errors: int
    verdicts: tuple[tuple[Verdict, int], ...]
    gates: tuple[tuple[str, int], ...]
    alarm: float | None
    score_variance: float | None
    cost_usd: float | None
    problem: str = ""

    @property
    def is_flaky(self) -> bool:
        """Whether its samples came out differently: in verdict or in the gates that failed."""
        return len(self.verdicts) > 1 or any(count != self.passed.trials for _, count in self.gates)


def measure(result: TestResult) -> Flakiness:
    """What a test's samples say."""
    known = told(result)
    verdicts = Counter(sample.verdict for sample in known if sample.verdict)
    gates = Counter(gate for sample in known for gate in sample.gates_failed)
    scores = [sample.score for sample in known if sample.score is not None]
    errors = [
        sample.error.message for sample in result.samples if sample.verdict is None and sample.error
    ]
    # A reply out of the cache cost nothing this time, which says nothing of what a sample costs.
    paid = result.cost_usd if not result.cached_replies else None
    return Flakiness(
        suite=result.eval_path,
        test=result.eval_id,
        passed=History(verdicts["pass"], len(known)),
        errors=len(result.samples) - len(known),
        verdicts=tuple(verdicts.most_common()),
        gates=tuple(gates.most_common()),
        alarm=_alarm(result, known) if len(known) > 1 else None,
        score_variance=_variance(scores),
        cost_usd=paid / len(result.samples) if paid is not None and result.samples else None,
        problem=errors[0] if errors else "",
    )


def told(result: TestResult) -> tuple[SampleResult, ...]:
    """The samples of a result that could be told."""
    return tuple(sample for sample in result.samples if sample.verdict is not None)


def _alarm(result: TestResult, samples: Sequence[SampleResult]) -> float:
    """The share of ordered pairs of two different samples of which the second is worse: without
    bias whatever the true rates are."""
    alike = Counter((sample.verdict, sample.gates_failed) for sample in samples)
    ones = {
        key: replace(result, verdict=key[0], gates_failed=key[1]) for key in alike
    }  # what_fell looks at these and at the gates that the test declares
    falls = sum(
        alike[base] * alike[head]
        for base in alike
        for head in alike
        if what_fell(ones[head], ones[base])
    )
    return falls / (len(samples) * (len(samples) - 1))


def _variance(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def together(alarms: Iterable[float]) -> float:
    """The chance (0-1) that at least one of several tests, independent of each other, raises an
    alarm."""
    return 1 - math.prod(1 - alarm for alarm in alarms)


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a rate (0-1) by Wilson 1927; all of 0-1 without trials."""
    if not trials:
        return 0.0, 1.0
    rate, z2 = successes / trials, _Z95_TWO**2
    middle = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = (
        _Z95_TWO
        / (1 + z2 / trials)
        * math.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials * trials))
    )
    # At the ends the sums leave noise of the last digit.
    return (0.0 if not successes else max(middle - half, 0.0)), (
        1.0 if successes == trials else min(middle + half, 1.0)
    )


def unseen(samples: int) -> float:
    """How often (0-1) a test may still differ that came out the same in so many samples: the upper
    end of a one-sided 95 % interval."""
    return 1 - 0.05 ** (1 / samples) if samples else 1.0


def samples_for_drop(rate: float, drop: float) -> int | None:
    """Samples a side that show a fall of one test's pass rate by `drop` with 80 % power, one-sided
    at 5 %; None when it has not so far to fall.

    Fleiss, Tytun and Ury 1980, "A simple approximation for calculating sample sizes for comparing
    independent proportions" (Biometrics 36, 343-346), with its correction for continuity, which
    comes close to Fisher's exact test."""
    after = rate - drop
    if after < -1e-9 or drop <= 0:
        return None
    after = max(after, 0.0)
    middle = (rate + after) / 2
    spread = _Z95_ONE * math.sqrt(2 * middle * (1 - middle)) + _Z80 * math.sqrt(
        rate * (1 - rate) + after * (1 - after)
    )
    plain = (spread / drop) ** 2
    return math.ceil(plain / 4 * (1 + math.sqrt(1 + 4 / (plain * drop))) ** 2)


def samples_for_mean_drop(variances: Sequence[float], drop: float) -> int | None:
    """Samples of each test on both sides that show a fall of a suite's mean score by `drop`,
    two-sided at 5 % with 80 % power; None without a variance.

    The power analysis of Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640), solved for
    the samples of each question, with tests that all fall alike: the variances are those of one
    sample's score within each test."""
    if not variances:
        return None
    within = math.fsum(variances) / len(variances)
    return max(math.ceil(2 * within * ((_Z95_TWO + _Z80) / drop) ** 2 / len(variances) - 1e-9), 1)
