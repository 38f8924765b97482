"""Spans as a trace: recordings of real libraries, and hand-written spans."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import ToolCall
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.targets.otel.otlp.spans import SpanReader
from agentevals_action.targets.otel.span_trace import add_trace, read_trace
from tests.support.traced_agent import request, span

RECORDED = Path(__file__).parents[3] / "support/recorded_spans"
ARGUMENTS = {"order": "A1", "amount": 9.5}
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def read(*requests: Mapping[str, Any]) -> Trace:
    reader = SpanReader()
    for each in requests:
        reader.read_json(json.dumps(each).encode())
    trace = read_trace(reader.spans)
    assert trace is not None
    return trace


def recorded(name: str) -> Trace:
    reader = SpanReader()
    reader.read_lines((RECORDED / f"{name}.jsonl").read_bytes())
    trace = read_trace(reader.spans)
    assert trace is not None
    return trace


def parts(*items: Mapping[str, Any], role: str = "assistant", **fields: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(items), **fields}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def asked(name: str, call_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "id": call_id, "arguments": arguments}


def chat(number: int, *output: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The call of a model at the second `number`."""
    values = {**CHAT, "gen_ai.output.messages": json.dumps(output), **fields.pop("values", {})}
    return span(number, values, **{"start": number * 10, "end": number * 10 + 5, **fields})


@pytest.mark.parametrize(
    ("name", "tokens", "duration"),
    [
        ("openllmetry-openai-agents", (50, 14, 10), 257.282),
        ("openllmetry-0.44", (50, 14, 10), None),
        ("openinference-openai-agents", (50, 14, 10), 589.167),
        ("openinference-langgraph", (50, 14, 10), None),
        ("genai-openai-agents", (50, 14, 10), 644.841),
        ("pydantic-ai", (50, 14, 10), 198.404),
    ],
)
def test_read__recordings_of_one_agent_with_a_tool(
    name: str, tokens: tuple[int, int, int], duration: float | None
) -> None:
    """Two calls of a model, 20 and 30 tokens in, 7 and 7 out, 5 and 5 cached. In several recordings
    the framework and the vendor's client both have a span for each call, and agents sums."""
    trace = recorded(name)
    (call,) = trace.tool_calls or ()
    assert (call.name, call.arguments, call.output, call.id) == (
        "refund",
        ARGUMENTS,
        "refunded 9.5 for A1",
        "call_1",
    )
    assert (trace.llm_call_count, trace.model) == (2, "gpt-4.1")
    assert (trace.input_tokens, trace.output_tokens, trace.cached_tokens) == tokens
    assert trace.duration_ms == duration
    assert [text_of(message) for message in trace.messages] == ["", "Refunded 9.5 for A1."]


@pytest.mark.parametrize(
    ("name", "duration"),
    [
        ("openllmetry-openai-agents", 6.156),
        ("openinference-openai-agents", 15.514),
        ("openinference-langgraph", 2.67),
        ("pydantic-ai", 1.5),
        ("openllmetry-0.44", None),
    ],
)
def test_read__duration_of_a_tool(name: str, duration: float | None) -> None:
    (call,) = recorded(name).tool_calls or ()
    assert call.duration_ms == duration


def test_read__the_cost_that_pydantic_ai_computes() -> None:
    trace = recorded("pydantic-ai")
    assert trace.cost_usd == pytest.approx(0.000197)
    assert trace.cost_source == "OpenTelemetry spans"


def test_read__the_model_is_unknown_if_there_are_several() -> None:
    models = [chat(number, values={"gen_ai.request.model": f"m{number}"}) for number in (1, 2)]
    assert read(request(models[0])).model == "m1"
    assert read(request(*models)).model is None


def test_read__answers_that_only_the_next_input_shows() -> None:
    trace = recorded("openllmetry-without-answers")
    assert [(call.name, call.arguments, call.id) for call in trace.tool_calls or ()] == [
        ("refund", ARGUMENTS, "call_1")
    ]
    assert (trace.llm_call_count, trace.input_tokens) == (2, None)


