"""The results of tests, made of the rows of a runner. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import REQUIRED_SCORE
from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    Fingerprint,
    GateRecord,
    SampleResult,
    TestResult,
    TraceSummary,
)
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Spending, Usage
from agentevals_action.results.build import timestamp, with_samples
from agentevals_action.runners.formats.base import Check, Row
from agentevals_action.validation.patterns import search_pattern

#: Characters of a reason, and of a question or an answer.
_REASON, _TEXT = 2_000, 100_000


def rows_by_test(rows: Sequence[Row], samples: int) -> Mapping[str, Sequence[Row]]:
    """The rows of one start with `samples` of each test, by the ids of tests. Several tests of one
    id have a multiple of the samples: they are numbered from `#2`."""
    by_id: dict[str, list[Row]] = {}
    for row in rows:
        by_id.setdefault(row.id, []).append(row)
    by_test: dict[str, Sequence[Row]] = {}
    for name, same in by_id.items():
        size = samples if len(same) % samples == 0 else len(same)
        numbered = (f"{name} #{number}" for number in count(2))
        for first in range(0, len(same), size):
            # A test may have the id `a #2` itself.
            free = next(other for other in numbered if other not in by_id) if first else name
            by_test[free] = same[first : first + size]
    return by_test


def build_result(
    suite: Suite, name: str, rows: Sequence[Row], samples: int, fingerprint: Fingerprint
) -> TestResult | None:
    """The result of the test `name` of a runner's suite by its rows, of which there should be
    `samples`; None if it was skipped each time. AttemptError."""
    runner = _get_runner(suite)
    scored = [row for row in rows if row.error or not row.skipped]
    if not scored:
        return None
    first = scored[0]
    result = replace(
        _without_samples(suite, name, first.location),
        target=first.target,
        question=cut(first.question, _TEXT),
        duration_ms=_total([row.duration_ms for row in scored]),
        fingerprint=fingerprint,
    )
    taken = [build_sample(row, runner, is_gate=bool(result.gates)) for row in scored]
    taken += [missing_sample(runner)] * (samples - len(rows))
    return with_samples(result, taken)


def error_row(suite: Suite, name: str, error: ErrorInfo) -> TestResult:
    """The result of a test that did not run."""
    return with_samples(_without_samples(suite, name), [SampleResult(error=error)])


def _without_samples(suite: Suite, name: str, location: Location | None = None) -> TestResult:
    runner, place = _get_runner(suite), location or Location(suite.path)
    gates = [runner.name] if runner.requires(name) else []
    return TestResult(
        timestamp=timestamp(),
        eval_id=name,
        dataset=suite.name,
        score=None,
        verdict=None,
        eval_path=suite.path,
        path=place.path,
        line=place.line,
        gates=tuple(GateRecord(name=gate, path=place.path, line=place.line) for gate in gates),
    )


def build_sample(row: Row, runner: Runner, *, is_gate: bool) -> SampleResult:
    """One sample, whose verdict is that of the runner; its failure is an error if it matches the
    `errors` of the entry. AttemptError if the search for them takes too long."""
    answer = cut(row.answer, _TEXT)
    reason, error = cut(row.reason, _REASON), row.error
    misses = [_miss(check) for check in row.checks if check.passed is False] or [reason]
    if not row.passed and not error and runner.errors:
        texts = [reason, *misses]
        where = f"a reason of `{runner.name}`"
        outages = (text for text in texts if search_pattern(runner.errors, "", text, where))
        error = next(outages, "")
    common: dict[str, Any] = {
        "candidate_answer": answer,
        "output_messages": ({"role": "assistant", "content": answer},) if answer else (),
        "trace_summary": _summary(row, runner),
        "spent": _spending(row.usage, runner),
    }
    if error:
        info = ErrorInfo(kind="runner", message=cut(error, _REASON))
        return SampleResult(**common, error=info)
    gates_failed = (runner.name,) if is_gate and not row.passed else ()
    shown = () if row.passed else tuple(filter(None, misses))
    result = EvaluatorResult(
        name=runner.name,
        type=runner.results,
        score=1.0 if row.passed else 0.0,
        hits=tuple(check.name for check in row.checks if check.passed),
        misses=shown,
        reasoning="" if any(reason in miss for miss in shown) else reason,
        details={} if row.score is None else {"score": row.score},
        required=REQUIRED_SCORE if is_gate else False,
        passed=row.passed,
        gates_failed=gates_failed,
        evaluator_results=tuple(_check_result(check, runner) for check in row.checks),
    )
    return SampleResult(
        **common,
        score=result.score,
        verdict="pass" if row.passed else "fail",
        gates_failed=gates_failed,
        evaluator_results=(result,),
    )


def missing_sample(runner: Runner) -> SampleResult:
    """The error of a sample that a runner should have taken and did not report."""
    problem = f"`{runner.name}` reported fewer samples of it than it was asked for"
    return SampleResult(error=ErrorInfo(kind="runner", message=problem))


def _get_runner(suite: Suite) -> Runner:
    if suite.runner is None:
        raise TypeError(f"{suite.path} has no runner")
    return suite.runner


def _miss(check: Check) -> str:
    return cut(f"{check.name}: {check.reason}" if check.reason else check.name, _REASON)


def _check_result(check: Check, runner: Runner) -> EvaluatorResult:
    is_score = check.score is not None and 0 <= check.score <= 1
    verdict = None if check.passed is None else float(check.passed)
    return EvaluatorResult(
        name=check.name,
        type=runner.results,
        score=check.score if is_score else verdict,
        misses=(_miss(check),) if check.passed is False else (),
        reasoning="" if check.passed is False else cut(check.reason, _REASON),
        passed=check.passed,
    )


def _summary(row: Row, runner: Runner) -> TraceSummary | None:
    """The figures of a row; None if there are none."""
    usage = row.usage
    if usage == Usage() and row.duration_ms is None:
        return None
    return TraceSummary(
        **vars(usage),
        total_tokens=usage.total_tokens,
        cost_source="" if usage.cost_usd is None else runner.name,
        duration_ms=row.duration_ms,
    )


def _spending(usage: Usage, runner: Runner) -> Spending:
    if usage.cost_usd is not None:
        return Spending(usage.cost_usd, (runner.name,), replies=1)
    return Spending() if usage == Usage() else Spending(replies=1, unpriced_replies=1)


def _total(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return round(sum(known), 1) if known else None
