"""The JSON object on the standard input of a code judge, with every wire form in use."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel

from agentevals_action.model.messages import Message, wire_messages
from agentevals_action.model.suite import Case
from agentevals_action.model.trace import Trace
from agentevals_action.results import trace_summary
from agentevals_action.targets.message_texts import prompt_text, reference_text

#: The keys that AgentV's `code-grader` must not get: they belong to other wire forms.
_NOT_AGENTV = ("answer", "inputFiles", "traceSummary")
_camel = cache(to_camel)  # the names are the same for each judge


def judge_payload(case: Case, config: Mapping[str, Any], *, agentv: bool = False) -> dict[str, Any]:
    """The payload: the keys of the specification in camelCase, those of AgentV in snake_case, and
    those of its earlier versions; with `agentv`, without the keys that its contract forbids.
    `config` is the judge's.

    The values of AgentV's keys fit its published schema: `@agentv/sdk` refuses others. Missing
    texts are empty, except `note`, which is null; unknown figures are null, or missing where that
    schema has no null. ValueError or OSError if a file of the test cannot be read."""
    test, trace = case.test, case.trace
    summary = trace_summary.summary_of(trace)
    by_name = Counter(call.name for call in trace.made_calls or ())
    # The trace does not contain which calls failed.
    counts = {"tool_calls": by_name, "tool_calls_by_name": by_name, "error_count": 0}
    summary_data = {**vars(summary), **counts}
    if summary.llm_call_count is None:
        del summary_data["llm_call_count"]
    in_both_cases = {
        "question": prompt_text(test.input),
        "criteria": test.criteria or "",
        "expected_messages": wire_messages(test.expected_output),
        "reference_answer": reference_text(test.expected_output),
        "candidate_answer": trace.output,
        "output_messages": wire_messages(trace.messages),
        "guideline_files": _file_paths(
            case, [message for message in test.input if message.role == "system"]
        ),
        "input_files": _file_paths(
            case, [message for message in test.input if message.role != "system"]
        ),
        "input_messages": wire_messages(test.input),
    }
    payload = {
        **{_camel(name): value for name, value in in_both_cases.items()},
        **in_both_cases,
        "traceSummary": {_camel(name): value for name, value in summary_data.items()},
        "trace_summary": summary_data,
        "config": config,
        "metadata": test.metadata,
        "note": test.note,
        "input": _with_objects(test.input),
        "output": trace.output,
        "answer": trace.output,
        "messages": in_both_cases["output_messages"],
        "expected_output": _with_objects(test.expected_output),
        "expected_outcome": test.criteria or "",
        "token_usage": _token_usage(trace),
        "cost_usd": trace.usage.cost_usd,
        "duration_ms": trace.duration_ms,
        "workspace_path": str(case.workspace) if case.workspace else None,
        "file_changes": case.file_changes,
    }
    return {key: payload[key] for key in payload if not (agentv and key in _NOT_AGENTV)}


def _with_objects(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages whose content is the object itself if it is one JSON block, as in AgentV."""
    return [
        {**wire, "content": message.blocks[0].value}
        if [block.type for block in message.blocks] == ["json"]
        else wire
        for message, wire in zip(messages, wire_messages(messages), strict=True)
    ]


def _file_paths(case: Case, messages: Sequence[Message]) -> list[str]:
    """The files as the judge reads them: no agent can have changed them."""
    blocks = (block for message in messages for block in message.blocks)
    paths = (block.path for block in blocks if block.type == "file")
    return [str(case.judge_path(path)) for path in paths if path is not None]


def _token_usage(trace: Trace) -> dict[str, int] | None:
    """The tokens; None if those read or written are unknown, which AgentV's schema requires."""
    usage = trace.usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
    return tokens if usage.cached_tokens is None else {**tokens, "cached": usage.cached_tokens}