def test_read__copilot_s_file() -> None:
    trace = recorded("copilot")
    assert trace.tool_calls == (ToolCall("bash", id="call_6", duration_ms=38.0),)
    assert (trace.llm_call_count, trace.input_tokens, trace.output_tokens) == (2, 460, 31)
    assert trace.duration_ms == 127.0


def test_read__copilot_s_file_with_the_content() -> None:
    trace = recorded("copilot-with-content")
    (call,) = trace.tool_calls or ()
    assert (call.name, call.arguments) == ("bash", {"command": "echo hi", "description": "x"})
    assert str(call.output).startswith("hi\n")
    assert (trace.llm_call_count, trace.input_tokens, trace.output_tokens) == (2, 200, 20)
    assert [text_of(message) for message in trace.messages] == ["", "All done."]


def test_read__spans_in_parts_out_of_order_and_twice() -> None:
    lines = (RECORDED / "openllmetry-openai-agents.jsonl").read_text().splitlines()
    spans = json.loads(lines[0])["resourceSpans"][0]["scopeSpans"]
    pieces = [
        {"resourceSpans": [{"scopeSpans": [{"scope": scope["scope"], "spans": [one]}]}]}
        for scope in spans
        for one in scope["spans"]
    ]
    assert read(*reversed(pieces), *pieces) == recorded("openllmetry-openai-agents")


def test_read__no_span_has_a_meaning() -> None:
    reader = SpanReader()
    reader.read_json(json.dumps(request(span(1, {"http.request.method": "POST"}))).encode())
    assert read_trace(reader.spans) is None


def test_read__an_agent_s_sum_replaces_missing_tokens_only() -> None:
    agent = span(1, {**AGENT, "gen_ai.usage.input_tokens": 9}, start=0, end=100)
    inner = span(2, {**AGENT, "gen_ai.usage.input_tokens": 5}, parent=1)
    model = {"gen_ai.usage.input_tokens": 4}
    assert read(request(agent, inner, chat(3, parent=2))).input_tokens == 9
    assert read(request(agent, inner, chat(3, parent=2, values=model))).input_tokens == 4


def test_read__tokens_that_one_call_lacks_are_unknown() -> None:
    known = chat(1, values={"gen_ai.usage.input_tokens": 4})
    assert read(request(known, chat(2))).input_tokens is None
    failed = chat(2, status={"code": 2})
    assert read(request(known, failed)).input_tokens == 4


@pytest.mark.parametrize(
    ("values", "calls"),
    [
        ({"gen_ai.response.finish_reasons": ["stop"]}, ()),
        ({"gen_ai.response.finish_reasons": ["tool_calls"]}, None),
        # An answer with calls ends for the same reason.
        ({"gen_ai.response.finish_reasons": ["STOP"]}, None),
        ({"gen_ai.response.finish_reasons": ["completed"]}, None),
        ({"gen_ai.response.finish_reasons": ["stop"], "gen_ai.system": "vertex_ai"}, None),
        ({"gen_ai.response.finish_reasons": ["stop"], "gen_ai.system": "openai"}, ()),
        ({"gen_ai.completion.0.role": "assistant"}, None),
        ({"gen_ai.completion.0.content": "done"}, ()),
        ({"gen_ai.completion.0.finish_reason": "tool_calls"}, None),
        ({}, None),
    ],
)
def test_read__without_the_content_the_calls_are_unknown(
    values: Mapping[str, Any], calls: tuple[()] | None
) -> None:
    trace = read(request(span(1, {**CHAT, **values})))
    assert (trace.tool_calls, trace.llm_call_count) == (calls, 1)


def test_read__attributes_that_the_exporter_left_out_make_the_calls_unknown() -> None:
    assert read(request(chat(1, parts(said("x")), droppedAttributesCount=3))).tool_calls is None
    assert read(request(chat(1, parts(said("x"))))).tool_calls == ()


