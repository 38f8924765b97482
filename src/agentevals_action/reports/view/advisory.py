"""The judges that decide nothing, and what they would have said."""

from collections import defaultdict
from dataclasses import dataclass

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted
from agentevals_action.model.comparison import Review
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
    found: defaultdict[tuple[JudgeRecord, str], list[tuple[str, bool | None, bool]]]
    found = defaultdict(list)
    for test in (test for suite in review.suites for test in suite.tests):
        on_base = by_path(test.base.evaluator_results if test.base else ())
        for name, result in by_path(test.head.evaluator_results if test.head else ()).items():
            if result.judge and result.advisory:
                held = name in on_base and on_base[name].passed is True
                found[result.judge, result.advisory].append((name, result.passed, held))
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
        for (judge, reason), said in found.items()
    )


def describe_judge(judge: AdvisoryJudge) -> str:
    """Why it is advisory, and what it would have said, in one line."""
    names, models = (
        ", ".join(f"`{plain(name, 80)}`" for name in own) for own in (judge.names, judge.models)
    )
    tests = counted(judge.passed + judge.failed + judge.errored, "answer")
    said = f"Of {tests} it passes {judge.passed:,} and fails {judge.failed:,}"
    if judge.worse:
        said += f" ({judge.worse:,} passed on base)"
    if judge.errored:
        said += f"; {judge.errored:,} could not be judged"
    of = f" ({models})" if models else ""
    return f"the judge {names}{of} is advisory: {judge.reason}. {said}"
