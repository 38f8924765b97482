"""What samples become: a test's result as it is stored, and an agent's work out of a stored one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import read_message, wire_messages
from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    Fingerprint,
    GateRecord,
    SampleResult,
    TestResult,
    TraceSummary,
)
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.results import scoring
from agentevals_action.results.trace_summary import summary_of


@dataclass(frozen=True)
class Work:
    """What an agent left: its trace, and where it had a workspace the folder (gone when it is
    graded again) and the diff."""

    trace: Trace
    folder: Path | None = None
    changes: str | None = None


@dataclass
class Tally:
    """What the replies of one sample cost, as they come: US dollars as far as they are known (None:
    not at all), and how many there were, came out of the cache, and do not tell what they cost."""

    cost_usd: float | None = None
    replies: int = 0
    cached_replies: int = 0
    unpriced_replies: int = 0

    def add(self, reply: Trace) -> Trace:
        """The same reply, with what it cost put down; a stored one costs nothing."""
        self.replies += 1
        if reply.cached:
            self.cached_replies += 1
            self.cost_usd = self.cost_usd or 0.0
        elif reply.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost_usd
        else:
            self.unpriced_replies += 1
        return reply

    @classmethod
    def of(cls, sample: SampleResult) -> "Tally":
        """What a stored sample cost."""
        return cls(sample.cost_usd, sample.replies, sample.cached_replies, sample.unpriced_replies)


def _spent(tally: Tally) -> dict[str, Any]:
    return {
        "cost_usd": tally.cost_usd,
        "replies": tally.replies,
        "cached_replies": tally.cached_replies,
        "unpriced_replies": tally.unpriced_replies,
    }


def sample_result(work: Work, results: Sequence[EvaluatorResult], tally: Tally) -> SampleResult:
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
        **_spent(tally),
        error=next((result.error for result in results if result.error), None),
    )


def extended(result: TestResult, fresh: Sequence[SampleResult]) -> TestResult:
    """A result with samples that were taken to confirm a suspicion: score, verdict and gates are
    those of all of them together. Fresh samples that could not be told are left out: they say
    nothing of the test."""
    told = [sample for sample in fresh if sample.verdict]
    if not told:
        return result
    over = _over((*result.samples, *told), [gate.name for gate in result.gates])
    return replace(result, **over, confirming=result.confirming + len(told))


def error_result(error: AttemptError, tally: Tally) -> SampleResult:
    """A sample that could not be told; what was paid for it is paid."""
    return SampleResult(**_spent(tally), error=ErrorInfo(kind=error.kind, message=error.sentence))


def test_result(
    suite: Suite,
    test: Test,
    samples: Sequence[SampleResult],
    duration_ms: float,
    fingerprint: Fingerprint,
) -> TestResult:
    """One test over all its samples."""
    return TestResult(
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        eval_id=test.id,
        dataset=suite.name,
        conversation_id=test.conversation_id,
        target=agent_name(suite, test) or "",
        eval_path=suite.path,
        path=test.location.path,
        line=test.location.line,
        question=_question(test),
        gates=tuple(
            GateRecord(name=gate.name, path=gate.location.path, line=gate.location.line)
            for gate in test.gates
        ),
        duration_ms=duration_ms,
        fingerprint=fingerprint,
        **_over(tuple(samples), [gate.name for gate in test.gates]),
    )


def _over(samples: tuple[SampleResult, ...], declared: Sequence[str]) -> dict[str, Any]:
    """What a test's result says by its samples: failed gates in the order of their declaration,
    what it is shown by, what all cost."""
    score, verdict, gates = scoring.combine_samples(samples)
    shown = next((sample for sample in samples if sample.verdict == verdict), samples[0])
    order = {name: place for place, name in enumerate(declared)}
    costs = [sample.cost_usd for sample in samples if sample.cost_usd is not None]
    return {
        "score": score,
        "verdict": verdict,
        "gates_failed": tuple(sorted(gates, key=lambda name: order.get(name, len(order)))),
        "hits": tuple(hit for result in shown.evaluator_results for hit in result.hits),
        "misses": tuple(miss for result in shown.evaluator_results for miss in result.misses),
        "candidate_answer": shown.candidate_answer,
        "trace_summary": shown.trace_summary,
        "evaluator_results": shown.evaluator_results,
        "samples": samples,
        "cost_usd": sum(costs) if costs else None,
        "replies": sum(sample.replies for sample in samples),
        "cached_replies": sum(sample.cached_replies for sample in samples),
        "unpriced_replies": sum(sample.unpriced_replies for sample in samples),
        "error": next((sample.error for sample in samples if sample.error), None),
    }


def agent_name(suite: Suite, test: Test) -> str | None:
    """Name of the target that a test is put to."""
    return suite.targets.agent(test.target or suite.default_target)


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
        tool_calls=tuple(call for message in messages for call in message.tool_calls)
        if known
        else None,
        llm_call_count=figures.llm_call_count,
        input_tokens=figures.input_tokens,
        output_tokens=figures.output_tokens,
        cost_usd=figures.cost_usd,
        duration_ms=figures.duration_ms,
    )
    return Work(trace, changes=sample.file_changes)
