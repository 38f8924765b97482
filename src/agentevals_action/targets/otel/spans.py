"""Spans, from the requests of exporters."""

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2


@dataclass(frozen=True)
class Span:
    """A span with its attributes as plain values. `start` and `end` are nanoseconds since 1970,
    `parent_id` is empty for a root, `scope` names the library that made it. `failed` marks an error
    status, `is_cut` that the exporter left attributes out."""

    trace_id: str
    span_id: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    parent_id: str = ""
    scope: str = ""
    failed: bool = False
    is_cut: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the span."""
        return self.trace_id, self.span_id

    @property
    def duration_ms(self) -> float | None:
        """The duration in milliseconds; None if its times are not those of a span."""
        return round((self.end - self.start) / 1e6, 3) if 0 < self.start <= self.end else None


def read_request(body: bytes, *, is_protobuf: bool) -> list[Span]:
    """The spans of a request in OTLP, as protobuf or JSON; ValueError if it is not valid.

    https://opentelemetry.io/docs/specs/otlp"""
    request = ExportTraceServiceRequest()
    try:
        if is_protobuf:
            request.ParseFromString(body)
        else:
            json_format.Parse(body, request, ignore_unknown_fields=True)
    except (DecodeError, json_format.ParseError, UnicodeDecodeError) as error:
        raise ValueError(f"a request is not OTLP: {error}") from None
    return [
        _read_span(span, scope.scope.name, is_protobuf=is_protobuf)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _read_span(span: trace_pb2.Span, scope: str, *, is_protobuf: bool) -> Span:
    if not span.trace_id or not span.span_id:
        raise ValueError("a span has no traceId and spanId")

    def identity(value: bytes) -> str:
        # JSON has hexadecimal digits, which the parser takes for base64.
        return value.hex() if is_protobuf else b64encode(value).decode().lower()

    return Span(
        trace_id=identity(span.trace_id),
        span_id=identity(span.span_id),
        parent_id=identity(span.parent_span_id),
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        scope=scope,
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        is_cut=span.dropped_attributes_count > 0,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return value.bytes_value.decode("utf-8", "replace")
    plain = getattr(value, kind) if kind else None
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