def test_read__a_tool_without_its_request_is_a_call_in_the_order_of_time() -> None:
    trace = read(
        request(
            chat(1, parts(asked("look"))),
            span(2, {**TOOL, "gen_ai.tool.call.arguments": '{"order": "A1"}'}, start=20, end=25),
            chat(3, parts(said("done"))),
        )
    )
    assert [(call.name, call.arguments, call.duration_ms) for call in trace.tool_calls or ()] == [
        ("look", {}, None),
        ("refund", {"order": "A1"}, 5.0),
    ]


@pytest.mark.parametrize(
    ("values", "failed", "refused"),
    [
        ({"error.type": "denied"}, True, True),
        ({"gen_ai.tool.call.result": "Permission denied and could not request it"}, True, True),
        ({"gen_ai.tool.call.result": "Tool 'refund' does not exist."}, True, True),
        ({"gen_ai.tool.call.result": "Permission denied: the file's content"}, False, False),
        ({"error.type": "TimeoutError", "gen_ai.tool.call.result": "no answer"}, True, False),
    ],
)
@pytest.mark.parametrize("models", [[], [parts(asked("refund", "c1"))]])
def test_read__a_call_that_was_refused_is_not_made(
    values: Mapping[str, Any], failed: bool, refused: bool, models: list[dict[str, Any]]
) -> None:
    """Attack: an agent that may not call a tool passes the gate that requires the call."""
    status = {"code": 2 if failed else 0}
    tool = span(9, {**TOOL, **values}, start=70, end=75, status=status)
    trace = read(request(*(chat(1, each) for each in models), tool))
    (call,) = trace.tool_calls or ()
    assert (call.name, call.refused) == ("refund", refused)
    assert call.duration_ms == (None if refused else 5.0)
    assert (trace.made_calls == ()) == refused


def test_read__a_refusal_that_only_the_client_s_span_in_the_tool_s_shows() -> None:
    inner = span(2, {**TOOL, "error.type": "rejected"}, parent=1, start=3, end=7)
    (call,) = read(request(span(1, TOOL, start=1, end=9), inner)).tool_calls or ()
    assert call.refused


ASKS = {**CHAT, "gen_ai.response.finish_reasons": ["tool_calls"]}
ENDS = {**CHAT, "gen_ai.response.finish_reasons": ["stop"]}


def model(number: int, values: Mapping[str, Any] = ASKS, **fields: Any) -> dict[str, Any]:
    """A call of a model without content, from `10 * number` to 5 milliseconds later."""
    return span(number, values, **{"start": number * 10, "end": number * 10 + 5, **fields})


def tool(number: int, name: str = "refund", **fields: Any) -> dict[str, Any]:
    values = {**TOOL, "gen_ai.tool.name": name}
    return span(number, values, **{"start": number * 10, "end": number * 10 + 5, **fields})


CUT = {"droppedAttributesCount": 1}


@pytest.mark.parametrize(
    ("spans", "count"),
    [
        # Each call of a model has a tool after it.
        ([model(1), tool(2), model(3), tool(4), model(5, ENDS)], 2),
        ([model(1), tool(2), tool(3), model(4, ENDS)], 2),
        # One of two has none.
        ([model(1), model(3), tool(4), model(5, ENDS)], None),
        ([model(1), tool(2), model(3), model(5, ENDS)], None),
        # Two tools at once do not make up for it.
        ([model(1), model(3), tool(4), tool(5), model(6, ENDS)], None),
        # The tool is that of a call whose content is shown.
        ([chat(1, parts(asked("refund")), end=38), model(2), tool(3), model(5, ENDS)], None),
        # What the exporter left out may be calls.
        ([chat(1, parts(said("x")), **CUT), tool(2), chat(3, parts(said("y")))], 1),
        ([chat(1, parts(asked("refund")), **CUT), tool(2), chat(3, parts(said("y")))], 1),
        ([model(1), tool(2), chat(3, parts(said("y")), **CUT)], None),
        # Sub-agents at the same time, each with a call of its own.
        (
            [
                model(1),
                *(tool(number, "research", start=20, end=80) for number in (2, 3)),
                model(4, parent=2, start=30, end=35),
                model(5, parent=3, start=31, end=36),
                *(tool(6 + one, parent=2 + one, start=40, end=50) for one in (0, 1)),
                model(8, ENDS, parent=2, start=60),
                model(9, ENDS),
            ],
            4,
        ),
        # A sub-agent's tool is not that of the agent, nor that of another sub-agent.
        ([model(1), tool(2), model(3, parent=2, start=22), model(6, ENDS)], None),
    ],
)
def test_read__calls_that_no_span_shows_make_the_calls_unknown(
    spans: list[dict[str, Any]], count: int | None
) -> None:
    """Attack: of two calls of a tool only the second has a span, and a limit of one passes."""
    calls = read(request(*spans)).tool_calls
    assert (None if calls is None else len(calls)) == count


