"""Pure: head against base, test by test (specification, section 7)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentevals_action.model.comparison import Change, SuiteComparison, TestComparison
from agentevals_action.model.result import SuiteRun, TestResult

_RANK = {"fail": 0, "borderline": 1, "pass": 2}


@dataclass(frozen=True)
class Side:
    """What is known of the base for one suite beside its results: `problem` why it could not be had though it exists,
    `note` why there is rightly none, `path` its name there."""

    run: SuiteRun | None = None
    path: str | None = None
    problem: str = ""
    note: str = ""


@dataclass(frozen=True)
class Knowledge:
    """What the comparison of one suite may know beside the results: by test id, the base's results as head's evaluators grade them, and
    the changed files that a question holds."""

    regraded: Mapping[str, TestResult] = field(default_factory=dict)
    question_files: Mapping[str, Sequence[str]] = field(default_factory=dict)


def needs_regrading(head: TestResult, base: TestResult) -> bool:
    """Whether head asks the same question but grades it otherwise, and the base has an answer that can be graded again."""
    if not head.fingerprint or not base.fingerprint or head.fingerprint.question != base.fingerprint.question:
        return False
    return head.fingerprint.grading != base.fingerprint.grading and any(sample.output_messages for sample in base.samples)


def compare_suite(path: str, name: str, head: SuiteRun, base: Side, knowledge: Knowledge | None = None) -> SuiteComparison:
    """All tests of one suite: head's in their order, then those that are gone."""
    knowledge = knowledge or Knowledge()
    there = {result.eval_id: result for result in base.run.results} if base.run else {}
    tests = [_compare(result, there.pop(result.eval_id, None), base, knowledge) for result in head.results]
    tests.extend(removed(result) for result in there.values())
    return SuiteComparison(
        path=path,
        name=name,
        tests=tuple(tests),
        head=head.summary,
        base=base.run.summary if base.run else None,
        base_path=base.path,
        problem=base.problem,
        note=base.note,
    )


def removed(base: TestResult) -> TestComparison:
    """A test that base has and head has not, with the gates that went with it."""
    return TestComparison(base.eval_id, Change.REMOVED, None, base, gates_removed=_declared(base))


def _compare(head: TestResult, base: TestResult | None, side: Side, knowledge: Knowledge) -> TestComparison:
    if base is None:
        change = Change.BASE_ERROR if side.problem and head.verdict else Change.HEAD_ERROR if head.verdict is None else Change.NEW
        return TestComparison(head.eval_id, change, head, None, reason=side.problem)
    regraded = knowledge.regraded.get(head.eval_id)
    counted = regraded or base
    change, reason = _change(head, counted, regraded is not None, knowledge.question_files.get(head.eval_id, ()))
    return TestComparison(
        id=head.eval_id,
        change=change,
        head=head,
        base=counted,
        regraded=regraded is not None,
        gates_lost=_gates_lost(head, counted) if change is Change.REGRESSED else (),
        # What base itself declared: graded again, its result knows head's gates alone, and a removed one would go unseen.
        gates_removed=tuple(gate for gate in _declared(base) if gate not in _declared(head)),
        reason=reason,
    )


def _change(head: TestResult, base: TestResult, regraded: bool, question_files: Sequence[str]) -> tuple[Change, str]:
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
    return Change.NOT_COMPARABLE, "the grading changed and the base has no stored answer to grade again"


def _why_changed(files: Sequence[str]) -> str:
    if not files:
        return "the test asks something else than on base"
    names = ", ".join(files)
    return f"changed through {names}; if that is the agent's own prompt, put it under `watch`"


def _moved(head: TestResult, base: TestResult) -> Change:
    fell, rose = _gates_lost(head, base), _gates_regained(head, base)
    step = _RANK[head.verdict or "fail"] - _RANK[base.verdict or "fail"]
    if step < 0 or fell:
        return Change.REGRESSED
    if step > 0 or rose:
        return Change.IMPROVED
    return Change.STILL_FAILING if head.verdict == "fail" else Change.UNCHANGED


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
