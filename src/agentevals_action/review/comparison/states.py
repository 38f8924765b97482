"""The state of each test: head compared with base. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from agentevals_action.formatting import first_line, joined
from agentevals_action.model.baseline import SAME_SERVICE
from agentevals_action.model.comparison import (
    BaseScoring,
    ChangeKind,
    Difference,
    Evidence,
    Finding,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.run import RunSuite
from agentevals_action.results.build import without_fresh
from agentevals_action.results.summary import summarise
from agentevals_action.review.comparison.decision_rule import (
    RANK,
    RowsBySuite,
    Suspect,
    as_head_scores,
    find_lost_requirement,
    gates_kept,
)
from agentevals_action.review.comparison.increases import read_figure
from agentevals_action.review.comparison.statistics import paired_difference

_CHANGE_OF_FINDING = {
    Finding.REGRESSED: ChangeKind.REGRESSED,
    Finding.CLEARED: ChangeKind.FLAKY,
    Finding.UNDECIDED: ChangeKind.UNDECIDED,
    Finding.ERROR: ChangeKind.HEAD_ERROR,
}
#: Tests with the same question and grading on both sides, and with a verdict on both.
_COMPARED = frozenset(
    {
        ChangeKind.REGRESSED,
        ChangeKind.IMPROVED,
        ChangeKind.UNCHANGED,
        ChangeKind.STILL_FAILING,
        ChangeKind.FLAKY,
        ChangeKind.UNDECIDED,
    }
)


def find_suspects(head: RowsBySuite, base: RowsBySuite) -> list[Suspect]:
    """The tests with the same question and grading on both sides whose verdict fell, without the
    samples of a confirmation."""
    suspects = []
    for path, name in ((path, name) for path, rows in head.items() for name in rows):
        if base_result := base.get(path, {}).get(name):
            on_head, on_base = map(without_fresh, (head[path][name], as_head_scores(base_result)))
            lost = find_lost_requirement(on_head, on_base)
            change, _ = _change(on_head, on_base, base_result.by_head is not None, ())
            if lost and change is ChangeKind.REGRESSED:
                suspects.append(Suspect(path, on_head, on_base, lost))
    return suspects


def compare_suite(
    suite: RunSuite,
    head: Sequence[TestResult],
    base: Sequence[TestResult],
    evidence: Mapping[str, Evidence] = MappingProxyType({}),
    samples: int = 1,
) -> SuiteComparison:
    """All tests of one suite: those of head in their order, then the removed ones. `evidence` is by
    test id; a fall without evidence is a regression. The run takes `samples` samples of a test."""
    on_base = {result.eval_id: result for result in base}
    tests = [
        _compare(suite, result, on_base.pop(result.eval_id, None), evidence.get(result.eval_id))
        for result in head
    ]
    tests += [
        TestComparison(name, ChangeKind.REMOVED, None, result, gates_removed=_gates(result))
        for name, result in on_base.items()
    ]
    compared = [test for test in tests if test.change in _COMPARED]
    return SuiteComparison(
        run=suite,
        tests=tuple(tests),
        head=summarise(suite.path, suite.name, head, samples) if head else None,
        base=summarise(suite.base_path, suite.name, map(as_head_scores, base), samples)
        if base
        else None,
        score=_difference(compared, lambda sample: sample.score),
        cost=_difference(compared, lambda sample: read_figure(sample, "cost")),
        duration=_difference(compared, lambda sample: read_figure(sample, "latency")),
    )


def _difference(
    tests: Iterable[TestComparison], value: Callable[[SampleResult], float | None]
) -> Difference | None:
    """Head minus base over the tests with a known value (the mean of its samples) on both
    sides. The turns of a conversation are one cluster."""
    differences = []
    for test in tests:
        head, base = _mean(test.head, value), _mean(test.base, value)
        if test.head and head is not None and base is not None:
            differences.append((head - base, test.head.conversation_id or ("", test.id)))
    return paired_difference(differences)


def _mean(result: TestResult | None, value: Callable[[SampleResult], float | None]) -> float | None:
    samples = result.main_samples if result else ()
    known = [number for sample in samples if (number := value(sample)) is not None]
    return sum(known) / len(known) if known else None


def _compare(
    suite: RunSuite, head: TestResult, base: TestResult | None, evidence: Evidence | None
) -> TestComparison:
    by_base = _base_scoring(head, base)
    if base is None:
        change, reason = _without_base(suite, head)
        return TestComparison(head.eval_id, change, head, None, reason=reason, by_base=by_base)
    counted, is_rescored = as_head_scores(base), base.by_head is not None
    question_files = suite.question_files.get(head.eval_id, suite.suite_question_files)
    change, reason = _change(head, counted, is_rescored, question_files)
    if evidence is not None:
        change, reason = _CHANGE_OF_FINDING[evidence.finding], evidence.reason
    lost = (gate for gate in head.gates_failed if gate in gates_kept(counted))
    return TestComparison(
        id=head.eval_id,
        change=change,
        head=head,
        base=counted,
        rescored=is_rescored,
        gates_lost=tuple(lost) if change is ChangeKind.REGRESSED else (),
        # The gates that base itself declares: a rescored result has head's gates.
        gates_removed=tuple(gate for gate in _gates(base) if gate not in _gates(head)),
        reason=reason,
        evidence=evidence,
        by_base=by_base,
    )


def _without_base(suite: RunSuite, head: TestResult) -> tuple[ChangeKind, str]:
    reason, change = first_line(suite.base.problem), ChangeKind.NEW
    if suite.base.problem:
        change = ChangeKind.BASE_ERROR
    if suite.base.broken:
        reason, change = f"invalid on base ({suite.base.broken})", ChangeKind.NOT_COMPARABLE
    if head.eval_id in suite.base.same_service:
        reason, change = SAME_SERVICE, ChangeKind.NOT_COMPARABLE
    return (change if head.verdict else _not_scored(head)), reason


def _base_scoring(head: TestResult, base: TestResult | None) -> BaseScoring | None:
    by_base = head.by_base
    if by_base is None or by_base.verdict is None or head.state == "error":
        return BaseScoring(by_base) if by_base else None
    is_lower = RANK[by_base.verdict] < RANK[head.verdict or "pass"]
    is_worse = head.verdict != "fail" and (is_lower or bool(by_base.gates_failed))
    failed = base.gates_failed if base else ()
    has_lost = is_worse and base is not None and find_lost_requirement(by_base, base) is not None
    return BaseScoring(
        by_base,
        is_worse=is_worse,
        failed_on_base=tuple(gate for gate in by_base.gates_failed if gate in failed),
        judges_lost=tuple(sorted(head.advisory - by_base.advisory)) if has_lost else (),
    )


def _change(
    head: TestResult, base: TestResult, is_rescored: bool, question_files: Sequence[str]
) -> tuple[ChangeKind, str]:
    if head.verdict is None:
        return _not_scored(head), ""
    if head.fingerprint and base.fingerprint:
        if head.fingerprint.question != base.fingerprint.question:
            return ChangeKind.QUESTION_CHANGED, _question_reason(question_files)
        if head.fingerprint.grading != base.fingerprint.grading and not is_rescored:
            return _not_rescored(base)
    if base.verdict is None:
        return (
            ChangeKind.BASE_ERROR,
            base.error.message if base.error else "the base has no verdict",
        )
    if different := head.advisory ^ base.advisory:
        names = joined([f"`{name}`" for name in sorted(different)])
        return ChangeKind.NOT_COMPARABLE, f"{names} decides on one side alone"
    return _moved(head, base), ""


def _not_scored(head: TestResult) -> ChangeKind:
    return ChangeKind.ADVISORY if head.is_advisory else ChangeKind.HEAD_ERROR


def _moved(head: TestResult, base: TestResult) -> ChangeKind:
    if find_lost_requirement(head, base):
        return ChangeKind.REGRESSED
    if _improved(head, base):
        return ChangeKind.IMPROVED
    return ChangeKind.STILL_FAILING if head.verdict == "fail" else ChangeKind.UNCHANGED


def _question_reason(files: Sequence[str]) -> str:
    if not files:
        return "the question differs from base"
    names = ", ".join(files)
    return f"changed through {names}; if that is the agent's own prompt, put it under `watch`"


def _not_rescored(base: TestResult) -> tuple[ChangeKind, str]:
    if base.verdict is None and base.error:
        return ChangeKind.BASE_ERROR, base.error.message
    reason = "the base has no stored answer to score again"
    if had_workspace(base):
        reason = "the folder in which base's agent worked is gone"
    return ChangeKind.NOT_COMPARABLE, f"the grading changed and {reason}"


def had_workspace(result: TestResult) -> bool:
    """Whether the agent worked in a workspace."""
    return any(sample.file_changes is not None for sample in result.samples)


def _improved(head: TestResult, base: TestResult) -> bool:
    """Whether head is better than every sample of base; what base reaches sometimes is not an
    improvement."""
    samples = [sample for sample in base.samples if sample.verdict]
    rank = RANK[head.verdict or "fail"]
    if rank > RANK[base.verdict or "fail"]:
        return all(rank > RANK[sample.verdict or "fail"] for sample in samples)
    regained = [gate for gate in base.gates_failed if gate in gates_kept(head)]
    return any(all(gate in sample.gates_failed for sample in samples) for gate in regained)


def _gates(result: TestResult) -> tuple[str, ...]:
    return tuple(dict.fromkeys(gate.name for gate in result.gates))