def test_read__calls_of_the_same_tool_get_their_own_results() -> None:
    def run(number: int, order: str, **fields: str) -> dict[str, Any]:
        values = {
            **TOOL,
            "gen_ai.tool.call.arguments": json.dumps({"order": order}),
            "gen_ai.tool.call.result": f"did {order}",
            **fields,
        }
        return span(number, values, start=20 + number, end=30)

    model = chat(1, parts(asked("refund", order="A1"), asked("refund", "c2", order="A2")))
    by_arguments = read(request(model, run(3, "A2"), run(4, "A1")))
    by_id = read(request(model, run(3, "?", **{"gen_ai.tool.call.id": "c2"}), run(4, "A1")))
    assert [call.output for call in by_arguments.tool_calls or ()] == ["did A1", "did A2"]
    assert [call.output for call in by_id.tool_calls or ()] == ["did A1", "did ?"]


def test_read__the_span_of_an_mcp_client_in_that_of_the_tool_is_the_same_call() -> None:
    inner = {**TOOL, "mcp.method.name": "tools/call", "gen_ai.tool.call.result": "done"}
    trace = read(
        request(
            span(1, TOOL, start=1, end=9),
            span(2, {"http.request.method": "POST"}, parent=1, start=2, end=8),
            span(3, inner, parent=2, start=3, end=7),
        )
    )
    assert trace.tool_calls == (ToolCall("refund", output="done", duration_ms=8.0),)


def test_read__a_model_in_a_tool_is_a_sub_agent() -> None:
    trace = read(
        request(
            chat(1, parts(asked("research", "c1"))),
            span(2, {**TOOL, "gen_ai.tool.name": "research"}, start=20, end=60),
            chat(3, parts(said("found")), parent=2),
            chat(7, parts(said("done"))),
        )
    )
    assert [message.name for message in trace.messages] == [None, "subagent", None]
    assert trace.llm_call_count == 3


def test_read__the_same_answer_of_two_agents_counts_twice() -> None:
    """Unlike two libraries that see the same call, they have the same library."""
    one = chat(1, parts(said("yes")), start=10, end=90)
    other = chat(2, parts(said("yes")), start=20, end=80)
    assert read(request(one, other)).llm_call_count == 2
    assert read(request(one, scope="a"), request(other, scope="b")).llm_call_count == 1
    later = chat(2, parts(said("yes")), start=20, end=95)
    assert read(request(one, scope="a"), request(later, scope="b")).llm_call_count == 2


def test_read__spans_in_a_circle_end() -> None:
    circle = [span(number, {}, parent=number % 3 + 1) for number in (1, 2, 3)]
    trace = read(request(*circle, chat(4, parts(said("x")), parent=1), chat(5, parent=5)))
    assert trace.llm_call_count == 1


def test_read__attributes_that_are_lists_and_maps_or_in_an_event() -> None:
    output = [parts(asked("refund", "c1", order="A1"))]
    structured = span(1, {**CHAT, "gen_ai.output.messages": output})
    name = "gen_ai.client.inference.operation.details"
    values = span(1, {"gen_ai.output.messages": output})["attributes"]
    in_event = span(1, CHAT, events=[{"name": name, "attributes": values}])
    expected = (ToolCall("refund", {"order": "A1"}, id="c1"),)
    assert read(request(structured)).tool_calls == expected
    assert read(request(in_event)).tool_calls == expected


