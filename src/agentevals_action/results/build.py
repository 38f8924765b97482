"""The results of samples and tests, built from scored attempts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.messages import Block, Message, picture, wire_message, wire_messages
from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    Fingerprint,
    GateRecord,
    SampleResult,
    TestResult,
    shown_sample,
)
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.trace import Spending, join_text, total_spending
from agentevals_action.results import scoring
from agentevals_action.results.trace_summary import Work, summarize

#: Characters of the pictures that a row keeps, together.
PICTURES = 500_000


def sample_result(work: Work, results: Sequence[EvaluatorResult], spent: Spending) -> SampleResult:
    """A sample whose evaluators ran."""
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
        trace_summary=summarize(trace),
        evaluator_results=tuple(results),
        spent=spent,
        error=scoring.find_error(results),
    )


def stand_again(sample: SampleResult, rule: JudgeRule) -> SampleResult | None:
    """A stored sample as `rule` scores it; None if that is not known."""
    results = tuple(filter(None, map(rule.stand_again, sample.evaluator_results)))
    if results == sample.evaluator_results:
        return sample
    if len(results) < len(sample.evaluator_results):
        return None
    score, verdict, gates = scoring.score_sample(results)
    return replace(
        sample,
        score=score,
        verdict=verdict,
        gates_failed=gates,
        evaluator_results=results,
        error=scoring.find_error(results),
    )


def error_result(error: AttemptError, spent: Spending) -> SampleResult:
    """A sample that could not be scored, with its cost."""
    return SampleResult(spent=spent, error=ErrorInfo(kind=error.kind, message=error.sentence))


def test_result(
    suite: Suite,
    test: Test,
    samples: Sequence[SampleResult],
    duration_ms: float | None,
    fingerprint: Fingerprint,
) -> TestResult:
    """The result of one test over all its samples."""
    return TestResult(
        timestamp=timestamp(),
        eval_id=test.id,
        dataset=suite.name,
        variant=suite.variant,
        conversation_id=test.conversation_id,
        target=suite.choose_target(test) or "",
        eval_path=suite.path,
        path=test.location.path,
        line=test.location.line,
        question=last_question(test),
        input_messages=tuple(_input_messages(test)),
        gates=tuple(
            GateRecord(name=gate.name, path=gate.location.path, line=gate.location.line)
            for gate in test.gates
        ),
        duration_ms=duration_ms,
        fingerprint=fingerprint,
        **_totals(tuple(samples), [gate.name for gate in test.gates]),
    )


def timestamp() -> str:
    """The time of a result: now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_samples(result: TestResult, samples: Sequence[SampleResult]) -> TestResult:
    """A result with the scores, verdict and other totals of these samples; itself where a lost
    shard left none."""
    totals = _totals(tuple(samples), [gate.name for gate in result.gates]) if samples else {}
    return replace(result, **totals)


def extended(result: TestResult, fresh: Sequence[SampleResult], problem: str = "") -> TestResult:
    """A result with the samples of a confirmation: score and verdict are those of all samples. A
    gate fails if it failed in more than half of the fresh samples, if they are at least three: the
    first sample was chosen because it failed. If more than half of the fresh samples failed a gate,
    but not the same gate, all these gates fail. Fresh samples that could not be scored are left
    out; `problem` is the reason why samples are missing."""
    scored = [replace(sample, role="fresh") for sample in fresh if sample.verdict]
    result = replace(result, unconfirmed=problem) if problem else result
    if not scored:
        return result
    samples = (*result.samples, *scored)
    deciding = scored if len(scored) >= scoring.MIN_MAJORITY else samples
    gates = scoring.combine_samples(deciding)[2]
    closed = [sample.gates_failed for sample in deciding if sample.gates_failed]
    if not gates and 2 * len(closed) > len(deciding):
        gates = tuple(dict.fromkeys(name for names in closed for name in names))
    totals = _totals(samples, [gate.name for gate in result.gates], gates)
    return replace(result, **totals)


