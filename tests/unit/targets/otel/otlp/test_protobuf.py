"""OTLP in protobuf, compared with the official package."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.targets.otel.otlp.protobuf import MAX_DEPTH, MessageLimit, read_request
from agentevals_action.targets.otel.otlp.spans import SpanReader

trace_service = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2",
    reason="the extra `dev` installs the package `opentelemetry-proto`",
)
logs_service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
json_format = pytest.importorskip("google.protobuf.json_format")

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS: st.SearchStrategy[dict[str, Any]] = (
    st.builds(lambda value: {"stringValue": value}, TEXT)
    | st.builds(lambda value: {"boolValue": value}, st.booleans())
    | st.builds(lambda value: {"intValue": str(value)}, INT64)
    | st.builds(
        lambda value: {"doubleValue": value}, st.floats(allow_nan=False, allow_infinity=False)
    )
    | st.just({})
)


def pairs(values: Any) -> Any:
    keys = TEXT.filter(bool)  # an empty one is left out in protobuf
    return st.lists(st.fixed_dictionaries({"key": keys, "value": values}), max_size=4)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda values: {"arrayValue": {"values": values}}, st.lists(inner, max_size=3))
        | st.builds(lambda values: {"kvlistValue": {"values": values}}, pairs(inner))
    ),
    max_leaves=4,
)
SPANS = st.fixed_dictionaries(
    {
        "traceId": st.binary(min_size=16, max_size=16),
        "spanId": st.binary(min_size=8, max_size=8),
        "parentSpanId": st.binary(max_size=8),
        "name": TEXT,
        "kind": st.integers(0, 5),
        "traceState": TEXT,
        "startTimeUnixNano": UINT64,
        "endTimeUnixNano": UINT64,
        "attributes": pairs(VALUES),
        "droppedAttributesCount": st.integers(0, 2**32 - 1),
        "status": st.fixed_dictionaries({"code": st.integers(0, 2), "message": TEXT}),
        "events": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(
                        ["gen_ai.client.inference.operation.details", "exception"]
                    ),
                    "timeUnixNano": UINT64,
                    "attributes": pairs(VALUES),
                }
            ),
            max_size=2,
        ),
    }
)


def request_of(spans: list[dict[str, Any]], encode: Any) -> dict[str, Any]:
    """The request in JSON, with each id in the encoding."""
    ids = ("traceId", "spanId", "parentSpanId")
    encoded = [{**span, **{name: encode(span[name]) for name in ids}} for span in spans]
    scope = {"scope": {"name": "a library", "version": "1"}, "spans": encoded}
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}


@given(st.lists(SPANS, max_size=2))
def test_read__the_same_spans_as_the_official_package_encodes(spans: list[dict[str, Any]]) -> None:
    message = trace_service.ExportTraceServiceRequest()
    json_format.ParseDict(request_of(spans, lambda data: base64.b64encode(data).decode()), message)
    binary, text = SpanReader(), SpanReader()
    binary.read_protobuf(message.SerializeToString())
    text.read_json(json.dumps(request_of(spans, bytes.hex)).encode())
    assert binary.spans == text.spans
    assert len(binary.spans) == len({(span["traceId"], span["spanId"]) for span in spans})


EVENTS = st.fixed_dictionaries(
    {
        "eventName": st.sampled_from(
            ["gen_ai.client.inference.operation.details", "gen_ai.choice", "gen_ai.user.message"]
        ),
        "attributes": pairs(VALUES),
        "body": VALUES,
        "severityText": TEXT,
        "timeUnixNano": UINT64,
    }
)


@given(SPANS, st.lists(EVENTS, max_size=3))
def test_read__the_same_log_events_as_the_official_package_encodes(
    span: dict[str, Any], events: list[dict[str, Any]]
) -> None:
    def logs_of(encode: Any) -> dict[str, Any]:
        ids = {name: encode(span[name]) for name in ("traceId", "spanId")}
        records = [{**event, **ids} for event in events]
        return {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}

    message = logs_service.ExportLogsServiceRequest()
    json_format.ParseDict(logs_of(lambda data: base64.b64encode(data).decode()), message)
    spans = json.dumps(request_of([span], bytes.hex)).encode()
    binary, text = SpanReader(), SpanReader()
    binary.read_json(spans)
    binary.read_protobuf(message.SerializeToString(), logs=True)
    text.read_json(spans)
    text.read_json(json.dumps(logs_of(bytes.hex)).encode())
    assert binary.spans == text.spans


@given(st.binary(max_size=200))
def test_read__any_bytes_are_read_or_not_valid(data: bytes) -> None:
    reader = SpanReader()
    try:
        reader.read_protobuf(data)
    except ValueError:
        return
    assert reader.spans is not None


@given(SPANS, st.data())
def test_read__a_request_that_is_cut_is_not_valid_or_has_fewer_spans(
    span: dict[str, Any], data: st.DataObject
) -> None:
    message = trace_service.ExportTraceServiceRequest()
    json_format.ParseDict(
        request_of([span], lambda value: base64.b64encode(value).decode()), message
    )
    body = message.SerializeToString()
    cut = body[: data.draw(st.integers(1, len(body) - 1))]
    with pytest.raises(ValueError, match="it ends within a field"):
        read_request(cut, MessageLimit(10_000))


def field(number: int, content: bytes) -> bytes:
    size, length = bytearray(), len(content)
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2]) + bytes(size) + bytes([length]) + content


def test_read__values_in_values_have_a_limit() -> None:
    value = b""
    for _ in range(MAX_DEPTH):
        value = field(5, field(1, value))
    span = field(1, b"t" * 16) + field(2, b"s" * 8) + field(9, field(1, b"k") + field(2, value))
    with pytest.raises(ValueError, match="nested more than 100 levels"):
        read_request(field(1, field(2, field(2, span))), MessageLimit(10_000))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"\x0b", "a field of the type 3"),
        (b"\x02\x00", "it ends within a field"),
        (b"\x0a" + b"\xff" * 10, "an invalid number"),
        (b"\x08\x01", "resourceSpans has a wrong type"),
        (field(1, b"") * 11, "more than 10 values"),
    ],
)
def test_read__not_valid(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_request(body, MessageLimit(10))
