"""The trace that the spans of one attempt show."""

import json
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile
from typing import Any, TypeVar

from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.targets.agents.stream import add_answer, calls_of
from agentevals_action.targets.otel.conventions import read_step
from agentevals_action.targets.otel.conventions.base import SpanMeaning
from agentevals_action.targets.otel.otlp.spans import Span

Number = TypeVar("Number", int, float)

#: The name of a sub-agent's messages, as in the streams of command-line agents.
_SUBAGENT = "subagent"
_MILLISECOND = 1_000_000  # in nanoseconds
#: Attributes that name the vendor of a model, and what the names of Google's have in them.
_PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_GOOGLE = ("gemini", "google", "vertex", "gcp")
_COMPLETED = frozenset({"completed", "complete"})
#: Figures that a reply may report itself.
_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cost_usd",
    "duration_ms",
    "model",
)
#: Calls with the same answer in which a call is searched: a trace of nothing else would take long.
_RECENT = 100


@dataclass(eq=False)
class _Node:
    """A span with a meaning. `parent` is the nearest one around it that has a meaning, too, and
    `outer_tool` the nearest one that is a tool: of a sub-agent, the tool that it is."""

    span: Span
    step: SpanMeaning
    parent: "_Node | None" = None
    model_children: int = 0
    outer_tool: "_Node | None" = None
    in_agent: bool = False


@dataclass(eq=False)
class _Reply:
    """A message of an agent with its tool calls, its span, and the time of it in nanoseconds."""

    node: _Node
    time: int
    message: Message
    calls: list[ToolCall]


def read_trace(spans: Iterable[Span]) -> Trace | None:
    """The trace of an attempt; None if no span is the call of a model or a tool, or the run of an
    agent. Figures that the spans do not contain are None."""
    spans = sorted(spans, key=lambda span: (span.start, -span.end))
    nodes = _tree(spans)
    if not nodes:
        return None
    models = _fill_outputs(_model_calls(nodes))
    tools = _tool_calls(nodes)
    replies = _replies(models)
    waiting = _Waiting(replies)
    askers = [(tool, waiting.complete(tool)) for tool in tools]
    own = [_own_reply(tool) for tool, asker in askers if asker is None and tool.step.tool]
    messages = _messages(models, [*replies, *own])
    unasked = [tool for tool, asker in askers if asker is None or not _shows_calls(asker.node)]
    is_known = _show_all_calls(models, unasked) if tools else all(map(_shows_calls, models))
    # A call without a name may be one that must not be made.
    is_known = is_known and all(asker or tool.step.tool for tool, asker in askers)
    figures = _Figures(models, nodes)
    cost = figures.total(lambda step: step.cost_usd)
    names = {node.step.model for node in models}
    return Trace(
        messages=messages,
        tool_calls=calls_of(messages) if is_known and (models or tools) else None,
        llm_call_count=len(models) or None,
        input_tokens=figures.total(lambda step: step.input_tokens),
        output_tokens=figures.total(lambda step: step.output_tokens),
        cached_tokens=figures.total(lambda step: step.cached_tokens, partial=True),
        cache_write_tokens=figures.total(lambda step: step.cache_write_tokens, partial=True),
        cost_usd=cost,
        cost_source="" if cost is None else "OpenTelemetry spans",
        model=names.pop() if len(names) == 1 else None,  # of several models, no one's price fits
        duration_ms=_duration(spans, nodes),
    )


class _Figures:
    """Sums over the calls of models; where these lack a figure, over the outermost agents, whose
    figures include those of their calls."""

    def __init__(self, models: Sequence[_Node], nodes: Sequence[_Node]) -> None:
        # A call that failed was not paid for.
        models = [
            node
            for node in models
            if not node.span.failed
            or (node.step.input_tokens, node.step.output_tokens) != (None, None)
        ]
        agents = [node for node in nodes if node.step.type == "agent" and not node.in_agent]
        self._sources = [[node.step for node in source] for source in (models, agents)]

    def total(
        self, figure: Callable[[SpanMeaning], Number | None], *, partial: bool = False
    ) -> Number | None:
        """The sum of a figure; None if one is missing, or with `partial` if all are."""
        for steps in self._sources:
            known = [value for step in steps if (value := figure(step)) is not None]
            if known and (partial or len(known) == len(steps)):
                return sum(known)
        return None


def add_trace(reply: Trace, trace: Trace) -> Trace:
    """The trace of a reply with that of its spans. The reply has the answer, and takes precedence
    in tokens, cost and duration; the calls are those of the spans."""
    return replace(
        reply,
        messages=add_answer(trace.messages, reply.output),
        tool_calls=trace.tool_calls,
        llm_call_count=trace.llm_call_count,
        **{name: getattr(trace, name) for name in _FIGURES if getattr(reply, name) is None},
        cost_source=trace.cost_source if reply.cost_usd is None else reply.cost_source,
    )