def with_suite_samples(result: TestResult, taken: Sequence[SampleResult]) -> TestResult:
    """A result with the samples `taken` for a condition on its suite: they change its cost and
    nothing else."""
    spent = total_spending((result.spent, *(sample.spent for sample in taken)))
    return replace(result, suite_samples=(*result.suite_samples, *taken), spent=spent)


def without_fresh(result: TestResult) -> TestResult:
    """A result without the samples of a confirmation."""
    if not result.fresh_samples:
        return result
    return with_samples(result, result.main_samples)


def without_cost(result: TestResult) -> TestResult:
    """A result that cost nothing, so that only the cost of scoring it again is counted."""
    samples = tuple(map(cost_free, result.samples))
    return replace(result, samples=samples, spent=Spending())


def cost_free(sample: SampleResult) -> SampleResult:
    """A sample that cost nothing."""
    return replace(sample, spent=Spending())


def _totals(
    samples: tuple[SampleResult, ...], declared: Sequence[str], decided: Sequence[str] | None = None
) -> dict[str, Any]:
    """The fields of a test's result that follow from its samples; failed gates are in the order
    of `declared`. `decided` are the failed gates if fewer samples decide about gates."""
    score, verdict, gates = scoring.combine_samples(samples)
    if decided is not None and score is not None:
        verdict, gates = scoring.compute_verdict(score, decided), tuple(decided)
    deciding = scoring.deciding_samples(samples)
    shown = shown_sample(deciding, verdict)
    shown_results = [result for result in shown.evaluator_results if not result.advisory]
    order = {name: index for index, name in enumerate(declared)}
    return {
        "score": score,
        "verdict": verdict,
        "gates_failed": tuple(sorted(gates, key=lambda name: order.get(name, len(order)))),
        "hits": tuple(hit for result in shown_results for hit in result.hits),
        "misses": tuple(miss for result in shown_results for miss in result.misses),
        "candidate_answer": shown.candidate_answer,
        "trace_summary": shown.trace_summary,
        "evaluator_results": shown.evaluator_results,
        "samples": samples,
        "spent": total_spending(sample.spent for sample in samples),
        "error": next((sample.error for sample in deciding if sample.error), None),
    }


def asks_same(row: TestResult, test: Test) -> bool:
    """Whether a row answers the question that a test asks now."""
    return row.question == last_question(test) and row.input_messages == tuple(
        _input_messages(test)
    )


def _input_messages(test: Test) -> Iterator[dict[str, Any]]:
    """All messages of a test, if there are several or a picture."""
    seen = [any(block.type == "image" for block in message.blocks) for message in test.input]
    if len(test.input) < 2 and not any(seen):
        return
    left = PICTURES
    for message, has_picture in zip(test.input, seen, strict=True):
        wire = wire_message(message)
        for part, block in zip(wire["content"], message.blocks, strict=True) if has_picture else ():
            if block.type == "image":
                part["value"] = _picture(block, left)
                left -= len(part["value"])
        yield wire if has_picture else {**wire, "content": _text(message)}


def _picture(block: Block, limit: int) -> str:
    """A picture as a `data:` URI of at most `limit` characters, else its name."""
    try:
        uri = picture(block).uri
    except ValueError:
        uri = ""
    name = block.value if block.path else "a picture"
    return (
        uri
        if 0 < len(uri) <= limit
        else f"{name} (not shown: too large, or no PNG, JPEG, GIF or WebP)"
    )


def last_question(test: Test) -> str:
    """The last message of the user, for readers."""
    questions = [message for message in test.input if message.role == "user"] or list(test.input)
    return _text(questions[-1]) if questions else ""


def _text(message: Message) -> str:
    """The text of a message. Its files and images are named: they are not part of results."""
    named = [
        f"[{block.type}{f': {block.value}' if block.path else ''}]"
        for block in message.blocks
        if block.type in ("file", "image")
    ]
    return "\n".join(filter(None, [join_text(message), *named]))
