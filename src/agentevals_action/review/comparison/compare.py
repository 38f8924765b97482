"""Pure: head against base, test by test (specification, section 7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentevals_action.model.comparison import (
    Change,
    Difference,
    Evidence,
    Finding,
    Origin,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.result import EvaluatorResult, SampleResult, SuiteRun, TestResult
from agentevals_action.review.comparison.decision_rule import RANK, Held, what_fell
from agentevals_action.review.comparison.statistics import paired_difference

_FOUND = {
    Finding.REGRESSED: Change.REGRESSED,
    Finding.CLEARED: Change.FLAKY,
    Finding.UNDECIDED: Change.UNDECIDED,
    Finding.ERROR: Change.HEAD_ERROR,
}
#: Tests whose question and grading are the same on both sides, and which both could tell.
_COMPARED = frozenset(
    {
        Change.REGRESSED,
        Change.IMPROVED,
        Change.UNCHANGED,
        Change.STILL_FAILING,
        Change.FLAKY,
        Change.UNDECIDED,
    },
)


@dataclass(frozen=True)
class Side:
    """What is known of the base for one suite beside its results: `problem` why it could not be had
    though it exists, `note` why there is rightly none, `path` its name there."""

    run: SuiteRun | None = None
    path: str | None = None
    problem: str = ""
    note: str = ""
    origin: Origin | None = None


@dataclass(frozen=True)
class Knowledge:
    """What the comparison of one suite may know beside the results: by test id, the base's results
    as head's evaluators grade them, the changed files that a question holds, and what confirming a
    verdict that fell came to (head's and base's results then hold the fresh samples). Without
    evidence a verdict that fell is a regression."""

    regraded: Mapping[str, TestResult] = field(default_factory=dict)
    question_files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)


@dataclass(frozen=True)
class Fall:
    """A test whose verdict fell, and what it lost; `base` is graded as head grades."""

    head: TestResult
    base: TestResult
    held: Held


def falls(head: SuiteRun, base: Side, knowledge: Knowledge) -> tuple[Fall, ...]:
    """The tests of a suite that ask and grade the same on both sides, and whose verdict fell."""
    there = {result.eval_id: result for result in base.run.results} if base.run else {}
    found = []
    for result in head.results:
        before = knowledge.regraded.get(result.eval_id) or there.get(result.eval_id)
        if before is None or (held := what_fell(result, before)) is None:
            continue
        change, _ = _change(result, before, result.eval_id in knowledge.regraded, ())
        if change is Change.REGRESSED:
            found.append(Fall(result, before, held))
    return tuple(found)


def needs_regrading(head: TestResult, base: TestResult) -> bool:
    """Whether head asks the same question but grades it otherwise, and the base has an answer that
    can be graded again.

    Not where a program judges the folder that the agent worked in: base's is gone, and without it
    the program would see another agent."""
    if (
        not head.fingerprint
        or not base.fingerprint
        or head.fingerprint.question != base.fingerprint.question
    ):
        return False
    if _had_folder(base) and any(_is_program(result) for result in head.evaluator_results):
        return False
    return head.fingerprint.grading != base.fingerprint.grading and any(
        sample.output_messages for sample in base.samples
    )


def compare_suite(
    path: str, name: str, head: SuiteRun, base: Side, knowledge: Knowledge | None = None
) -> SuiteComparison:
    """All tests of one suite: head's in their order, then those that are gone."""
    knowledge = knowledge or Knowledge()
    there = {result.eval_id: result for result in base.run.results} if base.run else {}
    tests = [
        _compare(result, there.pop(result.eval_id, None), base, knowledge)
        for result in head.results
    ]
    tests.extend(removed(result) for result in there.values())
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
    )


def _difference(
    tests: Iterable[TestComparison], figure: Callable[[SampleResult], float | None]
) -> Difference | None:
    """Head minus base over the tests where both sides know the figure, a mean over each test's
    samples; turns of a conversation are one cluster."""
    found = []
    for test in tests:
        head, base = (_mean(side, figure) for side in (test.head, test.base))
        if test.head and head is not None and base is not None:
            found.append((head - base, test.head.conversation_id or ("", test.id)))
    return paired_difference(found)


def _mean(
    result: TestResult | None, figure: Callable[[SampleResult], float | None]
) -> float | None:
    samples = result.main_samples if result else ()
    known = [value for sample in samples if (value := figure(sample)) is not None]
    return sum(known) / len(known) if known else None


