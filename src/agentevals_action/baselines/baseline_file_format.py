"""The baseline file: results that are kept in the repository, one line a test, so that a change to
it can be reviewed."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta
from pydantic_core import to_jsonable_python

from agentevals_action.baselines.stored_run import sound_samples
from agentevals_action.model.result import Fingerprint, GateRecord, Record, SampleResult, TestResult
from agentevals_action.results.build import stored_work
from agentevals_action.results.scoring import combine_samples

_VERSION = 1
#: Characters of a stored answer (JSON) at most; a longer one is left out, and cannot be graded
#: again.
ANSWER_LIMIT = 32 * 1024
#: Samples of a test at most, the latest.
_SAMPLES = 50


@dataclass(frozen=True)
class StoredSuite:
    """One suite's results, the commit that they are of and the time of the latest (ISO 8601)."""

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
    tests: Annotated[int, Meta(ge=0)]


class _TestLine(Record):
    id: str
    fingerprint: Fingerprint
    gates: tuple[str, ...] = ()
    samples: Annotated[tuple[SampleResult, ...], Meta(min_length=1)]
    cost_usd: float | None = None
    duration_ms: float | None = None


class Damaged(ValueError):
    """A text that is no baseline file; `str()` says where and why."""


def written(suites: Iterable[StoredSuite]) -> tuple[str, tuple[str, ...]]:
    """The text of the file, suites by path and tests by id, and the tests (`path: id`) whose answer
    is too long to be kept."""
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
            row, whole = _row(result)
            lines.append(_json(row))
            cut += [] if whole else [f"{suite.path}: {result.eval_id}"]
    return "\n".join(lines) + "\n", tuple(cut)


def read(text: str) -> tuple[StoredSuite, ...]:
    """The suites of the file; Damaged when any line is not as it was written, or one is missing."""
    lines = [line for line in enumerate(text.split("\n"), 1) if line[1].strip()]
    if not lines or _line(_Head, *lines[0]).agentevals_baseline != _VERSION:
        raise Damaged(f"it does not begin as a baseline file of version {_VERSION} does")
    suites: dict[str, StoredSuite] = {}
    at = 1
    while at < len(lines):
        head = _line(_SuiteLine, *lines[at])
        rows = lines[at + 1 : at + 1 + head.tests]
        if head.suite in suites or len(rows) < head.tests:
            why = (
                "is there twice"
                if head.suite in suites
                else f"has {len(rows)} of its {head.tests} tests"
            )
            raise Damaged(f"line {lines[at][0]}: the suite `{head.suite}` {why}")
        results = tuple(_result(head, _line(_TestLine, *row)) for row in rows)
        suites[head.suite] = StoredSuite(head.suite, head.name, head.commit, head.time, results)
        at += 1 + head.tests
    return tuple(suites.values())


def storable(result: TestResult) -> str:
    """In words why a result cannot be stored, empty when it can."""
    if result.fingerprint is None:
        return "it does not say what it depends on (no fingerprint)"
    return "" if sound_samples(result) else "it ended in an error"


def _row(result: TestResult) -> tuple[dict[str, Any], bool]:
    """The line of a test, and whether its answer is in it."""
    samples = sound_samples(result)[-_SAMPLES:]
    rows = [_sample(sample) for sample in samples]
    latest = samples[-1]
    answer = {
        "outputMessages": [dict(message) for message in latest.output_messages],
        "fileChanges": latest.file_changes,
    }
    fits = len(_json(answer)) <= ANSWER_LIMIT
    if fits:
        rows[-1] |= {name: value for name, value in answer.items() if value}
    row = {
        "id": result.eval_id,
        "fingerprint": to_jsonable_python(result.fingerprint) if result.fingerprint else None,
        "gates": list(dict.fromkeys(gate.name for gate in result.gates)),
        "samples": rows,
        "costUsd": _rounded(result.cost_usd, 6),
        "durationMs": _rounded(result.duration_ms, 0),
    }
    return {name: value for name, value in row.items() if value not in (None, [])}, fits


def _sample(sample: SampleResult) -> dict[str, Any]:
    """What is kept of every sample: what it came to, and the figures of its trace."""
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


def _line(kind: type[Any], number: int, text: str) -> Any:
    try:
        return kind.model_validate_json(text)
    except ValueError as error:
        raise Damaged(f"line {number}: {error}") from error
    except RecursionError:
        raise Damaged(f"line {number}: it is nested too deeply") from None


def _rounded(value: float | None, digits: int) -> float | int | None:
    """Digits that say nothing would show as a change; what is no number is not known."""
    if value is None or not math.isfinite(value):
        return None
    return float(round(value, digits)) if digits else round(value)


def _json(data: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
