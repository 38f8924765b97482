"""How much the samples of tests on one commit differ, and how often a comparison of two runs of
that commit would block. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.model.result import Record, SampleResult, TestResult
from agentevals_action.results import scoring
from agentevals_action.review.comparison.decision_rule import find_lost_requirement


class Flakiness(Record):
    """One test over several samples of one commit: `passed` of the `scored` samples, and `errors`
    that could not be scored, with the message of the first.

    `flake_rate` is the share (0–1) of samples that differ from the most frequent result, `blocked`
    the share of pairs of single runs in which the second is worse; None for fewer than two scored
    samples."""

    suite: str
    test: str
    passed: int
    scored: int
    errors: int
    message: str
    flake_rate: float | None
    blocked: float | None


def measure(result: TestResult) -> Flakiness:
    """The flakiness of a test from its samples."""
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
    )


def _blocked_pairs(result: TestResult, samples: Sequence[SampleResult]) -> float:
    runs = [_run(result, [sample]) for sample in samples]
    falls = sum(find_lost_requirement(head, base) is not None for head in runs for base in runs)
    return falls / (len(runs) * (len(runs) - 1))


def _run(result: TestResult, samples: Sequence[SampleResult]) -> TestResult:
    score, verdict, gates = scoring.combine_samples(samples)
    return replace(result, score=score, verdict=verdict, gates_failed=gates)


def blocked_together(tests: Sequence[Flakiness]) -> float:
    """The share (0–1) of pairs of runs of all these tests in which at least one is worse."""
    return 1 - math.prod(1 - (test.blocked or 0.0) for test in tests)
