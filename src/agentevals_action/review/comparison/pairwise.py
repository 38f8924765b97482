"""Whether head's answers are better than base's, by pairwise evaluators. Pure."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from agentevals_action.model.comparison import PairwiseComparison, SuiteComparison
from agentevals_action.model.result import EvaluatorResult, TestResult, preferred_sides
from agentevals_action.model.run import Policy
from agentevals_action.review.comparison.statistics import sign_test


def with_pairwise(suites: Sequence[SuiteComparison], policy: Policy) -> tuple[SuiteComparison, ...]:
    """The comparisons of suites with those of their answers. Tests in quarantine do not count. The
    probability of a false one is that of the whole run."""
    compared = [
        compare_pairs([test.head for test in suite.tests if test.head and not test.quarantine])
        for suite in suites
    ]
    level = policy.alpha / max(sum(map(len, compared)), 1)
    return tuple(
        replace(suite, pairwise=tuple(replace(found, level=level) for found in own))
        for suite, own in zip(suites, compared, strict=True)
    )


def compare_pairs(rows: Iterable[TestResult]) -> Sequence[PairwiseComparison]:
    """The comparisons by each pairwise evaluator of a suite, from the results of head."""
    found: defaultdict[str, list[tuple[TestResult, EvaluatorResult]]] = defaultdict(list)
    for row in rows:
        for result in row.pairs[0].evaluator_results if row.pairs else ():
            found[result.name].append((row, result))
    return [count_pairs(name, pairs) for name, pairs in found.items()]


def count_pairs(
    name: str, pairs: Sequence[tuple[TestResult, EvaluatorResult]]
) -> PairwiseComparison:
    """Counts what the evaluator with this name says of each test. The turns of a conversation
    depend on each other: they are one pair, that of most of its turns."""
    scored: defaultdict[Hashable, list[EvaluatorResult]] = defaultdict(list)
    for row, result in pairs:
        if result.score is not None:
            scored[row.conversation_id or ("", row.eval_id)].append(result)
    counts = Counter[str]()
    for turns in scored.values():
        net = sum((each.score == 1) - (each.score == 0) for each in turns)
        counts["wins" if net > 0 else "losses" if net < 0 else "ties"] += 1
        counts["flips"] += net == 0 and any(len(preferred_sides(each)) > 1 for each in turns)
    wins, losses = counts["wins"], counts["losses"]
    return PairwiseComparison(
        name,
        wins=wins,
        losses=losses,
        ties=counts["ties"],
        flips=counts["flips"],
        p_better=sign_test(wins, wins + losses),
        p_worse=sign_test(losses, wins + losses),
        better=tuple(row.eval_id for row, result in pairs if result.score == 1),
        worse=tuple(row.eval_id for row, result in pairs if result.score == 0),
        not_judged=tuple(row.eval_id for row, result in pairs if result.score is None),
        problem=next((each.error.message for _, each in pairs if each.error), ""),
    )
