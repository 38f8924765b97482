"""Spans as a trace: recordings of real libraries, and hand-written spans."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agentevals_action.model.trace import Trace, join_text
from agentevals_action.targets.otel.span_trace import read_trace
from agentevals_action.targets.otel.spans import read_request
from tests.support import data
from tests.support.traced_agent import request, span

RECORDED = Path(__file__).parents[3] / "support/recorded_spans"
ARGUMENTS = {"order": "A1", "amount": 9.5}
CASES = data.read("formats/spans.yaml")
#: The attributes of each kind of span.
VALUES: Mapping[str, Mapping[str, Any]] = {
    "chat": {"gen_ai.operation.name": "chat"},
    "tool": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"},
    "agent": {"gen_ai.operation.name": "invoke_agent"},
    "other": {},
}


def read(*requests: Mapping[str, Any]) -> Trace:
    bodies = [json.dumps(each).encode() for each in requests]
    trace = read_trace(span for body in bodies for span in read_request(body, is_protobuf=False))
    assert trace is not None
    return trace


def recorded(name: str) -> Trace:
    return read(*map(json.loads, (RECORDED / f"{name}.jsonl").read_text().splitlines()))


def make_span(case: Mapping[str, Any]) -> dict[str, Any]:
    """A span as the data describe it."""
    kind = next(kind for kind in VALUES if kind in case)
    number, message = case[kind], case.get("message")
    if "says" in case:
        parts = [{"type": "text", "content": case["says"]}]
        message = {"role": "assistant", "parts": parts}
    elif "asks" in case:
        calls = (
            {"type": "tool_call", "name": name, "id": f"c{place}", "arguments": arguments}
            for place, (name, arguments) in enumerate(case["asks"], 1)
        )
        message = {"role": "assistant", "parts": [*calls]}
    more = {
        "gen_ai.output.messages": message and json.dumps([message]),
        "gen_ai.tool.call.arguments": "arguments" in case and json.dumps(case["arguments"]),
        "gen_ai.tool.call.result": case.get("result"),
        "gen_ai.tool.call.id": case.get("id"),
    }
    own = {name: value for name, value in more.items() if value}
    times = {"start": number * 10, "end": number * 10 + 5, **case.get("fields", {})}
    return span(number, {**VALUES[kind], **own, **case.get("values", {})}, **times)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.get("name"))
def test_read__what_spans_show(case: Mapping[str, Any]) -> None:
    spans = case["spans"]
    trace = read(*(request(make_span(each), scope=each.get("scope", "test")) for each in spans))
    calls = trace.tool_calls
    found = {
        "model": trace.model,
        "input_tokens": trace.usage.input_tokens,
        "llm_calls": trace.llm_call_count,
        "calls": None
        if calls is None
        else [[call.name, call.arguments, call.output, call.duration_ms] for call in calls],
    }
    assert {name: found[name] for name in case["shows"]} == case["shows"]


@pytest.mark.parametrize(
    ("name", "duration", "tool_duration"),
    [
        ("openllmetry-openai-agents", 250.82, 6.156),
        ("openinference-openai-agents", 589.167, 15.514),
        ("openinference-langgraph", None, 2.67),
        ("genai-openai-agents", 644.841, None),
        ("pydantic-ai", 198.404, 1.5),
    ],
)
def test_read__recordings_of_one_agent_with_a_tool(
    name: str, duration: float | None, tool_duration: float | None
) -> None:
    """Two calls of a model, 20 and 30 tokens in, 7 and 7 out, 5 and 5 cached. In several recordings
    the framework and the vendor's client both have a span for each call."""
    trace = recorded(name)
    (call,) = trace.tool_calls or ()
    assert (call.name, call.arguments, call.output, call.id) == (
        "refund",
        ARGUMENTS,
        "refunded 9.5 for A1",
        "call_1",
    )
    assert tool_duration in (call.duration_ms, None)
    assert (trace.llm_call_count, trace.model) == (2, "gpt-4.1")
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        50,
        14,
        10,
    )
    assert trace.duration_ms == duration
    assert [join_text(message) for message in trace.messages] == ["", "Refunded 9.5 for A1."]


def test_read__the_cost_that_pydantic_ai_computes() -> None:
    trace = recorded("pydantic-ai")
    assert trace.usage.cost_usd == pytest.approx(0.000197)
    assert trace.cost_source == "OpenTelemetry spans"


def test_read__spans_in_parts_out_of_order_and_twice() -> None:
    line = (RECORDED / "openllmetry-openai-agents.jsonl").read_text().splitlines()[0]
    pieces = [
        {"resourceSpans": [{"scopeSpans": [{"scope": scope["scope"], "spans": [each]}]}]}
        for scope in json.loads(line)["resourceSpans"][0]["scopeSpans"]
        for each in scope["spans"]
    ]
    assert read(*reversed(pieces), *pieces) == recorded("openllmetry-openai-agents")


def test_read__protobuf_is_as_json() -> None:
    # Bytes of an identifier are base64 in protobuf's own JSON.
    asking = {"chat": 1, "asks": [["refund", {"order": "A1"}]]}
    spans = [make_span(asking), make_span({"tool": 2, "fields": {"parent": 1}})]
    message = json_format.ParseDict(request(*spans), ExportTraceServiceRequest())
    found = read_trace(read_request(message.SerializeToString(), is_protobuf=True))
    assert found == read(request(*spans))


def test_read__no_span_has_a_meaning() -> None:
    body = json.dumps(request(span(1, {"http.request.method": "POST"}))).encode()
    assert read_trace(read_request(body, is_protobuf=False)) is None


def test_read__a_chain_of_many_spans() -> None:
    chain = [span(number, {}, parent=number - 1) for number in range(1, 5000)]
    last = make_span({"chat": 5000, "says": "x", "fields": {"parent": 4999}})
    assert read(request(*chain, last)).tool_calls == ()
