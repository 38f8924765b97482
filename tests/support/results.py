"""Builders of results, for tests of what stands behind a run."""

from typing import Any

from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    Fingerprint,
    GateRecord,
    SampleResult,
    TestResult,
    Verdict,
)
from agentevals_action.model.trace import Spending

#: Names of fields of `Spending`, which `result` takes as well.
SPENT = frozenset({"cost_usd", "cost_sources", "replies", "cached_replies", "unpriced_replies"})
SCORES: dict[str, float] = {"pass": 1.0, "borderline": 0.7, "fail": 0.2}


def fingerprint(question: str = "q", grading: str = "g", agent: str = "a") -> Fingerprint:
    return Fingerprint(question=question, grading=grading, agent=agent)


def result(
    id: str = "test",
    verdict: Verdict | None = "pass",
    *,
    gates: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
    print: Fingerprint | None = None,
    answer: str | None = "an answer",
    error: str = "",
    path: str = "evals/EVAL.yaml",
    line: int = 3,
    **fields: Any,
) -> TestResult:
    """A result of a test: a verdict of None is an error unless `error` says more."""
    info = (
        ErrorInfo(kind="target", message=error or "connection refused")
        if error or verdict is None
        else None
    )
    messages = ({"role": "assistant", "content": answer},) if answer is not None else ()
    score = None if verdict is None else SCORES[verdict]
    sample = SampleResult(
        score=score,
        verdict=verdict,
        gates_failed=failed,
        candidate_answer=answer or "",
        output_messages=messages,
        error=info,
    )
    spent = Spending(**{name: fields.pop(name) for name in SPENT & fields.keys()})
    return TestResult(
        timestamp="2026-01-01T00:00:00Z",
        eval_id=id,
        dataset="suite",
        score=score,
        verdict=verdict,
        candidate_answer=answer or "",
        eval_path=path,
        path=path,
        line=line,
        gates=tuple(GateRecord(name=name, path=path, line=line + 1) for name in gates),
        gates_failed=failed,
        samples=(sample,),
        error=info,
        fingerprint=print or fingerprint(),
        spent=spent,
        **fields,
    )


def evaluated(name: str = "quality", score: float | None = 1.0, **fields: Any) -> EvaluatorResult:
    return EvaluatorResult(name=name, type="contains", score=score, **fields)
