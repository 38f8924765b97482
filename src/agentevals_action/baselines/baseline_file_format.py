"""The format of a baseline file: results in the repository, one line per test, so that a change of
the file can be reviewed."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError
from pydantic_core import to_jsonable_python

from agentevals_action.baselines.stored_run import sound_samples
from agentevals_action.model.result import Fingerprint, GateRecord, Record, SampleResult, TestResult
from agentevals_action.model.validation.field_errors import invalid_json
from agentevals_action.results.scoring import combine_samples
from agentevals_action.results.trace_summary import stored_work

_VERSION = 1
#: Characters of a stored answer (JSON) at most; a longer one is left out and cannot be scored
#: again.
ANSWER_LIMIT = 32 * 1024
#: Samples per test at most, the latest ones.
_SAMPLES = 50


@dataclass(frozen=True)
class StoredSuite:
    """The results of one suite, their commit, and the time of the latest (ISO 8601)."""

    path: str
    name: str
    commit: str
    time: str
    results: tuple[TestResult, ...]


class _Head(Record):
    agentevals_baseline: int


class _SuiteLine(Record):
    suite: str
    name: str
    commit: str
    time: str
    tests: Annotated[int, Field(ge=0)]


class _TestLine(Record):
    id: str
    fingerprint: Fingerprint
    gates: tuple[str, ...] = ()
    samples: Annotated[tuple[SampleResult, ...], Field(min_length=1)]
    cost_usd: float | None = None
    duration_ms: float | None = None


_Line = TypeVar("_Line", bound=Record)


class Damaged(ValueError):
    """A text that is not a valid baseline file; the message has the line and the reason."""


def format_suites(suites: Iterable[StoredSuite]) -> tuple[str, tuple[str, ...]]:
    """The text of the file, suites by path and tests by id, and the tests (`path: id`) whose answer
    is too long to be stored."""
    lines = [_json({"agentevalsBaseline": _VERSION})]
    cut: list[str] = []
    for suite in sorted(suites, key=lambda one: one.path):
        head = _SuiteLine(
            suite=suite.path,
            name=suite.name,
            commit=suite.commit,
            time=suite.time,
            tests=len(suite.results),
        )
        lines.append(_json(head.model_dump(mode="json")))
        for result in sorted(suite.results, key=lambda one: one.eval_id):
            row, has_answer = _row(result)
            lines.append(_json(row))
            cut += [] if has_answer else [f"{suite.path}: {result.eval_id}"]
    return "\n".join(lines) + "\n", tuple(cut)


def read_suites(text: str) -> tuple[StoredSuite, ...]:
    """The suites of the file; Damaged for an invalid or missing line."""
    lines = [line for line in enumerate(text.split("\n"), 1) if line[1].strip()]
    if not lines or _line(_Head, *lines[0]).agentevals_baseline != _VERSION:
        raise Damaged(f"it does not begin like a baseline file of version {_VERSION}")
    suites: dict[str, StoredSuite] = {}
    at = 1
    while at < len(lines):
        head = _line(_SuiteLine, *lines[at])
        rows = lines[at + 1 : at + 1 + head.tests]
        problem = ""
        if head.suite in suites:
            problem = "is there twice"
        elif len(rows) < head.tests:
            problem = f"has {len(rows)} of its {head.tests} tests"
        if problem:
            raise Damaged(f"line {lines[at][0]}: the suite `{head.suite}` {problem}")
        results = tuple(_result(head, _line(_TestLine, *row)) for row in rows)
        suites[head.suite] = StoredSuite(head.suite, head.name, head.commit, head.time, results)
        at += 1 + head.tests
    return tuple(suites.values())


def why_not_storable(result: TestResult) -> str:
    """The reason why a result cannot be stored, empty when it can."""
    if result.fingerprint is None:
        return "it has no fingerprint of its question, evaluators and agent"
    return "" if sound_samples(result) else "it ended in an error"


def _row(result: TestResult) -> tuple[dict[str, Any], bool]:
    """The line of a test, and whether it contains the answer."""
    samples = sound_samples(result)[-_SAMPLES:]
    rows = [_sample(sample) for sample in samples]
    latest = samples[-1]
    answer = {
        "outputMessages": [dict(message) for message in latest.output_messages],
        "fileChanges": latest.file_changes,
    }
    has_answer = len(_json(answer)) <= ANSWER_LIMIT
    if has_answer:
        rows[-1] |= {name: value for name, value in answer.items() if value}
    row = {
        "id": result.eval_id,
        "fingerprint": to_jsonable_python(result.fingerprint) if result.fingerprint else None,
        "gates": list(dict.fromkeys(gate.name for gate in result.gates)),
        "samples": rows,
        "costUsd": _rounded(result.cost_usd, 6),
        "durationMs": _rounded(result.duration_ms, 0),
    }
    return {name: value for name, value in row.items() if value not in (None, [])}, has_answer


def _sample(sample: SampleResult) -> dict[str, Any]:
    """The part that is stored of every sample: its score and its trace summary."""
    row: dict[str, Any] = {"score": _rounded(sample.score, 9), "verdict": sample.verdict}
    if sample.gates_failed:
        row["gatesFailed"] = list(sample.gates_failed)
    if sample.trace_summary:
        known = {
            name: value
            for name, value in to_jsonable_python(sample.trace_summary).items()
            if value not in (None, [], 0)
        }
        row["traceSummary"] = known | {
            name: _rounded(known[name], digits)
            for name, digits in (("costUsd", 6), ("durationMs", 0))
            if name in known
        }
    return row


def _result(head: _SuiteLine, row: _TestLine) -> TestResult:
    samples = tuple(
        replace(sample, candidate_answer=stored_work(sample).trace.output) for sample in row.samples
    )
    score, verdict, gates = combine_samples(samples)
    return TestResult(
        timestamp=head.time,
        eval_id=row.id,
        dataset=head.name,
        score=score,
        verdict=verdict,
        candidate_answer=samples[-1].candidate_answer,
        eval_path=head.suite,
        path=head.suite,
        gates=tuple(GateRecord(name=name, path=head.suite, line=1) for name in row.gates),
        gates_failed=gates,
        samples=samples,
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms,
        fingerprint=row.fingerprint,
    )


def _line(model: type[_Line], number: int, text: str) -> _Line:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise Damaged(f"line {number}: {invalid_json(error, text)}") from error


def _rounded(value: float | None, digits: int) -> float | int | None:
    """A number without digits that would only show as changes of the file."""
    if value is None or not math.isfinite(value):
        return None
    return float(round(value, digits)) if digits else round(value)


def _json(data: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
