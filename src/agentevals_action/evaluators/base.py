"""Runs an evaluator on one answer, and validators that several types share."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.model.evaluator import Case, Evaluator, gate_path
from agentevals_action.model.result import PASS_SCORE, ErrorInfo, EvaluatorResult, JudgeRecord
from agentevals_action.results.scoring import reaches

Value = TypeVar("Value")


def require(condition: Callable[[Any], object], problem: str) -> Callable[[Value], Value]:
    """A validator: ValueError with the problem ("problem; advice") for a value without the
    condition."""

    def validate(value: Value) -> Value:
        if not condition(value):
            raise ValueError(problem)
        return value

    return validate


def is_given(value: Any) -> bool:
    """Whether a value is not null."""
    return value is not None


async def run_evaluators(
    evaluators: Sequence[Evaluator], case: Case
) -> tuple[EvaluatorResult, ...]:
    """Runs evaluators on one case concurrently; the results are in the order of `evaluators`."""
    results = (run_evaluator(evaluator, case) for evaluator in evaluators)
    return tuple(await asyncio.gather(*results))


async def run_evaluator(evaluator: Evaluator, case: Case) -> EvaluatorResult:
    """Runs one evaluator on one case and applies its negation and its gate."""
    name, threshold = evaluator.name, evaluator.gate_threshold
    result = partial(
        EvaluatorResult,
        name=name,
        type=evaluator.type,
        weight=evaluator.weight,
        required=threshold or False,
    )
    key = case.judge_key(evaluator) if evaluator.asks_judge else ""
    try:
        score = await evaluator.evaluate(case)
    except AttemptError as error:
        missing = evaluator.missing_program(case.root)
        message = str(missing) if missing else error.sentence
        judge = JudgeRecord(key=key) if key else None
        advisory = case.why_advisory(judge) if judge else ""
        info = ErrorInfo(kind=error.kind, message=message)
        return result(score=None, error=info, judge=judge, advisory=advisory)
    value, hits, misses = score.value, score.hits, score.misses
    if evaluator.negate and score.is_unknown and value is not None:
        value = 0.0  # what is unknown counts against the answer, negated or not
    elif evaluator.negate and value is not None:
        value, hits, misses = 1 - value, misses, hits
    passed = None if value is None else reaches(value, threshold or PASS_SCORE)
    own_gate = (name,) if threshold is not None and passed is False else ()
    inner_gates = tuple(gate_path(name, gate) for gate in score.gates_failed)
    judge = JudgeRecord(key=key, models=tuple(sorted({*score.models}))) if key else None
    return result(
        score=None if value is None else float(value),
        hits=hits,
        misses=misses,
        reasoning=score.reasoning,
        details=score.details,
        passed=False if inner_gates else passed,
        gates_failed=tuple(dict.fromkeys(own_gate + inner_gates)),
        evaluator_results=score.children,
        error=score.error,
        is_unknown=score.is_unknown,
        judge=judge,
        advisory=case.why_advisory(judge) if judge else score.advisory,
    )
