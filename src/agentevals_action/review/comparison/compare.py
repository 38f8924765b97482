"""The state of each test: head compared with base. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentevals_action.model.baseline import BaselineOrigin
from agentevals_action.model.comparison import (
    BaseScoring,
    ChangeKind,
    Difference,
    Evidence,
    Finding,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.edits import Edit
from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    SampleResult,
    SuiteRun,
    TestResult,
)
from agentevals_action.review.comparison.decision_rule import RANK, Suspect, find_fall, gates_kept
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


@dataclass(frozen=True)
class Side:
    """The base of one suite. `problem` is why its results could not be obtained, `note` why there
    rightly are none, `path` its path on base."""

    run: SuiteRun | None = None
    path: str | None = None
    problem: str = ""
    note: str = ""
    origin: BaselineOrigin | None = None

    def results(self) -> dict[str, TestResult]:
        """The results by test id."""
        return {result.eval_id: result for result in self.run.results} if self.run else {}


@dataclass(frozen=True)
class Knowledge:
    """What is known about the tests of one suite besides their results, by test id: the results of
    base as head's evaluators score them, the changed files that a question contains, and the
    evidence about a verdict that fell (the results then contain the fresh samples). A fall without
    evidence is a regression. `by_base` are results of head as base's evaluators score them; `edits`
    are those of the suite."""

    regraded: Mapping[str, TestResult] = field(default_factory=dict)
    question_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    by_base: Mapping[str, TestResult] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()


def find_falls(head: SuiteRun, base: Side, knowledge: Knowledge) -> list[Suspect]:
    """The tests of a suite with the same question and grading on both sides whose verdict fell."""
    base_results = base.results() | dict(knowledge.regraded)
    found = []
    for result in head.results:
        before = base_results.get(result.eval_id)
        kept = find_fall(result, before) if before else None
        if before and kept:
            change, _ = _change(result, before, result.eval_id in knowledge.regraded, ())
            if change is ChangeKind.REGRESSED:
                found.append(Suspect(head.path, result, before, kept))
    return found


def needs_regrading(head: TestResult, base: TestResult) -> bool:
    """Whether head scores the same question differently and base has an answer to score again.

    Not if a program judges the agent's workspace: that of base no longer exists.
    """
    now, before = head.fingerprint, base.fingerprint
    if not now or not before or now.question != before.question or now.grading == before.grading:
        return False
    if _had_workspace(base) and any(_is_program(result) for result in head.evaluator_results):
        return False
    return any(sample.output_messages for sample in base.samples)


def without_workspace(head: TestResult) -> ErrorInfo | None:
    """The error of a result that a program of base cannot score, because it would judge the agent's
    workspace. None if there was none."""
    if not _had_workspace(head):
        return None
    reason = "the folder in which head's agent worked is gone"
    return ErrorInfo(kind="evaluator", message=reason)


def unscored(head: TestResult, error: ErrorInfo) -> TestResult:
    """A result of one side that the other side's evaluators could not score."""
    return replace(head, score=None, verdict=None, gates_failed=(), samples=(), error=error)


def compare_suite(
    path: str, name: str, head: SuiteRun, base: Side, knowledge: Knowledge | None = None
) -> SuiteComparison:
    """All tests of one suite: those of head in their order, then the removed ones."""
    knowledge = knowledge or Knowledge()
    base_results = base.results()
    tests = [
        _compare(result, base_results.pop(result.eval_id, None), base, knowledge)
        for result in head.results
    ]
    tests.extend(removed(result) for result in base_results.values())
    compared = [test for test in tests if test.change in _COMPARED]
    return SuiteComparison(
        path=path,
        name=name,
        tests=tuple(tests),
        head=head.summary,
        base=base.run.summary if base.run else None,
        base_path=base.path,
        problem=base.problem,
        note=base.note,
        score=_difference(compared, lambda sample: sample.score),
        cost=_difference(
            compared, lambda sample: sample.trace_summary.cost_usd if sample.trace_summary else None
        ),
        duration=_difference(
            compared,
            lambda sample: sample.trace_summary.duration_ms if sample.trace_summary else None,
        ),
        origin=base.origin,
        edits=knowledge.edits,
    )


def _difference(
    tests: Iterable[TestComparison], value: Callable[[SampleResult], float | None]
) -> Difference | None:
    """Head minus base over the tests with a known value on both sides: the mean of a test's
    samples. The turns of a conversation are one cluster."""
    found = []
    for test in tests:
        head, base = _mean(test.head, value), _mean(test.base, value)
        if test.head and head is not None and base is not None:
            found.append((head - base, test.head.conversation_id or ("", test.id)))
    return paired_difference(found)


