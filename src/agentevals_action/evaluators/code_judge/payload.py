"""The JSON object on the standard input of a code judge, with every wire form in use."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel

from agentevals_action.model.evaluator import Case
from agentevals_action.model.messages import Message, wire_messages
from agentevals_action.model.trace import Trace
from agentevals_action.results import trace_summary
from agentevals_action.targets.message_texts import prompt_text, reference_text

#: The keys that AgentV's `code-grader` must not get: they belong to other wire forms.
_NOT_AGENTV = ("answer", "inputFiles", "traceSummary")
_OF_MESSAGE = ("role", "content", "name")
#: The keys of a tool call in AgentV's events, by our own.
_OF_CALL = {"tool": "name", "id": "call_id", "input": "input", "output": "output"}
_camel = cache(to_camel)  # the names are the same for each judge


def judge_payload(case: Case, config: Mapping[str, Any], *, agentv: bool = False) -> dict[str, Any]:
    """The payload: the keys of the specification in camelCase, the keys of AgentV in snake_case,
    and the keys of earlier versions of AgentV; with `agentv`, without the keys that AgentV's
    contract forbids. `config` is the judge's.

    `messages` and AgentV's `trace` begin with the question, all other lists of messages have the
    answer alone. `trace` is null if the tool calls are unknown: no calls would keep every limit.

    The values of AgentV's keys fit its published schema: `@agentv/sdk` refuses others. Missing
    texts are empty, except `note`, which is null; unknown figures are null, or missing where that
    schema has no null. ValueError or OSError if a file of the test cannot be read."""
    test, trace = case.test, case.trace
    summary = trace_summary.summarize(trace)
    by_name = Counter(call.name for call in trace.made_calls or ())
    # The trace does not contain which calls failed.
    counts = {"tool_calls": by_name, "error_count": 0, **_tool_durations(trace)}
    summary_data = {**vars(summary), **counts, "tool_calls_by_name": by_name}
    if summary.llm_call_count is None:
        del summary_data["llm_call_count"]
    transcript = _transcript(case)
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
        "messages": transcript,
        "trace": _agentv_trace(case, transcript, counts),
        "expected_output": _with_objects(test.expected_output),
        "expected_outcome": test.criteria or "",
        "token_usage": _token_usage(trace),
        "cost_usd": trace.usage.cost_usd,
        "duration_ms": trace.duration_ms,
        "workspace_path": str(case.workspace) if case.workspace else None,
        "file_changes": case.file_changes,
    }
    return {key: payload[key] for key in payload if not (agentv and key in _NOT_AGENTV)}


def _tool_durations(trace: Trace) -> dict[str, Any]:
    """The durations of the calls of each tool in milliseconds; empty if none is known."""
    durations: dict[str, list[float]] = defaultdict(list)
    for call in trace.made_calls or ():
        if call.duration_ms is not None:
            durations[call.name].append(call.duration_ms)
    return {"tool_durations": durations} if durations else {}


def _transcript(case: Case) -> list[dict[str, Any]]:
    """The question and the agent's messages, which repeat the question for some agents."""
    messages = case.trace.messages
    repeats = any(message.role in ("system", "user") for message in messages)
    return wire_messages(messages if repeats else (*case.test.input, *messages))


def _agentv_trace(
    case: Case, transcript: Sequence[Mapping[str, Any]], counts: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The trace as `Trace` in AgentV 4.42 (`packages/core/src/evaluation/trace.ts`), where what is
    unknown is missing."""
    trace = case.trace
    if trace.made_calls is None:
        return None
    fields = {
        **counts,
        "event_count": len(trace.made_calls),
        "llm_call_count": trace.llm_call_count,
        "messages": transcript,
        "events": [{"ordinal": index, **event} for index, event in enumerate(_events(transcript))],
        "token_usage": _token_usage(trace),
        "cost_usd": trace.usage.cost_usd,
        "duration_ms": trace.duration_ms,
        "metadata": {"eval_case_id": case.test.id},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _events(transcript: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages, the tool calls in them and their results, and the answer."""
    answer: list[dict[str, Any]] = []
    for index, message in enumerate(transcript):
        name, where = f"message-{index}", {"metadata": {"message_index": index}}
        shown = {"message": {key: message[key] for key in _OF_MESSAGE if key in message}, **where}
        yield {"event_id": name, "type": "message", **shown}
        for position, call in enumerate(message.get("tool_calls", ())):
            inner = f"{name}-tool-{position}"
            tool = {_OF_CALL[key]: call[key] for key in _OF_CALL if key in call}
            tool["status"] = "cancelled" if "refused" in call else "ok"
            event = {"event_id": inner, "parent_event_id": name, "tool": tool, **where}
            timing = {"duration_ms": call["duration_ms"]} if "duration_ms" in call else {}
            yield {**event, "type": "tool_call", **timing}
            if "output" in call:
                ids = {"event_id": f"{inner}-result", "parent_event_id": inner}
                yield {**event, **ids, "type": "tool_result"}
        if message["role"] == "assistant":
            answer = [{"parent_event_id": name, "type": "final_response", **shown}]
    yield from ({"event_id": "final-response", **event} for event in answer)


def _with_objects(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages whose content is the object itself if it is one JSON block, as in AgentV."""
    return [
        {**wire, "content": message.blocks[0].value}
        if [block.type for block in message.blocks] == ["json"]
        else wire
        for message, wire in zip(messages, wire_messages(messages), strict=True)
    ]


def _file_paths(case: Case, messages: Sequence[Message]) -> list[str]:
    """The paths of the messages' files in the judge tree, where no agent can change them."""
    blocks = (block for message in messages for block in message.blocks)
    paths = (block.path for block in blocks if block.type == "file")
    return [str(case.judge_path(path)) for path in paths if path is not None]


def _token_usage(trace: Trace) -> dict[str, int] | None:
    """The tokens; None without the input or output tokens, which AgentV's schema requires."""
    usage = trace.usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
    return tokens if usage.cached_tokens is None else {**tokens, "cached": usage.cached_tokens}