@pytest.mark.parametrize(
    "values",
    [
        {"gen_ai.output.messages": "not JSON"},
        {"gen_ai.output.messages": json.dumps([1, {"parts": 3}, {"parts": [4]}])},
        {"gen_ai.usage.input_tokens": -1, "gen_ai.usage.output_tokens": "many"},
        {"gen_ai.completion.99999999.role": "assistant", "gen_ai.completion.x": 1},
        {"openinference.span.kind": 7, "llm.output_messages.0": 1},
        {"gen_ai.response.finish_reasons": "stop"},
    ],
)
def test_read__values_of_a_wrong_type_are_unknown(values: Mapping[str, Any]) -> None:
    trace = read(request(span(1, {**CHAT, **values})))
    assert (trace.tool_calls, trace.input_tokens, trace.output_tokens) == (None, None, None)


def test_read_lines__other_lines_count_for_nothing_and_broken_ones_are_named() -> None:
    reader = SpanReader()
    reader.read_lines(b'{"resourceMetrics": []}\n\n{"type": "metric"}\n[]\n')
    assert reader.spans == ()
    with pytest.raises(ValueError, match="line 2: "):
        reader.read_lines(b"{}\n{\n")


def test_add_trace__the_figures_that_a_reply_reports_take_precedence() -> None:
    trace = recorded("genai-openai-agents")
    reply = read(request(chat(1, parts(said("Refunded.")))))
    both = add_trace(Trace(reply.messages, (), 9, input_tokens=1, duration_ms=2.5), trace)
    assert (both.output, both.tool_calls, both.llm_call_count) == ("Refunded.", trace.tool_calls, 2)
    assert (both.input_tokens, both.output_tokens, both.duration_ms) == (1, 14, 2.5)


def test_read__a_tool_without_a_name_makes_the_calls_unknown() -> None:
    """Attack: the call that must not be made is one whose span has no name."""
    nameless = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1"}
    end = chat(5, parts(said("done")))
    assert read(request(span(2, nameless, start=20), end)).tool_calls is None
    assert read(request(tool(1), span(2, nameless, parent=1, start=12), end)).tool_calls is None
    asking = chat(1, parts(asked("refund", "c1")))
    (call,) = read(request(asking, span(2, nameless, start=20, end=26), end)).tool_calls or ()
    assert (call.name, call.duration_ms) == ("refund", 6.0)


@pytest.mark.parametrize("end", ["9" * 4000, 10**400, -(10**30), [1e300, 0], "1e999"])
def test_read__a_time_that_is_none_is_unknown(end: Any) -> None:
    (call,) = read(request({**tool(1), "endTimeUnixNano": end})).tool_calls or ()
    assert call.duration_ms is None


@pytest.mark.parametrize(
    "text", ["[" + "{}," * 70_000 + "{}]", '[["' + "[" * 100 + '\\"[",' + "[]," * 70_000 + "1]]"]
)
def test_read__json_in_attributes_counts(text: str) -> None:
    """Attack: texts of 16 MB that are lists of empty objects fill the memory."""
    many = [span(number, {**TOOL, "gen_ai.tool.call.arguments": text}) for number in range(1, 17)]
    with pytest.raises(ValueError, match="more than 1000000 values"):
        read(request(*many))
    with pytest.raises(ValueError, match="more than 1000000 values"):
        SpanReader().read_objects([{**each, "attributes": {"any": [text]}} for each in many])
    quoted = json.dumps(["{" * 5000, '"\\[' * 5000])
    few = [span(number, {**TOOL, "gen_ai.tool.call.arguments": quoted}) for number in range(1, 103)]
    assert len(read(request(*few)).tool_calls or ()) == 102