def _mean(result: TestResult | None, value: Callable[[SampleResult], float | None]) -> float | None:
    samples = result.main_samples if result else ()
    known = [number for sample in samples if (number := value(sample)) is not None]
    return sum(known) / len(known) if known else None


def removed(base: TestResult) -> TestComparison:
    """A test that only base has, with its gates."""
    return TestComparison(base.eval_id, ChangeKind.REMOVED, None, base, gates_removed=_gates(base))


def _compare(
    head: TestResult, base: TestResult | None, side: Side, knowledge: Knowledge
) -> TestComparison:
    by_base = _base_scoring(head, base, knowledge.by_base.get(head.eval_id))
    if base is None:
        change = ChangeKind.HEAD_ERROR
        if head.verdict:
            change = ChangeKind.BASE_ERROR if side.problem else ChangeKind.NEW
        return TestComparison(
            head.eval_id, change, head, None, reason=side.problem, by_base=by_base
        )
    regraded = knowledge.regraded.get(head.eval_id)
    counted = regraded or base
    question_files = knowledge.question_files.get(head.eval_id, ())
    change, reason = _change(head, counted, regraded is not None, question_files)
    evidence = knowledge.evidence.get(head.eval_id)
    if evidence is not None:
        change, reason = _CHANGE_OF_FINDING[evidence.finding], evidence.reason
    lost = (gate for gate in head.gates_failed if gate in gates_kept(counted))
    return TestComparison(
        id=head.eval_id,
        change=change,
        head=head,
        base=counted,
        regraded=regraded is not None,
        gates_lost=tuple(lost) if change is ChangeKind.REGRESSED else (),
        # The gates that base itself declares: a regraded result has head's gates.
        gates_removed=tuple(gate for gate in _gates(base) if gate not in _gates(head)),
        reason=reason,
        evidence=evidence,
        by_base=by_base,
    )


def _base_scoring(
    head: TestResult, base: TestResult | None, by_base: TestResult | None
) -> BaseScoring | None:
    if by_base is None or by_base.verdict is None or head.verdict is None:
        return BaseScoring(by_base) if by_base else None
    is_lower = RANK[by_base.verdict] < RANK[head.verdict]
    failed = base.gates_failed if base else ()
    return BaseScoring(
        by_base,
        is_worse=not head.gates_failed and (is_lower or bool(by_base.gates_failed)),
        failed_on_base=tuple(gate for gate in by_base.gates_failed if gate in failed),
    )


def _change(
    head: TestResult, base: TestResult, regraded: bool, question_files: Sequence[str]
) -> tuple[ChangeKind, str]:
    if head.verdict is None:
        return ChangeKind.HEAD_ERROR, ""
    if head.fingerprint and base.fingerprint:
        if head.fingerprint.question != base.fingerprint.question:
            return ChangeKind.QUESTION_CHANGED, _question_reason(question_files)
        if head.fingerprint.grading != base.fingerprint.grading and not regraded:
            return _not_regraded(base)
    if base.verdict is None:
        return (
            ChangeKind.BASE_ERROR,
            base.error.message if base.error else "the base has no verdict",
        )
    return _moved(head, base), ""


def _moved(head: TestResult, base: TestResult) -> ChangeKind:
    if find_fall(head, base):
        return ChangeKind.REGRESSED
    if _improved(head, base):
        return ChangeKind.IMPROVED
    return ChangeKind.STILL_FAILING if head.verdict == "fail" else ChangeKind.UNCHANGED


def _question_reason(files: Sequence[str]) -> str:
    if not files:
        return "the test asks something else than on base"
    names = ", ".join(files)
    return f"changed through {names}; if that is the agent's own prompt, put it under `watch`"


def _not_regraded(base: TestResult) -> tuple[ChangeKind, str]:
    if base.verdict is None and base.error:
        return ChangeKind.BASE_ERROR, base.error.message
    reason = "the base has no stored answer to grade again"
    if _had_workspace(base):
        reason = "the folder in which base's agent worked is gone"
    return ChangeKind.NOT_COMPARABLE, f"the grading changed and {reason}"


def _had_workspace(result: TestResult) -> bool:
    return any(sample.file_changes is not None for sample in result.samples)


def _is_program(result: EvaluatorResult) -> bool:
    return result.type == "code_judge" or any(map(_is_program, result.evaluator_results))


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


def count(suites: Iterable[SuiteComparison], change: ChangeKind) -> int:
    """The number of tests with this change."""
    return sum(test.change is change for suite in suites for test in suite.tests)
