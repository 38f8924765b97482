"""What samples become: a test's result as it is stored, and an agent's work out of a stored one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action import scoring
from agentevals_action.errors import AttemptError
from agentevals_action.figures import summary_of
from agentevals_action.messages import read_message, wire_messages
from agentevals_action.model.result import ErrorInfo, EvaluatorResult, Fingerprint, GateRecord, SampleResult, TestResult, TraceSummary
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.trace import Trace, text_of


@dataclass(frozen=True)
class Work:
    """What an agent left: its trace, and where it had a workspace the folder (gone when it is graded again) and the diff."""

    trace: Trace
    folder: Path | None = None
    changes: str | None = None


@dataclass(frozen=True)
class Spent:
    """What a test took: US dollars as far as they are known (None: not at all), replies of agents and judges, how many of them came out
    of the cache and how many do not tell what they cost, milliseconds."""

    cost_usd: float | None
    replies: int
    cached_replies: int
    unpriced_replies: int
    duration_ms: float


def sample_result(work: Work, results: Sequence[EvaluatorResult]) -> SampleResult:
    """A sample that was graded."""
    trace = work.trace
    score, verdict, gates = scoring.score_sample(results)
    return SampleResult(
        score=score,
        verdict=verdict,
        gates_failed=gates,
        candidate_answer=trace.output,
        output_messages=tuple(wire_messages(trace.messages)),
        file_changes=work.changes,
        cached=trace.cached,
        trace_summary=summary_of(trace),
        evaluator_results=tuple(results),
        error=next((result.error for result in results if result.error), None),
    )


def error_result(error: AttemptError) -> SampleResult:
    """A sample that could not be told."""
    return SampleResult(error=ErrorInfo(kind=error.kind, message=error.sentence))


def test_result(suite: Suite, test: Test, samples: Sequence[SampleResult], spent: Spent, fingerprint: Fingerprint) -> TestResult:
    """One test over all its samples."""
    score, verdict, gates = scoring.combine_samples(samples)
    shown = next((sample for sample in samples if sample.verdict == verdict), samples[0])
    return TestResult(
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        eval_id=test.id,
        dataset=suite.name,
        conversation_id=test.conversation_id,
        score=score,
        verdict=verdict,
        hits=tuple(hit for result in shown.evaluator_results for hit in result.hits),
        misses=tuple(miss for result in shown.evaluator_results for miss in result.misses),
        candidate_answer=shown.candidate_answer,
        target=agent_name(suite, test) or "",
        trace_summary=shown.trace_summary,
        evaluator_results=shown.evaluator_results,
        eval_path=suite.path,
        path=test.location.path,
        line=test.location.line,
        question=_question(test),
        gates=tuple(GateRecord(name=gate.name, path=gate.location.path, line=gate.location.line) for gate in test.gates),
        gates_failed=tuple(sorted(gates, key=_place_in(test))),
        samples=tuple(samples),
        cost_usd=spent.cost_usd,
        replies=spent.replies,
        cached_replies=spent.cached_replies,
        unpriced_replies=spent.unpriced_replies,
        duration_ms=spent.duration_ms,
        error=next((sample.error for sample in samples if sample.error), None),
        fingerprint=fingerprint,
    )


def agent_name(suite: Suite, test: Test) -> str | None:
    """Name of the target that a test is put to."""
    return suite.targets.agent(test.target or suite.default_target)


def _place_in(test: Test) -> Callable[[str], int]:
    """The place of a gate among those that the test declares."""
    places = {gate.name: place for place, gate in enumerate(test.gates)}
    return lambda name: places.get(name, len(places))


def _question(test: Test) -> str:
    asked = [message for message in test.input if message.role == "user"] or list(test.input)
    return text_of(asked[-1]) if asked else ""


def stored_work(sample: SampleResult) -> Work:
    """The work that a stored sample is of, without its folder."""
    messages = tuple(read_message(data) for data in sample.output_messages)
    figures = sample.trace_summary or TraceSummary()
    known = figures.tool_call_count is not None
    trace = Trace(
        messages=messages,
        tool_calls=tuple(call for message in messages for call in message.tool_calls) if known else None,
        llm_call_count=figures.llm_call_count,
        input_tokens=figures.input_tokens,
        output_tokens=figures.output_tokens,
        cost_usd=figures.cost_usd,
        duration_ms=figures.duration_ms,
    )
    return Work(trace, changes=sample.file_changes)
