"""Rows of AgentV's `index.jsonl` (snake_case), read leniently as results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    SampleResult,
    TestResult,
    TraceSummary,
    Verdict,
)
from agentevals_action.model.usage import Spending, Usage
from agentevals_action.results.scoring import verdict_of
from agentevals_action.system.files.regular_files import read_regular

_ANSWER_PATHS = ("output_path", "answer_path", "response_path")
_ANSWER_LIMIT = 1024 * 1024  # bytes of an answer's own file
_VERDICTS: Mapping[str, Verdict] = {"pass": "pass", "borderline": "borderline", "fail": "fail"}


def is_agentv_row(data: object) -> bool:
    """Whether a decoded row is AgentV's: it names its test and has a score or an error."""
    return (
        isinstance(data, Mapping)
        and isinstance(_id(data), str)
        and ("score" in data or "error" in data)
    )


def read_row(data: Mapping[str, Any], folder: Path) -> TestResult:
    """One row as a result; `folder` is that of the index, below which the files of answers lie.
    ValueError for an invalid row.

    A row that ended in an execution error, or has no score, is an error. AgentV keeps no gates by
    name: a row of good score that it counts as failed is a fail."""
    score = _number(data, "score")
    if score is not None and not 0 <= score <= 1:
        raise ValueError(f"a score of {score:g} is not in 0-1")
    error = _error(data, score)
    verdict = None if error else _verdict(data, score)
    answer = _answer(data, folder)
    messages: tuple[Mapping[str, Any], ...] = (
        ({"role": "assistant", "content": answer},) if answer else ()
    )
    evaluators = tuple(_evaluator(one) for one in _list(data, "scores") if isinstance(one, Mapping))
    hits, misses = _assertions(data)
    trace = _trace(data)
    kept = None if error else score
    sample = SampleResult(
        score=kept,
        verdict=verdict,
        candidate_answer=answer,
        output_messages=messages,
        trace_summary=trace,
        evaluator_results=evaluators,
        error=error,
    )
    return TestResult(
        timestamp=_text(data, "timestamp"),
        eval_id=_id(data) or "",
        dataset=_text(data, "suite") or _text(data, "dataset"),
        conversation_id=_text(data, "conversation_id") or None,
        score=kept,
        verdict=verdict,
        hits=hits or tuple(hit for one in evaluators for hit in one.hits),
        misses=misses or tuple(miss for one in evaluators for miss in one.misses),
        candidate_answer=answer,
        target=_text(data, "target"),
        trace_summary=trace,
        evaluator_results=evaluators,
        eval_path=_suite_path(data),
        samples=(sample,),
        spent=Spending(_number(data, "cost_usd")),
        duration_ms=_number(data, "duration_ms"),
        error=error,
    )


def _id(data: Mapping[str, Any]) -> str | None:
    return _text(data, "test_id") or _text(data, "eval_id") or None


def _suite_path(data: Mapping[str, Any]) -> str:
    """The path of the suite; its name if the row has none. `eval_path` itself can name the copy of
    the test that AgentV puts into the results of each run."""
    identity = data.get("projection_identity")
    dimensions = identity.get("dimensions") if isinstance(identity, Mapping) else None
    if isinstance(dimensions, Mapping) and (path := _text(dimensions, "eval_path")):
        return path
    path, copies = _text(data, "eval_path"), _text(data, "task_dir")
    is_copy = bool(copies) and path.startswith(f"{copies}/")
    return ("" if is_copy else path) or _text(data, "suite") or _text(data, "dataset")


def _error(data: Mapping[str, Any], score: float | None) -> ErrorInfo | None:
    if message := data.get("error"):
        return ErrorInfo(kind="target", message=str(message))
    if data.get("execution_status") == "execution_error":
        return ErrorInfo(
            kind="target",
            message=_text(data, "failure_reason_code") or "the run ended in an execution error",
        )
    if score is None or data.get("verdict") == "skip":
        return ErrorInfo(kind="evaluator", message="the row has no score")
    return None


def _verdict(data: Mapping[str, Any], score: float | None) -> Verdict:
    if known := _VERDICTS.get(_text(data, "verdict")):
        return known
    verdict = verdict_of(score or 0.0)
    is_failed = data.get("execution_status") == "quality_failure"
    return "fail" if verdict == "pass" and is_failed else verdict


def _answer(data: Mapping[str, Any], folder: Path) -> str:
    for name in ("output", "answer", "candidate_answer"):
        if text := _text(data, name):
            return text
    for name in _ANSWER_PATHS:
        if relative := _text(data, name):
            return _answer_file(folder, relative)
    return ""


def _answer_file(folder: Path, relative: str) -> str:
    """The text of an answer's file, empty if it does not exist or is outside of the folder."""
    try:
        path = (folder / relative).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return ""
        return read_regular(path, _ANSWER_LIMIT).decode("utf-8", "replace").rstrip()
    except (OSError, ValueError):
        return ""  # the answer is only shown: the row is valid without it


def _evaluator(data: Mapping[str, Any]) -> EvaluatorResult:
    hits, misses = _assertions(data)
    score, weight = _number(data, "score"), _number(data, "weight")
    return EvaluatorResult(
        name=_text(data, "name") or _text(data, "type"),
        type=_text(data, "type"),
        score=score,
        weight=1.0 if weight is None else weight,
        hits=hits,
        misses=misses,
        reasoning=_text(data, "reasoning"),
        passed={"pass": True, "fail": False}.get(_text(data, "verdict")),
    )


def _assertions(data: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    checks = [one for one in _list(data, "assertions") if isinstance(one, Mapping)]
    hits = [_text(one, "text") for one in checks if one.get("passed") is True]
    misses = [_text(one, "text") for one in checks if one.get("passed") is not True]
    hits += [one for one in _list(data, "hits") if isinstance(one, str)]
    misses += [one for one in _list(data, "misses") if isinstance(one, str)]
    return tuple(hits), tuple(misses)


def _trace(data: Mapping[str, Any]) -> TraceSummary | None:
    tokens = data.get("token_usage")
    tokens = tokens if isinstance(tokens, Mapping) else {}
    counts = (_number(tokens, name) for name in ("input", "output"))
    sent, received = (None if number is None else int(number) for number in counts)
    usage = Usage(sent, received, cost_usd=_number(data, "cost_usd"))
    duration = _number(data, "duration_ms")
    if usage == Usage() and duration is None:
        return None
    return TraceSummary(
        total_tokens=usage.total_tokens,
        **asdict(usage),
        duration_ms=duration,
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _number(data: Mapping[str, Any], key: str) -> float | None:
    value = data.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(data: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else ()