def without_trace(reply: Trace, advice: str) -> Trace:
    """The trace of a reply for which no span with a meaning was received; `advice` is what to
    check. The calls are unknown: an envelope without calls would count as an agent that called
    nothing."""
    missing = (
        "no OpenTelemetry span of a model, tool or agent was received from the agent, so that its "
        f"trace could not be scored; {advice}, or remove `trace: otel`"
    )
    return replace(reply, tool_calls=None, llm_call_count=None, missing=missing)


def _tree(spans: Sequence[Span]) -> list[_Node]:
    """The spans with a meaning, outer ones first. Spans around them without one (a chain, an HTTP
    request) are skipped."""
    nodes = {span.key: _Node(span, step) for span in spans if (step := read_step(span)).type}
    parents = {span.key: (span.trace_id, span.parent_id) for span in spans}
    #: Of spans without a meaning: the key of the nearest node around them, if there is one.
    owners: dict[tuple[str, str], tuple[str, str] | None] = {}
    for node in nodes.values():
        key, path = parents[node.span.key], []
        while key in parents and key not in nodes and key not in owners:
            owners[key] = None  # ends a circle of spans
            path.append(key)
            key = parents[key]
        owner = key if key in nodes else owners.get(key)
        owners |= dict.fromkeys(path, owner)
        if owner is not None:
            node.parent = parent = nodes[owner]
            node.outer_tool = parent if parent.step.type == "tool" else parent.outer_tool
            node.in_agent = parent.in_agent or parent.step.type == "agent"
            parent.model_children += node.step.type == "model"
    return list(nodes.values())


def _model_calls(nodes: Sequence[_Node]) -> list[_Node]:
    """The calls of models. Two libraries that instrument the same call (a framework and the
    vendor's client) give two spans, one in the other: they count once, and complete each other."""
    calls = []
    for node in nodes:
        if node.step.type != "model" or node.model_children:
            continue
        step, around = node.step, node.parent
        while around and around.step.type == "model" and around.model_children == 1:
            step, around = step.filled(around.step), around.parent
        calls.append(replace(node, step=step))
    return _merge_twins(calls)


def _merge_twins(calls: Sequence[_Node]) -> list[_Node]:
    """The calls, without those that a second library saw within the time of the first one, and
    with the same answer: some libraries do not connect their spans to those around them."""
    merged: list[_Node] = []
    by_answer: dict[str, list[_Node]] = {}
    for call in calls:
        step, span = call.step, call.span
        answer = repr((step.output, step.input_tokens, step.output_tokens))
        alike = by_answer.setdefault(answer, [])
        twin = next(
            (
                one
                for one in islice(reversed(alike), _RECENT)
                if one.span.scope != span.scope and span.end <= one.span.end
            ),
            None,
        )
        if twin is None or not step.output:
            alike.append(call)
            merged.append(call)
        else:
            alike.remove(twin)
            twin.step = twin.step.filled(step)
    return merged


def _tool_calls(nodes: Sequence[_Node]) -> list[_Node]:
    """The calls of tools, also those without a name. A span of the same tool in another one is the
    same call, such as that of an MCP client."""
    outer: dict[tuple[str, str], _Node] = {}
    calls: dict[tuple[str, str], _Node] = {}
    for node in nodes:
        if node.step.type != "tool":
            continue
        first = outer.get(node.parent.span.key) if node.parent else None
        if first is not None and first.step.tool == node.step.tool is not None:
            first.step = first.step.filled(node.step)
        else:
            first = calls[node.span.key] = replace(node)
        outer[node.span.key] = first
    return list(calls.values())


def _fill_outputs(models: Sequence[_Node]) -> list[_Node]:
    """The calls, with the answers that only the next call's input contains."""
    filled = list(models)
    for index, (node, later) in enumerate(pairwise(models)):
        before, after = node.step.input, later.step.input
        if node.step.output is None and before and after and after[: len(before)] == before:
            answers = takewhile(lambda each: each.role == "assistant", after[len(before) :])
            filled[index] = replace(node, step=replace(node.step, output=tuple(answers) or None))
    return filled


def _shows_calls(node: _Node) -> bool:
    """Whether a call of a model shows the tools that it asks for; not if its content is left
    out, or was over the limits of the exporter."""
    output, finish = node.step.output or (), node.step.finish or ()
    if node.span.is_cut:
        return False
    if node.span.failed or any(message.tool_calls for message in output):
        return True
    if any("tool" in reason or "function" in reason for reason in finish):
        return False
    if any(text_of(message) for message in output):
        return True
    return bool(finish) and not any(_ends_calls_too(reason, node.span) for reason in finish)


def _ends_calls_too(reason: str, span: Span) -> bool:
    """Whether an answer that calls tools has the same reason for its end: those of Google's models
    and of OpenAI's Responses API have.

    https://ai.google.dev/api/generate-content#FinishReason,
    https://platform.openai.com/docs/api-reference/responses/object"""
    provider = next((span.attributes[name] for name in _PROVIDERS if name in span.attributes), "")
    is_google = any(name in str(provider).lower() for name in _GOOGLE)
    return reason.lower() in _COMPLETED or reason == "STOP" or (is_google and reason == "stop")