def removed(base: TestResult) -> TestComparison:
    """A test that base has and head has not, with the gates that went with it."""
    return TestComparison(base.eval_id, Change.REMOVED, None, base, gates_removed=_declared(base))


def _compare(
    head: TestResult, base: TestResult | None, side: Side, knowledge: Knowledge
) -> TestComparison:
    if base is None:
        change = (
            Change.BASE_ERROR
            if side.problem and head.verdict
            else Change.HEAD_ERROR
            if head.verdict is None
            else Change.NEW
        )
        return TestComparison(head.eval_id, change, head, None, reason=side.problem)
    regraded = knowledge.regraded.get(head.eval_id)
    counted = regraded or base
    change, reason = _change(
        head, counted, regraded is not None, knowledge.question_files.get(head.eval_id, ())
    )
    evidence = knowledge.evidence.get(head.eval_id)
    if evidence is not None:
        change, reason = _FOUND[evidence.finding], evidence.reason
    return TestComparison(
        id=head.eval_id,
        change=change,
        head=head,
        base=counted,
        regraded=regraded is not None,
        gates_lost=_gates_lost(head, counted) if change is Change.REGRESSED else (),
        # What base itself declared: graded again, its result knows head's gates alone, and a
        # removed one would go unseen.
        gates_removed=tuple(gate for gate in _declared(base) if gate not in _declared(head)),
        reason=reason,
        evidence=evidence,
    )


def _change(
    head: TestResult, base: TestResult, regraded: bool, question_files: Sequence[str]
) -> tuple[Change, str]:
    if head.verdict is None:
        return Change.HEAD_ERROR, ""
    if head.fingerprint and base.fingerprint:
        if head.fingerprint.question != base.fingerprint.question:
            return Change.QUESTION_CHANGED, _why_changed(question_files)
        if head.fingerprint.grading != base.fingerprint.grading and not regraded:
            return _not_regraded(base)
    if base.verdict is None:
        return Change.BASE_ERROR, base.error.message if base.error else "the base has no verdict"
    return _moved(head, base), ""


def _not_regraded(base: TestResult) -> tuple[Change, str]:
    if base.verdict is None and base.error:
        return Change.BASE_ERROR, base.error.message
    if _had_folder(base):
        return (
            Change.NOT_COMPARABLE,
            "the grading changed and the folder in which base's agent worked is gone",
        )
    return (
        Change.NOT_COMPARABLE,
        "the grading changed and the base has no stored answer to grade again",
    )


def _had_folder(result: TestResult) -> bool:
    return any(sample.file_changes is not None for sample in result.samples)


def _is_program(result: EvaluatorResult) -> bool:
    return result.type == "code_judge" or any(
        _is_program(inside) for inside in result.evaluator_results
    )


def _why_changed(files: Sequence[str]) -> str:
    if not files:
        return "the test asks something else than on base"
    names = ", ".join(files)
    return f"changed through {names}; if that is the agent's own prompt, put it under `watch`"


def _moved(head: TestResult, base: TestResult) -> Change:
    if what_fell(head, base):
        return Change.REGRESSED
    if _rose(head, base):
        return Change.IMPROVED
    return Change.STILL_FAILING if head.verdict == "fail" else Change.UNCHANGED


def _rose(head: TestResult, base: TestResult) -> bool:
    """Whether head is better than base ever was among its samples: what base reaches now and then
    is no improvement."""
    rank = RANK[head.verdict or "fail"]
    if rank > RANK[base.verdict or "fail"]:
        return not any(rank <= RANK[sample.verdict] for sample in base.samples if sample.verdict)
    regained = _gates_regained(head, base)
    return any(
        all(gate in sample.gates_failed for sample in base.samples if sample.verdict)
        for gate in regained
    )


def _declared(result: TestResult) -> tuple[str, ...]:
    return tuple(dict.fromkeys(gate.name for gate in result.gates))


def _gates_lost(head: TestResult, base: TestResult) -> tuple[str, ...]:
    held = set(_declared(base)) - set(base.gates_failed)
    return tuple(gate for gate in head.gates_failed if gate in held)


def _gates_regained(head: TestResult, base: TestResult) -> tuple[str, ...]:
    holds = set(_declared(head)) - set(head.gates_failed)
    return tuple(gate for gate in base.gates_failed if gate in holds)


def count(suites: Iterable[SuiteComparison], change: Change) -> int:
    """How many tests became that, over all suites."""
    return sum(test.change is change for suite in suites for test in suite.tests)
