"""Whether head's answers are better than base's, by pairwise evaluators, and whether they may be
worse. Pure."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from agentevals_action.formatting import first_line
from agentevals_action.model.baseline import SAME_SERVICE
from agentevals_action.model.comparison import Outcome, PairwiseComparison, SuiteComparison
from agentevals_action.model.result import EvaluatorResult, TestResult, preferred_sides
from agentevals_action.model.run import Policy
from agentevals_action.review.comparison.increases import is_same_test
from agentevals_action.review.comparison.statistics import sign_test

_JUDGE_LOST = "the change makes their judge advisory; change it in a pull request of its own"
_Judged = tuple[TestResult, EvaluatorResult]


def with_pairwise(suites: Sequence[SuiteComparison], policy: Policy) -> tuple[SuiteComparison, ...]:
    """The comparisons of suites with the answers compared. Tests in quarantine do not count."""
    comparisons = find_comparisons(
        [
            [test.head for test in suite.tests if test.head and not test.quarantine]
            for suite in suites
        ],
        policy,
    )
    return tuple(
        replace(
            suite,
            pairwise=tuple(_without_judge(suite, compared) for compared in of_suite)
            or _undecided(suite, policy),
        )
        for suite, of_suite in zip(suites, comparisons, strict=True)
    )


def _without_judge(suite: SuiteComparison, comparison: PairwiseComparison) -> PairwiseComparison:
    """A change cannot switch a judge off by an edit of its prompt."""
    is_worse = comparison.advisory and comparison.finding == "worse"
    if is_worse and comparison.name in suite.run.judges_lost:
        return replace(comparison, outcome=Outcome.INCONCLUSIVE, problem=_JUDGE_LOST)
    return comparison


def find_comparisons(
    suites: Iterable[Iterable[TestResult]], policy: Policy
) -> Sequence[tuple[PairwiseComparison, ...]]:
    """The comparisons of each suite of a run, from the results of head. The probability of a
    false finding holds for the whole run."""
    compared, blocks = [*map(compare_pairs, suites)], "pairwise" in policy.fail_on
    level = (policy.level if blocks else policy.alpha) / max(sum(map(len, compared)), 1)

    def decide(comparison: PairwiseComparison) -> PairwiseComparison:
        fresh = comparison.fresh and replace(comparison.fresh, level=level)
        comparison = replace(comparison, level=level, fresh=fresh)
        if blocks and not comparison.advisory:
            return replace(comparison, outcome=_decide(comparison, policy.confirm))
        return comparison

    return [tuple(map(decide, of_suite)) for of_suite in compared]


def _decide(comparison: PairwiseComparison, confirm: int) -> Outcome:
    """Failed if head's answers are worse, also the fresh ones alone. Answers that were not judged
    might have decided otherwise if they could be losses that matter."""
    for compared in (comparison, comparison.fresh if confirm else comparison):
        if compared is None:
            return Outcome.INCONCLUSIVE
        losses = compared.losses + len(compared.not_judged)
        worst = replace(compared, losses=losses, p_worse=sign_test(losses, compared.wins + losses))
        if compared.finding != "worse":
            return Outcome.INCONCLUSIVE if worst.finding == "worse" else Outcome.PASSED
    return Outcome.FAILED


def _undecided(suite: SuiteComparison, policy: Policy) -> tuple[PairwiseComparison, ...]:
    """The condition of a suite whose answers should have been compared, and none was."""
    comparing, base = frozenset(suite.run.comparing), suite.run.base
    why = first_line(base.problem) or (SAME_SERVICE if base.same_service else "")
    both = [test for test in suite.tests if test.id in comparing and not test.quarantine]
    if any(test.head and test.base and is_same_test(test.head, test.base) for test in both):
        why = why or "the results of base have no answers to compare"
    if "pairwise" not in policy.fail_on or not both or not why:
        return ()
    none = count_pairs("pairwise", ())
    return (replace(none, outcome=Outcome.INCONCLUSIVE, problem=why),)


def compare_pairs(rows: Iterable[TestResult]) -> Sequence[PairwiseComparison]:
    """The comparisons by each pairwise evaluator of a suite, from the results of head. A
    comparison is advisory if all its judgements are; where one decides, the others count as not
    made."""
    first: defaultdict[str, list[_Judged]] = defaultdict(list)
    fresh = first.copy()
    for row in rows:
        for pair in row.pairs:
            for result in pair.evaluator_results:
                (fresh if pair.role == "fresh" else first)[result.name].append((row, result))
    comparisons = []
    for name, pairs in first.items():
        results = [result for _, result in (*pairs, *fresh[name])]
        # About equal answers no model is asked.
        asked = [result for result in results if result.judge and result.judge.models] or results
        advisory = asked[0].advisory if all(result.advisory for result in asked) else ""
        if not advisory:
            pairs, fresh[name] = map(_deciding, (pairs, fresh[name]))
        again = count_pairs(name, fresh[name]) if fresh[name] else None
        comparisons.append(replace(count_pairs(name, pairs), fresh=again, advisory=advisory))
    return comparisons


def _why(unscored: EvaluatorResult) -> str:
    return unscored.error.message if unscored.error else unscored.advisory


def _deciding(pairs: Sequence[_Judged]) -> list[_Judged]:
    return [
        (row, replace(result, score=None) if result.advisory else result) for row, result in pairs
    ]


def count_pairs(name: str, pairs: Sequence[_Judged]) -> PairwiseComparison:
    """Counts what the evaluator with this name says of each test. The turns of a conversation
    depend on each other: they are one pair, which most of its turns decide."""
    scored: defaultdict[Hashable, list[EvaluatorResult]] = defaultdict(list)
    for row, result in pairs:
        if result.score is not None:
            scored[row.conversation_id or ("", row.eval_id)].append(result)
    counts = Counter[str]()
    for turns in scored.values():
        net = sum((result.score == 1) - (result.score == 0) for result in turns)
        counts["wins" if net > 0 else "losses" if net < 0 else "ties"] += 1
        counts["flips"] += net == 0 and any(len(preferred_sides(result)) > 1 for result in turns)
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
        problem=next((_why(result) for _, result in pairs if result.score is None), ""),
    )
