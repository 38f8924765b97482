"""What judges say that decide nothing, and what pairwise evaluators say, in words."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, plural
from agentevals_action.model.comparison import PairwiseComparison, Review, SuiteComparison
from agentevals_action.model.result import JudgeRecord, by_path


@dataclass(frozen=True)
class AdvisoryJudge:
    """A judge that is shown and decides nothing, for a `reason`: the `names` of its evaluators
    (`composite/child`), and the `models` that judged. Of head's tests, it would have `passed`,
    `failed` or `errored` so many; `worse` of the failed ones passed on base."""

    names: tuple[str, ...]
    models: tuple[str, ...]
    reason: str
    passed: int
    failed: int
    errored: int
    worse: int


def advisory_judges(review: Review) -> tuple[AdvisoryJudge, ...]:
    """The judges of head that are advisory, in the order of the tests."""
    by_judge: defaultdict[tuple[JudgeRecord, str], list[tuple[str, bool | None, bool]]]
    by_judge = defaultdict(list)
    for test in (test for suite in review.suites for test in suite.tests):
        on_base = by_path(test.base.evaluator_results if test.base else ())
        for name, result in by_path(test.head.evaluator_results if test.head else ()).items():
            if result.judge and result.advisory:
                held = name in on_base and on_base[name].passed is True
                by_judge[result.judge, result.advisory].append((name, result.passed, held))
    return tuple(
        AdvisoryJudge(
            tuple(dict.fromkeys(name for name, _, _ in said)),
            judge.models,
            reason,
            passed=sum(passed is True for _, passed, _ in said),
            failed=sum(passed is False for _, passed, _ in said),
            errored=sum(passed is None for _, passed, _ in said),
            worse=sum(passed is False and held for _, passed, held in said),
        )
        for (judge, reason), said in by_judge.items()
    )


def describe_judge(judge: AdvisoryJudge) -> str:
    """Why a judge is advisory, and what it would have said, in one line."""
    names, models = (
        ", ".join(f"`{plain(name, 80)}`" for name in texts) for texts in (judge.names, judge.models)
    )
    tests = counted(judge.passed + judge.failed + judge.errored, "answer")
    said = f"Of {tests} it passes {judge.passed:,} and fails {judge.failed:,}"
    if judge.worse:
        said += f" ({judge.worse:,} passed on base)"
    if judge.errored:
        said += f"; {judge.errored:,} could not be judged"
    of = f" ({models})" if models else ""
    return f"the judge {names}{of} is advisory: {judge.reason}. {said}"


def describe_pairwise(pairwise: PairwiseComparison) -> str:
    """`head's answer is much better in 2 and much worse in 9 of 20 pairs (9 ties, 3 of them flips):
    worse than base's (p = 0.033)`; with what fresh answers show, and why it decides nothing."""
    fresh = f"; fresh answers: {describe_pairwise(pairwise.fresh)}" if pairwise.fresh else ""
    advisory = f"; advisory: {pairwise.advisory}" if pairwise.advisory else ""
    flips = f", {pairwise.flips} of them {plural(pairwise.flips, 'a flip', 'flips')}"
    ties = f"{counted(pairwise.ties, 'tie')}{flips if pairwise.flips else ''}"
    notes = f" ({ties})" if pairwise.ties else ""
    of = f"much worse in {pairwise.losses} of {counted(pairwise.pairs, 'pair')}{notes}"
    decisive = counted(pairwise.wins + pairwise.losses, "decisive pair")
    shown = {
        "worse": f"worse than base's (p = {pairwise.p_worse:.2g})",
        "better": f"better than base's (p = {pairwise.p_better:.2g})",
        "nothing": "no difference shown",
        "too few pairs": f"with {decisive} nothing could be found",
    }
    better = f"head's answer is much better in {pairwise.wins}"
    return f"{better} and {of}: {shown[pairwise.finding]}{fresh}{advisory}"


def worse_answers(suites: Iterable[SuiteComparison]) -> str:
    """`head's answers are worse than base's in 1 suite (advisory)`; empty without such a suite. Of
    suites in which this decides, the outcome says so."""
    number = sum(
        any(pairwise.finding == "worse" and pairwise.outcome is None for pairwise in suite.pairwise)
        for suite in suites
    )
    words = f"head's answers are worse than base's in {counted(number, 'suite')}"
    return f"{words} (advisory)" if number else ""


def are_worse(suites: Iterable[SuiteComparison]) -> bool:
    """Whether head's answers are worse somewhere, whether this decides or not."""
    return any(pairwise.finding == "worse" for suite in suites for pairwise in suite.pairwise)