def _show_all_calls(models: Sequence[_Node], tools: Sequence[_Node]) -> bool:
    """Whether each model that asked, or may have asked, for tools that its span does not show has
    a span among these tools, which no other model asked for: one of its own that starts before
    the agent, or sub-agent, calls a model again.

    Attack: of two calls of a tool only the second has a span, and a limit of one call passes."""
    starts: dict[tuple[str, str] | None, list[int]] = defaultdict(list)
    free: dict[tuple[str, str] | None, list[int]] = defaultdict(list)
    for nodes, by_agent in ((models, starts), (tools, free)):
        for node in sorted(nodes, key=lambda node: node.span.start):
            by_agent[_agent(node)].append(node.span.start)
    windows = []
    for node in models:
        if not _shows_calls(node) and (node.span.is_cut or node.step.finish):
            span, later = node.span, starts[_agent(node)]
            next_one = bisect_left(later, max(span.end, span.start + 1))
            until = later[next_one] if next_one < len(later) else float("inf")
            windows.append((until, span.start, free[_agent(node)]))
    for until, start, times in sorted(windows, key=lambda window: window[:2]):
        first = bisect_left(times, start)
        if first == len(times) or times[first] > until:
            return False
        del times[first]
    return True


def _agent(node: _Node) -> tuple[str, str] | None:
    """The identity of the sub-agent that a span belongs to; None for the agent itself."""
    return node.outer_tool.span.key if node.outer_tool else None


def _replies(models: Sequence[_Node]) -> list[_Reply]:
    return [
        _Reply(node, node.span.end, replace(message, name=_name(node)), list(message.tool_calls))
        for node in models
        for message in node.step.output or ()
        if message.role == "assistant"
    ]


def _messages(models: Sequence[_Node], replies: Sequence[_Reply]) -> tuple[Message, ...]:
    """The messages of the agent in the order of time, with the results of the tools."""
    results = {
        message.tool_call_id: text_of(message)
        for node in reversed(models)
        for message in node.step.input or ()
        if message.role == "tool" and message.tool_call_id
    }
    return tuple(
        replace(
            reply.message,
            tool_calls=tuple(
                replace(call, output=results[call.id]) if call.id in results else call
                for call in reply.calls
            ),
        )
        for reply in sorted(replies, key=lambda reply: reply.time)
    )


def _name(node: _Node) -> str | None:
    return _SUBAGENT if node.outer_tool else None


def _own_reply(node: _Node) -> _Reply:
    """The call of a tool that no message asks for, as a message of its own."""
    call = _run(ToolCall(node.step.tool or "", node.step.arguments, id=node.step.call_id), node)
    return _Reply(node, node.span.start, Message("assistant", "", _name(node)), [call])


def _run(call: ToolCall, tool: _Node) -> ToolCall:
    """The call with what the span of its tool shows. A refused call took no time."""
    refused = tool.step.refused is True
    took = None if refused else _took(tool.span)
    return replace(call, output=tool.step.result, duration_ms=took, refused=refused)


class _Waiting:
    """The tool calls that messages ask for and that no span of a tool was found for yet."""

    def __init__(self, replies: Sequence[_Reply]) -> None:
        self._by_key: dict[tuple[str, str], deque[tuple[_Reply, int]]] = {}
        self._taken: set[tuple[int, int]] = set()
        for reply in replies:
            for position, call in enumerate(reply.calls):
                for key in _keys(call.id, call.name, call.arguments):
                    self._by_key.setdefault(key, deque()).append((reply, position))

    def complete(self, tool: _Node) -> _Reply | None:
        """Adds the result and the duration of a tool to the call with its id, else to the first one
        with its name and arguments, else to the first one with its name. The message that asks for
        it; None without one."""
        step = tool.step
        for key in _keys(step.call_id, step.tool or "", step.arguments):
            places = self._by_key.get(key, deque())
            while places:
                reply, position = places.popleft()
                if (id(reply), position) not in self._taken:
                    self._taken.add((id(reply), position))
                    reply.calls[position] = _run(reply.calls[position], tool)
                    return reply
        return None


def _keys(call_id: str | None, name: str, arguments: Any) -> list[tuple[str, str]]:
    """The keys of a call, from the most exact one."""
    by_id = [("id", call_id)] if call_id else []
    text = json.dumps(arguments, sort_keys=True, default=str)
    return [*by_id, (name, text), (name, "")]


def _took(span: Span) -> float | None:
    """The duration of a span in milliseconds."""
    if not 0 < span.start <= span.end:
        return None
    return round((span.end - span.start) / _MILLISECOND, 3)


def _duration(spans: Sequence[Span], nodes: Sequence[_Node]) -> float | None:
    """The time of the agent's run: of the one span around all others, if it is an agent's. The
    time of the process would contain its start."""
    keys = {span.key for span in spans}
    roots = [span for span in spans if (span.trace_id, span.parent_id) not in keys]
    first = nodes[0]
    is_around = len(roots) == 1 and first.span is roots[0] and first.step.type == "agent"
    if not is_around or first.span.end < max(span.end for span in spans):
        return None
    return _took(first.span)
