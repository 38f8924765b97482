"""The trace that the spans of one attempt show: the calls of models and of tools, by time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Trace, join_text, list_calls, total
from agentevals_action.targets.dialects.conversations import add_answer
from agentevals_action.targets.otel.conventions import Step, read_step
from agentevals_action.targets.otel.spans import Span


@dataclass(frozen=True)
class _Node:
    """A span with a meaning. `around` are the steps around it, the innermost first."""

    span: Span
    step: Step
    around: tuple[Step, ...]


def read_trace(spans: Iterable[Span]) -> Trace | None:
    """The trace of an attempt; None if no span is the call of a model or a tool, or the run of an
    agent. Figures that the spans do not contain are None; so are the tool calls if one may be
    missing."""
    nodes = _nodes({span.key: span for span in spans})
    if not nodes:
        return None
    models = [node for node in nodes if node.step.type == "model"]
    models = [node for node in models if not any(_is_seen_by(node, other) for other in models)]
    tools = [node for node in nodes if node.step.type == "tool"]
    outer = [node for node in nodes if not node.around]
    agents = [node for node in outer if node.step.type == "agent"]
    # A call that failed was not paid for, and called nothing.
    answered = [
        node
        for node in models
        if not node.span.failed or node.step.answered or node.step.usage.input_tokens is not None
    ]
    are_shown = bool(models or tools) and all(node.step.call.name for node in tools)
    are_shown = are_shown and all(node.step.answered is not None for node in answered)
    names = {node.step.model for node in models}
    messages = _messages(models, tools)
    usage = total(node.step.usage for node in answered or agents)
    return Trace(
        messages=messages,
        tool_calls=list_calls(messages) if are_shown else None,
        llm_call_count=len(models) or None,
        usage=usage,
        cost_source="" if usage.cost_usd is None else "OpenTelemetry spans",
        model=names.pop() if len(names) == 1 else None,  # of several models, no one's price fits
        # The time of the process would contain its start.
        duration_ms=agents[0].span.duration_ms if agents == outer and len(outer) == 1 else None,
    )


def add_trace(reply: Trace, spans: Iterable[Span]) -> Trace:
    """The trace of a reply, completed by its spans. The reply has the answer, and takes precedence
    in tokens, cost and duration; the calls are those of the spans.

    AttemptError of kind `target` if the spans have no meaning: an agent whose spans are lost would
    count as one that called nothing."""
    trace = read_trace(spans)
    if trace is None:
        problem = "no OpenTelemetry span of a model, tool or agent was received from the agent"
        advice = (
            "check that the agent is instrumented and exports its spans to "
            "OTEL_EXPORTER_OTLP_ENDPOINT, with OTEL_EXPORTER_OTLP_HEADERS, before it ends, or "
            "remove `trace: otel`"
        )
        lost = AttemptError("target", problem, advice)
        lost.spent = reply
        raise lost
    return replace(
        reply,
        messages=add_answer(trace.messages, reply.output),
        tool_calls=trace.tool_calls,
        llm_call_count=trace.llm_call_count,
        usage=reply.usage.or_else(trace.usage),
        model=reply.model or trace.model,
        duration_ms=trace.duration_ms if reply.duration_ms is None else reply.duration_ms,
        cost_source=trace.cost_source if reply.usage.cost_usd is None else reply.cost_source,
    )


def incomplete(problem: str) -> AttemptError:
    """The error for spans that are missing or not valid."""
    return AttemptError(
        "target",
        f"the OpenTelemetry trace of the agent is not complete: {problem}",
        "export fewer or smaller spans, or remove `trace`",
    )


def _nodes(spans: dict[tuple[str, str], Span]) -> list[_Node]:
    """The spans with a meaning, by time. If a framework and a client both have a span for a call,
    the innermost counts."""
    steps = {key: step for key, span in spans.items() if (step := read_step(span))}
    nodes: list[_Node] = []
    outer: set[tuple[str, str]] = set()
    for key, step in steps.items():
        around: dict[tuple[str, str], Step | None] = {}
        parent = (key[0], spans[key].parent_id)
        while parent in spans and parent not in around:  # a span may be in itself
            around[parent] = steps.get(parent)
            parent = (key[0], spans[parent].parent_id)
        nearest = next((parent for parent, outer_step in around.items() if outer_step), None)
        if nearest is not None and _is_same_call(steps[nearest], step):
            outer.add(nearest)
        nodes.append(_Node(spans[key], step, tuple(filter(None, around.values()))))
    nodes = [node for node in nodes if node.span.key not in outer]
    return sorted(nodes, key=lambda node: node.span.start)


def _is_same_call(outer: Step, inner: Step) -> bool:
    return outer.type == inner.type != "agent" and outer.call.name == inner.call.name


def _is_seen_by(client: _Node, framework: _Node) -> bool:
    """Whether a client's span that is not connected to a framework's is of the same call: another
    library saw the same answer around its time."""
    own, other = client.span, framework.span
    is_inside = other.start <= own.start and own.end <= other.end
    is_apart = not own.parent_id and own.scope != other.scope
    answer = client.step.answered
    return is_apart and is_inside and bool(answer) and answer == framework.step.answered


def _messages(models: Sequence[_Node], tools: Sequence[_Node]) -> tuple[Message, ...]:
    """The messages of the agent in the order of time, with the results of the tools. The call of
    a tool that no message asks for is a message of its own."""
    results = {
        message.tool_call_id: join_text(message)
        for node in reversed(models)
        for message in node.step.received
        if message.role == "tool" and message.tool_call_id
    }
    unmatched = list(tools)
    replies: list[tuple[int, Message]] = []
    for node in models:
        for message in node.step.answered or ():
            if message.role == "assistant":
                calls = [_complete(call, unmatched, results) for call in message.tool_calls]
                replies.append((node.span.end, replace(message, tool_calls=tuple(calls))))
    for node in unmatched:
        call = replace(node.step.call, duration_ms=node.span.duration_ms)
        replies.append((node.span.start, Message("assistant", "", tool_calls=(call,))))
    return tuple(message for _, message in sorted(replies, key=lambda reply: reply[0]))


def _complete(call: ToolCall, tools: list[_Node], results: dict[str, str]) -> ToolCall:
    """The call that a model asks for with the result and duration of the tool, whose span is taken
    out of `tools`: that with its id, else with its arguments, else the first of the name."""
    output = results.get(call.id or "")
    named = [node for node in tools if node.step.call.name == call.name]
    if not named:
        return replace(call, output=output)

    def difference(node: _Node) -> tuple[bool, bool]:
        tool = node.step.call
        return not call.id or call.id != tool.id, call.arguments != tool.arguments

    node = min(named, key=difference)
    tools.remove(node)
    if node.step.call.output is not None:
        output = node.step.call.output
    return replace(call, output=output, duration_ms=node.span.duration_ms)
