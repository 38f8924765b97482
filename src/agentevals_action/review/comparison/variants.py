"""Variants: whether the same tests pass more often in the suite as declared than in another arm
(another target, or without the skill), and whether that is as `must` asks. Pure."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from agentevals_action.model.comparison import (
    ArmDifference,
    Counts,
    Outcome,
    SuiteComparison,
    VariantComparison,
    VariantTest,
)
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult
from agentevals_action.model.run import Policy, RunVariant
from agentevals_action.model.variant import smallest_p
from agentevals_action.results import scoring
from agentevals_action.results.build import with_samples, without_fresh
from agentevals_action.results.summary import summarise
from agentevals_action.review.comparison.statistics import paired_difference

#: Samples with both verdicts up to which the test is exact; the time grows with their square.
_MOST_EXACT = 5000


@dataclass(frozen=True)
class Arms:
    """The samples of one test in the declared arm and in the variant."""

    declared: Counts
    variant: Counts

    @property
    def swapped(self) -> "Arms":
        """The variant in the place of the declared arm."""
        return Arms(self.variant, self.declared)


def with_variants(
    suites: Sequence[SuiteComparison], rows: Iterable[TestResult], policy: Policy
) -> tuple[SuiteComparison, ...]:
    """The comparisons of suites with their variants compared, whose results are `rows`. Tests in
    quarantine do not count."""
    by_arm: defaultdict[tuple[str, str], dict[str, TestResult]] = defaultdict(dict)
    for row in rows:
        by_arm[row.eval_path, row.variant][row.eval_id] = row
    compared = [
        [
            compare_variant(
                run,
                {test.id: test.head for test in suite.tests if test.head},
                by_arm[suite.path, run.variant.name],
                policy.alpha,
                frozenset(test.id for test in suite.tests if test.quarantine),
            )
            for run in suite.run.variants
        ]
        for suite in suites
    ]
    # As for suspects, the probability of a false finding holds for the whole run.
    confirmed = sum(arm.fresh is not None for of_suite in compared for arm in of_suite)
    level = policy.alpha / max(confirmed, 1)
    return tuple(
        replace(suite, variants=tuple(_decided(arm, policy, level) for arm in of_suite))
        for suite, of_suite in zip(suites, compared, strict=True)
    )


def compare_variant(
    run: RunVariant,
    head: Mapping[str, TestResult],
    rows: Mapping[str, TestResult],
    alpha: float,
    quarantined: frozenset[str] = frozenset(),
) -> VariantComparison:
    """A variant with these `rows` against the suite as declared, both by test id."""
    tests = [_pair(run, name, head.get(name), rows.get(name), quarantined) for name in run.tests]
    counted = [test for test in tests if test.passes is not None]
    first = [
        (test, test.declared.samples, test.variant.samples)
        for test in counted
        if test.declared and test.variant
    ]
    fresh = [
        (test, _rescored(rows[test.id].declared, run), rows[test.id].fresh_samples)
        for test in counted
    ]
    return VariantComparison(
        run,
        tuple(tests),
        _difference(first, alpha),
        _difference(fresh, alpha),
        problem=next((row.unconfirmed for row in rows.values() if row.unconfirmed), ""),
        summary=summarise("", run.variant.name, rows.values()) if rows else None,
    )


def _pair(
    run: RunVariant,
    name: str,
    head: TestResult | None,
    row: TestResult | None,
    quarantined: frozenset[str],
) -> VariantTest:
    """A test in both arms by the samples of the run, and why it does not count."""
    declared = head and with_samples(head, _rescored(head.main_samples, run))
    variant, reason = row and without_fresh(row), ""
    for side, result in (("as declared", declared), (f"in `{run.variant.name}`", variant)):
        if result is None or result.verdict is None:
            error = result.error.message if result and result.error else "it has no result"
            reason = f"{side}: {error}"
    sides = (declared, variant)
    is_left_out = name in quarantined or any(side and side.is_advisory for side in sides)
    reason = "in quarantine" if name in quarantined else reason
    return VariantTest(name, declared, variant, reason, is_left_out=is_left_out)


def _rescored(samples: Sequence[SampleResult], run: RunVariant) -> tuple[SampleResult, ...]:
    """Samples of the suite as declared, by the evaluators that the variant has, too: without the
    skill, no evaluator asks whether the skill is opened."""
    if run.variant.skill:
        return tuple(samples)
    rescored = []
    for sample in samples:
        kept = [result for result in sample.evaluator_results if not asks_for_skill(result)]
        if 0 < len(kept) < len(sample.evaluator_results):
            score, verdict, gates = scoring.score_sample(kept)
            sample = replace(sample, score=score, verdict=verdict, gates_failed=gates)
        rescored.append(sample)
    return tuple(rescored)


def asks_for_skill(result: EvaluatorResult) -> bool:
    """Whether an evaluator, or one inside it, scores whether a skill is opened."""
    return result.type == "skill_trigger" or any(map(asks_for_skill, result.evaluator_results))


def _difference(
    tests: Sequence[tuple[VariantTest, Sequence[SampleResult], Sequence[SampleResult]]],
    level: float,
) -> ArmDifference | None:
    """The difference by the samples of each test in both arms. The turns of a conversation are one
    test, which passes in a sample if all turns do."""
    turns: defaultdict[Hashable, list[Sequence[Sequence[bool]]]] = defaultdict(list)
    for test, *sides in tests:
        passed = [[sample.verdict == "pass" for sample in side if sample.verdict] for side in sides]
        if all(passed):
            conversation = test.declared.conversation_id if test.declared else None
            turns[conversation or ("", test.id)].append(passed)
    return compare_arms(
        [Arms(*map(_count, zip(*passed, strict=True))) for passed in turns.values()], level
    )


def _count(turns: Sequence[Sequence[bool]]) -> Counts:
    passed = [*map(all, zip(*turns, strict=False))]
    return Counts(sum(passed), len(passed))


def compare_arms(tests: Sequence[Arms], level: float) -> ArmDifference | None:
    """Compares the arms over tests with samples in both; None without a test."""
    if not tests:
        return None
    rates = [(test.declared.rate or 0.0, test.variant.rate or 0.0) for test in tests]
    return ArmDifference(
        pairs=len(tests),
        samples=min(count.trials for test in tests for count in (test.declared, test.variant)),
        declared=math.fsum(declared for declared, _ in rates) / len(tests),
        variant=math.fsum(variant for _, variant in rates) / len(tests),
        difference=paired_difference(
            [(declared - variant, number) for number, (declared, variant) in enumerate(rates)]
        ),
        p_help=stratified_p(tests),
        p_hurt=stratified_p([test.swapped for test in tests]),
        smallest_p=math.prod(
            smallest_p(1, test.declared.trials, test.variant.trials) for test in tests
        ),
        level=level,
    )


def _decided(comparison: VariantComparison, policy: Policy, level: float) -> VariantComparison:
    """The comparison with its outcome by `must`. `level` is that of the confirmation."""
    fresh = comparison.fresh and replace(comparison.fresh, level=level)
    comparison = replace(comparison, fresh=fresh)
    outcome = _outcome(comparison, policy) if comparison.run.variant.must else comparison.outcome
    return replace(comparison, outcome=outcome)


def _outcome(comparison: VariantComparison, policy: Policy) -> Outcome:
    """The outcome of `must`. What could not be scored might have decided otherwise."""
    first, fresh = comparison.first, comparison.fresh
    if first is None or not first.can_show:
        return Outcome.INCONCLUSIVE
    is_complete = all(test.is_left_out for test in comparison.not_scored)
    if comparison.run.variant.must == "help":
        if first.helps:
            return Outcome.PASSED
        return Outcome.FAILED if is_complete else Outcome.INCONCLUSIVE
    if first.hurts:
        if not policy.confirm or (fresh and fresh.hurts):
            return Outcome.FAILED
        is_complete = is_complete and fresh is not None and not comparison.problem
    return Outcome.PASSED if is_complete else Outcome.INCONCLUSIVE


def stratified_p(tests: Sequence[Arms]) -> float:
    """The probability of at least as many passes in the declared arm as there are, if each test
    passes as often in both arms (one-sided).

    The exact conditional test of a common odds ratio over 2 x 2 tables (Birch 1964, "The detection
    of partial association, I"): of each test, the passes of one arm are hypergeometric, given those
    of both, and their sum is the convolution. With very many samples, its normal approximation with
    continuity correction (Mantel and Haenszel 1959)."""
    informative = [test for test in tests if 0 < _passes(test) < _trials(test)]
    observed = sum(test.declared.successes for test in informative)
    if sum(map(_trials, informative)) > _MOST_EXACT:
        mean = math.fsum(test.declared.trials * _share(test) for test in informative)
        deviation = math.sqrt(math.fsum(_variance(test) for test in informative))
        return 1 - NormalDist(mean, deviation).cdf(observed - 0.5)
    least, sums = 0, [1.0]
    for test in informative:
        first, probabilities = _hypergeometric(test)
        least, sums = least + first, _convolve(sums, probabilities)
    return min(math.fsum(sums[max(observed - least, 0) :]), 1.0)


def _hypergeometric(test: Arms) -> tuple[int, Sequence[float]]:
    """The least number of passes in the declared arm, and the probabilities from it on."""
    declared, variant, passes = test.declared.trials, test.variant.trials, _passes(test)
    counts = range(max(0, passes - variant), min(declared, passes) + 1)
    total = math.comb(declared + variant, passes)
    ways = [math.comb(declared, count) * math.comb(variant, passes - count) for count in counts]
    return counts.start, [way / total for way in ways]


def _convolve(sums: Sequence[float], probabilities: Sequence[float]) -> list[float]:
    result = [0.0] * (len(sums) + len(probabilities) - 1)
    for index, total in enumerate(sums):
        for count, probability in enumerate(probabilities):
            result[index + count] += total * probability
    return result


def _variance(test: Arms) -> float:
    declared, variant, share = test.declared.trials, test.variant.trials, _share(test)
    return declared * variant * share * (1 - share) / (declared + variant - 1)


def _share(test: Arms) -> float:
    return _passes(test) / _trials(test)


def _passes(test: Arms) -> int:
    return test.declared.successes + test.variant.successes


def _trials(test: Arms) -> int:
    return test.declared.trials + test.variant.trials
