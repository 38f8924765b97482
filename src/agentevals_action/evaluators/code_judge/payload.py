"""What a code judge reads on standard input: one object with every wire form in use."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action.evaluators.base import Case
from agentevals_action.model.messages import content_text, prompt_text, wire_messages
from agentevals_action.model.suite import Evaluator, Message, Test
from agentevals_action.model.trace import Trace
from agentevals_action.results import trace_summary


def judge_payload(case: Case, evaluator: Evaluator) -> dict[str, Any]:
    """The payload: today's keys in camelCase, AgentV's in snake_case, and those of its earlier
    versions.

    Texts that the test lacks are empty, or null for `criteria` and `note`; what a trace cannot know
    is null. ValueError or OSError when a file of the test cannot be read."""
    test, trace = case.test, case.trace
    texts = {
        "question": question_text(test),
        "reference": reference_text(test),
        "answer": trace.output,
    }
    lists = {
        "input": wire_messages(test.input),
        "expected": wire_messages(test.expected_output),
        "output": wire_messages(trace.messages),
    }
    guidelines = _file_paths([message for message in test.input if message.role == "system"])
    inputs = _file_paths([message for message in test.input if message.role != "system"])
    summary = trace_summary.summary_of(trace)
    by_name = Counter(call.name for call in trace.tool_calls or ())
    return {
        "question": texts["question"],
        "criteria": test.criteria,
        "expectedMessages": lists["expected"],
        "referenceAnswer": texts["reference"],
        "candidateAnswer": texts["answer"],
        "outputMessages": lists["output"],
        "guidelineFiles": guidelines,
        "inputFiles": inputs,
        "inputMessages": lists["input"],
        "traceSummary": {**to_jsonable_python(summary), "toolCallsByName": by_name},
        "config": evaluator.config,
        "metadata": test.metadata,
        "note": test.note,
        "input": lists["input"],
        "output": texts["answer"],
        "messages": lists["output"],
        "expected_output": lists["expected"],
        "input_files": inputs,
        "trace_summary": {**asdict(summary), "tool_calls_by_name": by_name},
        "token_usage": _token_usage(trace),
        "cost_usd": trace.cost_usd,
        "duration_ms": trace.duration_ms,
        "workspace_path": str(case.workspace) if case.workspace else None,
        "file_changes": case.file_changes,
        "answer": texts["answer"],
        "candidate_answer": texts["answer"],
        "reference_answer": texts["reference"],
        "expected_messages": lists["expected"],
        "input_messages": lists["input"],
        "output_messages": lists["output"],
        "expected_outcome": test.criteria,
        "guideline_files": guidelines,
    }


def question_text(test: Test) -> str:
    """The test's input as text; ValueError or OSError when a file in it cannot be read."""
    return prompt_text(test.input)


def reference_text(test: Test) -> str:
    """The text of the expected answer: that of the last assistant message, else of the last one;
    empty when nothing is expected."""
    messages = [message for message in test.expected_output if message.role == "assistant"] or list(
        test.expected_output
    )
    return content_text(messages[-1]) if messages else ""


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
