"""Spans as a trace: recordings of real libraries, and hand-written spans."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agentevals_action.model.messages import ToolCall
from agentevals_action.model.trace import Trace, join_text
from agentevals_action.targets.otel.span_trace import read_trace
from agentevals_action.targets.otel.spans import read_request
from tests.support.traced_agent import request, span

RECORDED = Path(__file__).parents[3] / "support/recorded_spans"
ARGUMENTS = {"order": "A1", "amount": 9.5}
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def read(*requests: Mapping[str, Any]) -> Trace:
    bodies = [json.dumps(each).encode() for each in requests]
    trace = read_trace(span for body in bodies for span in read_request(body, is_protobuf=False))
    assert trace is not None
    return trace


def recorded(name: str) -> Trace:
    return read(*map(json.loads, (RECORDED / f"{name}.jsonl").read_text().splitlines()))


def answer_of(text: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def asked(*names: str, **fields: Any) -> dict[str, Any]:
    """A message that asks for tools; their ids are `c1`, `c2`."""
    parts = [
        {"type": "tool_call", "name": name, "id": f"c{number}", "arguments": fields}
        for number, name in enumerate(names, 1)
    ]
    return {"role": "assistant", "parts": parts}


def chat(number: int, *output: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The call of a model, from `10 * number` to 5 milliseconds later."""
    messages = {"gen_ai.output.messages": json.dumps(output)} if output else {}
    values = {**CHAT, **messages, **fields.pop("values", {})}
    return span(number, values, **{"start": number * 10, "end": number * 10 + 5, **fields})


def tool(number: int, values: Mapping[str, Any] = TOOL, **fields: Any) -> dict[str, Any]:
    return span(number, values, **{"start": number * 10, "end": number * 10 + 5, **fields})


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


def test_read__the_model_is_unknown_if_there_are_several() -> None:
    models = [chat(number, values={"gen_ai.request.model": f"m{number}"}) for number in (1, 2)]
    assert read(request(models[0])).model == "m1"
    assert read(request(*models)).model is None


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
    spans = [chat(1, asked("refund", order="A1")), tool(2, parent=1)]
    message = json_format.ParseDict(request(*spans), ExportTraceServiceRequest())
    found = read_trace(read_request(message.SerializeToString(), is_protobuf=True))
    assert found == read(request(*spans))


def test_read__no_span_has_a_meaning() -> None:
    body = json.dumps(request(span(1, {"http.request.method": "POST"}))).encode()
    assert read_trace(read_request(body, is_protobuf=False)) is None


def test_read__tokens_that_one_call_lacks_are_unknown() -> None:
    known = chat(1, values={"gen_ai.usage.input_tokens": 4})
    assert read(request(known, chat(2))).usage.input_tokens is None
    failed = chat(2, status={"code": 2})
    assert read(request(known, failed)).usage.input_tokens == 4


@pytest.mark.parametrize(
    "model",
    [
        chat(1),
        chat(1, values={"gen_ai.response.finish_reasons": ["stop"]}),
        chat(1, answer_of("")),
        chat(1, answer_of("x"), droppedAttributesCount=3),
        chat(1, answer_of("x"), values={"gen_ai.response.finish_reasons": ["tool_calls"]}),
        chat(1, {"role": "assistant", "parts": [{"type": "server_tool_call"}]}),
        chat(1, {"content": "x"}),
    ],
)
def test_read__calls_that_may_be_missing_are_unknown(model: dict[str, Any]) -> None:
    """Attack: of two calls of a tool only one has a span, and a limit of one passes."""
    trace = read(request(model, tool(2), chat(3, answer_of("done"))))
    assert (trace.tool_calls, trace.llm_call_count) == (None, 2)


def test_read__calls_that_are_known() -> None:
    assert read(request(chat(1, answer_of("x")))).tool_calls == ()
    assert read(request(tool(1))).tool_calls == (ToolCall("refund", duration_ms=5.0),)
    assert read(request(span(1, AGENT))).tool_calls is None
    unnamed = tool(1, {"gen_ai.operation.name": "execute_tool"})
    assert read(request(unnamed)).tool_calls is None


def test_read__a_tool_without_its_request_is_a_call_in_the_order_of_time() -> None:
    values = {**TOOL, "gen_ai.tool.call.arguments": '{"order": "A1"}'}
    trace = read(request(chat(1, asked("look")), tool(2, values), chat(3, answer_of("done"))))
    assert [(call.name, call.arguments, call.duration_ms) for call in trace.tool_calls or ()] == [
        ("look", {}, None),
        ("refund", {"order": "A1"}, 5.0),
    ]


def test_read__calls_of_the_same_tool_get_their_own_results() -> None:
    def run(number: int, order: str, **fields: str) -> dict[str, Any]:
        values = {"gen_ai.tool.call.arguments": json.dumps({"order": order})}
        return tool(number, {**TOOL, **values, "gen_ai.tool.call.result": f"did {order}", **fields})

    first, second = asked("refund", order="A1"), asked("refund", "refund", order="A2")
    model = chat(1, {"role": "assistant", "parts": [first["parts"][0], second["parts"][1]]})
    by_arguments = read(request(model, run(3, "A2"), run(4, "A1")))
    by_id = read(request(model, run(3, "?", **{"gen_ai.tool.call.id": "c2"}), run(4, "A1")))
    assert [call.output for call in by_arguments.tool_calls or ()] == ["did A1", "did A2"]
    assert [call.output for call in by_id.tool_calls or ()] == ["did A1", "did ?"]


def test_read__the_span_of_an_mcp_client_in_that_of_the_tool_is_the_same_call() -> None:
    trace = read(
        request(
            tool(1, start=1, end=9),
            span(2, {"http.request.method": "POST"}, parent=1, start=2, end=8),
            tool(3, {**TOOL, "gen_ai.tool.call.result": "done"}, parent=2, start=3, end=7),
        )
    )
    assert trace.tool_calls == (ToolCall("refund", output="done", duration_ms=4.0),)


def test_read__a_model_in_a_tool_is_another_call() -> None:
    inner = chat(3, answer_of("found"), parent=2)
    trace = read(
        request(chat(1, asked("refund")), tool(2, end=60), inner, chat(7, answer_of("done")))
    )
    assert trace.llm_call_count == 3


def test_read__the_same_answer_of_two_agents_counts_twice() -> None:
    """Unlike two libraries that see the same call, they have the same library."""
    first, other = chat(1, answer_of("yes"), end=90), chat(2, answer_of("yes"), end=80)
    assert read(request(first, other)).llm_call_count == 2
    assert read(request(first, scope="a"), request(other, scope="b")).llm_call_count == 1
    later = chat(2, answer_of("yes"), end=95)
    assert read(request(first, scope="a"), request(later, scope="b")).llm_call_count == 2


def test_read__spans_in_a_circle_have_no_outer_span() -> None:
    circle = [chat(number, answer_of("x"), parent=number % 3 + 1) for number in (1, 2, 3)]
    assert read(request(*circle, chat(4, answer_of("x")))).llm_call_count == 1


def test_read__a_chain_of_many_spans() -> None:
    chain = [span(number, {}, parent=number - 1) for number in range(1, 5000)]
    assert read(request(*chain, chat(5000, answer_of("x"), parent=4999))).tool_calls == ()
