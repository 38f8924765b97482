"""Answers that are scored again because the change edits evaluators: the answers of base by head's
evaluators, the answers of head by base's evaluators."""

from collections.abc import Mapping
from dataclasses import replace

from agentevals_action.errors import AttemptError
from agentevals_action.execution.executor import run_at_once
from agentevals_action.model.result import ErrorInfo, EvaluatorResult, Key, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.results.build import test_result, without_cost
from agentevals_action.review.comparison.states import had_workspace
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.head_and_base import Rows
from agentevals_action.runners.executor import Executors
from agentevals_action.system.redaction import without_secrets


async def rescore_base(inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows) -> Rows:
    """The results of base; where head scores the same question differently, with the result of
    base's answers by the evaluators of head's suites, if these can score answers."""
    suites = inputs.part.head
    to_score = {
        key: row
        for key, row in base.items()
        if key in head and executors.of(suites[key[0]]).scores_answers
        if needs_head_scores(head[key], row)
    }
    scored = await _rescore(inputs, executors, suites, to_score)
    return {**base, **{key: replace(base[key], by_head=row) for key, row in scored.items()}}


def needs_head_scores(head: TestResult, base: TestResult) -> bool:
    """Whether head scores the same question differently and base has an answer to score again.

    Not if a program judges the agent's workspace: the workspace of base no longer exists.
    """
    on_head, on_base = head.fingerprint, base.fingerprint
    if head.verdict is None or not on_head or not on_base:
        return False
    if on_head.question != on_base.question or on_head.grading == on_base.grading:
        return False
    if had_workspace(base) and any(_is_program(result) for result in head.evaluator_results):
        return False
    return any(sample.output_messages for sample in base.samples)


def _is_program(result: EvaluatorResult) -> bool:
    return result.type == "code_judge" or any(map(_is_program, result.evaluator_results))


async def rescore_head(inputs: ReviewInputs, executors: Executors, head: Rows) -> Rows:
    """The results of head; where the change edits what scores the same question, with the result of
    head's answers by the evaluators of base's suites (by their path on head). The added result has
    the cost of the scoring alone, and is an error where the answer cannot be scored."""
    edits = inputs.edits
    to_score = {
        (path, name): without_cost(row)
        for (path, name), row in head.items()
        if row.state != "error" and path in edits and name in edits[path].rescored
    }
    gone = {
        (path, name): row
        for (path, name), row in to_score.items()
        if name in edits[path].by_program and had_workspace(row)
    }
    possible = {key: row for key, row in to_score.items() if key not in gone}
    reason = "the folder in which head's agent worked is gone"
    failed = {key: _failed(row, "evaluator", reason) for key, row in gone.items()}
    scored = {**failed, **await _rescore(inputs, executors, inputs.part.base, possible)}
    return {**head, **{key: replace(head[key], by_base=row) for key, row in scored.items()}}


async def _rescore(
    inputs: ReviewInputs, executors: Executors, suites: Mapping[str, Suite], rows: Rows
) -> Rows:
    """The results of the same answers by the evaluators of these suites; an error if the tree of a
    suite cannot be prepared for its programs."""
    tests = {path: {test.id: test for test in suites[path].tests} for path, _ in rows}

    async def rescore(key: Key) -> TestResult:
        row, suite, test = rows[key], suites[key[0]], tests[key[0]][key[1]]
        try:
            samples = await executors.of(suite).score(test.id, row.samples)
        except AttemptError as error:
            return _failed(row, error.kind, error.sentence)
        fingerprint = inputs.fingerprints.of(suite, test)
        scored = test_result(suite, test, samples, row.duration_ms, fingerprint)
        return without_secrets(replace(scored, timestamp=row.timestamp, eval_path=row.eval_path))

    return await run_at_once(rescore, rows)


def _failed(row: TestResult, kind: str, reason: str) -> TestResult:
    error = ErrorInfo(kind=kind, message=reason)
    return replace(row, score=None, verdict=None, gates_failed=(), samples=(), error=error)
