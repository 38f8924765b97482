"""How much the samples of tests on one commit differ, and how often a comparison of two runs of
that commit would block. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from agentevals_action.model.result import Record, SampleResult, TestResult
from agentevals_action.results import scoring
from agentevals_action.review.comparison.decision_rule import find_fall

#: The accepted share of pairs of runs that block, and the numbers of samples that are tried.
ACCEPTED = 0.05
SAMPLE_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
#: Drawn pairs of runs for one number of samples.
_DRAWS = 300


class Flakiness(Record):
    """One test over several samples of one commit: `passed` of the `scored` samples, and `errors`
    that could not be scored, with the message of the first.

    `flake_rate` is the share (0–1) of samples that differ from the most frequent result, `blocked`
    the share of pairs of single runs in which the second is worse; None for fewer than two scored
    samples. `drops` is the share of pairs of runs that are worse, by the number of samples."""

    suite: str
    test: str
    passed: int
    scored: int
    errors: int
    message: str
    flake_rate: float | None
    blocked: float | None
    drops: Mapping[int, float]


def measure(result: TestResult) -> Flakiness:
    """The flakiness of a test from its samples. The same samples give the same figures."""
    samples = [sample for sample in result.samples if sample.verdict is not None]
    errors = [sample.error for sample in result.samples if sample.verdict is None and sample.error]
    counts = Counter((sample.verdict, sample.gates_failed) for sample in samples)
    is_known = len(samples) > 1
    return Flakiness(
        suite=result.eval_path,
        test=result.eval_id,
        passed=sum(sample.verdict == "pass" for sample in samples),
        scored=len(samples),
        errors=len(result.samples) - len(samples),
        message=errors[0].message if errors else "",
        flake_rate=1 - max(counts.values()) / len(samples) if is_known else None,
        blocked=_blocked_pairs(result, samples) if is_known else None,
        drops=_drops(result, samples) if len(counts) > 1 else {},
    )


def _blocked_pairs(result: TestResult, samples: Sequence[SampleResult]) -> float:
    runs = [_run(result, [sample]) for sample in samples]
    falls = sum(find_fall(head, base) is not None for head in runs for base in runs)
    return falls / (len(runs) * (len(runs) - 1))


def _drops(result: TestResult, samples: Sequence[SampleResult]) -> Mapping[int, float]:
    """By the number of samples on each side, from runs that are drawn with replacement."""
    random = Random(f"{result.eval_path} {result.eval_id}")  # noqa: S311  # not for security
    found = {}
    for count in SAMPLE_COUNTS:
        runs = [_run(result, random.choices(samples, k=count)) for _ in range(2 * _DRAWS)]
        pairs = zip(runs[:_DRAWS], runs[_DRAWS:], strict=True)
        found[count] = sum(find_fall(head, base) is not None for head, base in pairs) / _DRAWS
    return found


def _run(result: TestResult, samples: Sequence[SampleResult]) -> TestResult:
    score, verdict, gates = scoring.combine_samples(samples)
    return replace(result, score=score, verdict=verdict, gates_failed=gates)


def blocked_together(tests: Sequence[Flakiness]) -> float:
    """The share (0–1) of pairs of runs of all these tests in which at least one is worse."""
    return 1 - math.prod(1 - (test.blocked or 0.0) for test in tests)


def samples_needed(tests: Sequence[Flakiness]) -> int | None:
    """The samples on each side from which at most 5 % of the pairs of runs of these tests block;
    None if more than were tried."""
    for count in SAMPLE_COUNTS:
        if 1 - math.prod(1 - test.drops.get(count, 0.0) for test in tests) <= ACCEPTED:
            return count
    return None
