"""The trace that the spans of one attempt show: the calls of models and of tools, by time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.model.usage import total
from agentevals_action.targets.agents.events import add_answer, calls_of
from agentevals_action.targets.otel.conventions import Step, StepType, read_step
from agentevals_action.targets.otel.spans import MAX_SPANS, Span


@dataclass(eq=False)
class _Node:
    """A span with a meaning. `parent` is the nearest one around it that has a meaning, too."""

    span: Span
    step: Step
    parent: "_Node | None"
    #: Whether another call of a model, or the same call of a tool, is in it.
    is_outer: bool = False


@dataclass(eq=False)
class _Place:
    """A tool call of a message, which the span of the tool completes."""

    call: ToolCall


def read_trace(spans: Iterable[Span]) -> Trace | None:
    """The trace of an attempt; None if no span is the call of a model or a tool, or the run of an
    agent. Figures that the spans do not contain are None; so are the tool calls if one may be
    missing. ValueError for spans that are not a tree, and for more than `MAX_SPANS`."""
    nodes = _tree({span.key: span for span in spans})
    if not nodes:
        return None
    models = _without_twins(_calls(nodes, "model"))
    tools = _calls(nodes, "tool")
    # A call that failed was not paid for, and called nothing.
    answered = [
        node
        for node in models
        if not node.span.failed or node.step.output or node.step.usage.input_tokens is not None
    ]
    are_shown = all(node.step.output is not None for node in answered)
    are_shown = are_shown and all(node.step.tool for node in tools) and bool(models or tools)
    outer = [node for node in nodes if node.parent is None]
    agents = [node for node in outer if node.step.type == "agent"]
    figures = [node.step for node in answered or agents]
    names = {node.step.model for node in models}
    messages = _messages(models, tools)
    usage = total(step.usage for step in figures)
    return Trace(
        messages=messages,
        tool_calls=calls_of(messages) if are_shown else None,
        llm_call_count=len(models) or None,
        usage=usage,
        cost_source="" if usage.cost_usd is None else "OpenTelemetry spans",
        model=names.pop() if len(names) == 1 else None,  # of several models, no one's price fits
        # The time of the process would contain its start.
        duration_ms=agents[0].span.duration_ms if agents == outer and len(outer) == 1 else None,
    )


def add_trace(reply: Trace, spans: Iterable[Span], advice: str) -> Trace:
    """The trace of a reply with that of its spans. The reply has the answer, and takes precedence
    in tokens, cost and duration; the calls are those of the spans.

    AttemptError of kind `target` if the spans have no meaning, with `advice`, or are not valid: an
    agent whose spans are lost would count as one that called nothing."""
    try:
        trace = read_trace(spans)
    except ValueError as error:
        raise incomplete(str(error)) from None
    if trace is None:
        problem = "no OpenTelemetry span of a model, tool or agent was received from the agent"
        lost = AttemptError("target", problem, f"{advice}, or remove `trace: otel`")
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


def _tree(spans: dict[tuple[str, str], Span]) -> list[_Node]:
    """The spans with a meaning, by time. Spans around them without one (a chain, an HTTP request)
    are skipped."""
    if len(spans) > MAX_SPANS:
        raise ValueError(f"there are more than {MAX_SPANS} spans")
    inner: dict[tuple[str, str] | None, list[Span]] = defaultdict(list)
    for span in spans.values():
        around = (span.trace_id, span.parent_id)
        inner[around if around in spans else None].append(span)
    nodes: list[_Node] = []
    waiting: list[tuple[Span, _Node | None]] = [(span, None) for span in inner[None]]
    for span, parent in waiting:  # it grows
        if (step := read_step(span)) is not None:
            if parent is not None and _is_same_call(parent.step, step):
                parent.is_outer = True
            parent = _Node(span, step, parent)
            nodes.append(parent)
        waiting += [(one, parent) for one in inner[span.key]]
    if len(waiting) < len(spans):
        raise ValueError("a span is in itself")
    return sorted(nodes, key=lambda node: node.span.start)


def _is_same_call(outer: Step, inner: Step) -> bool:
    """Whether a framework's span and that of a client in it are of one call."""
    return outer.type == inner.type != "agent" and outer.tool == inner.tool


def _calls(nodes: Sequence[_Node], step_type: StepType) -> list[_Node]:
    """The innermost spans of the calls."""
    return [node for node in nodes if node.step.type == step_type and not node.is_outer]


def _without_twins(models: Sequence[_Node]) -> list[_Node]:
    """The calls without those of a client whose spans are not connected to a framework's: another
    library saw the same answer around the time of such a span."""
    by_answer: dict[str, list[_Node]] = defaultdict(list)
    calls = []
    for node in models:
        span, others = node.span, by_answer[repr(node.step.output)]
        twin = next(
            (
                other
                for other in others
                if not span.parent_id
                and other.span.scope != span.scope
                and other.span.start <= span.start <= span.end <= other.span.end
            ),
            None,
        )
        if twin is None or not node.step.output:
            others.append(node)
            calls.append(node)
        else:
            others.remove(twin)  # it has one twin
    return calls


def _messages(models: Sequence[_Node], tools: Sequence[_Node]) -> tuple[Message, ...]:
    """The messages of the agent in the order of time, with the results of the tools. The call of
    a tool that no message asks for is a message of its own."""
    results = {
        message.tool_call_id: text_of(message)
        for node in reversed(models)
        for message in node.step.input or ()
        if message.role == "tool" and message.tool_call_id
    }
    replies = [
        (node.span.end, message, [_Place(call) for call in message.tool_calls])
        for node in models
        for message in node.step.output or ()
        if message.role == "assistant"
    ]
    waiting: dict[str, list[_Place]] = defaultdict(list)
    for place in (place for *_, places in replies for place in places):
        waiting[place.call.name].append(place)
        if place.call.id in results:
            place.call = replace(place.call, output=results[place.call.id])
    for node in tools:
        step, asked = node.step, waiting[node.step.tool]
        if asked:
            place = min(asked, key=lambda place: _difference(place.call, step))  # now
            asked.remove(place)
        else:
            place = _Place(ToolCall(step.tool, step.arguments, id=step.call_id))
            replies.append((node.span.start, Message("assistant", ""), [place]))
        output = place.call.output if step.result is None else step.result
        place.call = replace(place.call, output=output, duration_ms=node.span.duration_ms)
    return tuple(
        replace(message, tool_calls=tuple(place.call for place in places))
        for _, message, places in sorted(replies, key=lambda reply: reply[0])
    )


def _difference(call: ToolCall, step: Step) -> tuple[bool, bool]:
    """How far a call that a model asks for is from that of a tool: by id, then by arguments."""
    return call.id is None or call.id != step.call_id, call.arguments != step.arguments
