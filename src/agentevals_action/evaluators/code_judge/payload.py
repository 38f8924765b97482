"""The JSON object on the standard input of a code judge, with every wire form in use."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from agentevals_action.evaluators.base import Case
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.suite import Evaluator, Message
from agentevals_action.model.trace import Trace
from agentevals_action.results import trace_summary
from agentevals_action.targets.message_texts import prompt_text, reference_text


def judge_payload(case: Case, evaluator: Evaluator) -> dict[str, Any]:
    """The payload: the keys of the specification in camelCase, those of AgentV in snake_case, and
    those of its earlier versions.

    Missing texts are empty, except `criteria` and `note`, which are null; unknown figures are null.
    ValueError or OSError if a file of the test cannot be read."""
    test, trace = case.test, case.trace
    summary = trace_summary.summary_of(trace)
    by_name = Counter(call.name for call in trace.tool_calls or ())
    in_both_cases = {
        "question": prompt_text(test.input),
        "criteria": test.criteria,
        "expected_messages": wire_messages(test.expected_output),
        "reference_answer": reference_text(test.expected_output),
        "candidate_answer": trace.output,
        "output_messages": wire_messages(trace.messages),
        "guideline_files": _file_paths([one for one in test.input if one.role == "system"]),
        "input_files": _file_paths([one for one in test.input if one.role != "system"]),
        "input_messages": wire_messages(test.input),
    }
    return {
        **{to_camel(name): value for name, value in in_both_cases.items()},
        **in_both_cases,
        "traceSummary": {**to_jsonable_python(summary), "toolCallsByName": by_name},
        "trace_summary": {**asdict(summary), "tool_calls_by_name": by_name},
        "config": evaluator.config,
        "metadata": test.metadata,
        "note": test.note,
        "input": in_both_cases["input_messages"],
        "output": trace.output,
        "answer": trace.output,
        "messages": in_both_cases["output_messages"],
        "expected_output": in_both_cases["expected_messages"],
        "expected_outcome": test.criteria,
        "token_usage": _token_usage(trace),
        "cost_usd": trace.cost_usd,
        "duration_ms": trace.duration_ms,
        "workspace_path": str(case.workspace) if case.workspace else None,
        "file_changes": case.file_changes,
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
