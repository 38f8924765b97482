"""The JSON object on the standard input of a code judge, with every wire form in use."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action.evaluators.base import Case
from agentevals_action.model.messages import prompt_text, reference_text, wire_messages
from agentevals_action.model.suite import Evaluator, Message
from agentevals_action.model.trace import Trace
from agentevals_action.results import trace_summary


def judge_payload(case: Case, evaluator: Evaluator) -> dict[str, Any]:
    """The payload: the keys of the specification in camelCase, those of AgentV in snake_case, and
    those of its earlier versions.

    Missing texts are empty, except `criteria` and `note`, which are null; unknown figures are null.
    ValueError or OSError if a file of the test cannot be read."""
    test, trace = case.test, case.trace
    reference, answer = reference_text(test.expected_output), trace.output
    input_messages = wire_messages(test.input)
    expected_messages = wire_messages(test.expected_output)
    output_messages = wire_messages(trace.messages)
    guidelines = _file_paths([message for message in test.input if message.role == "system"])
    inputs = _file_paths([message for message in test.input if message.role != "system"])
    summary = trace_summary.summary_of(trace)
    by_name = Counter(call.name for call in trace.tool_calls or ())
    return {
        "question": prompt_text(test.input),
        "criteria": test.criteria,
        "expectedMessages": expected_messages,
        "referenceAnswer": reference,
        "candidateAnswer": answer,
        "outputMessages": output_messages,
        "guidelineFiles": guidelines,
        "inputFiles": inputs,
        "inputMessages": input_messages,
        "traceSummary": {**to_jsonable_python(summary), "toolCallsByName": by_name},
        "config": evaluator.config,
        "metadata": test.metadata,
        "note": test.note,
        "input": input_messages,
        "output": answer,
        "messages": output_messages,
        "expected_output": expected_messages,
        "input_files": inputs,
        "trace_summary": {**asdict(summary), "tool_calls_by_name": by_name},
        "token_usage": _token_usage(trace),
        "cost_usd": trace.cost_usd,
        "duration_ms": trace.duration_ms,
        "workspace_path": str(case.workspace) if case.workspace else None,
        "file_changes": case.file_changes,
        "answer": answer,
        "candidate_answer": answer,
        "reference_answer": reference,
        "expected_messages": expected_messages,
        "input_messages": input_messages,
        "output_messages": output_messages,
        "expected_outcome": test.criteria,
        "guideline_files": guidelines,
    }


def _file_paths(messages: Sequence[Message]) -> list[str]:
    blocks = (
        block
        for message in messages
        if not isinstance(message.content, str)
        for block in message.content
    )
    return [str(block.path) for block in blocks if block.type == "file" and block.path is not None]


def _token_usage(trace: Trace) -> dict[str, int | None] | None:
    usage = {
        "input": trace.input_tokens,
        "output": trace.output_tokens,
        "cached": trace.cached_tokens,
    }
    return None if all(count is None for count in usage.values()) else usage
