"""Spans, from the requests of exporters and from files."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentevals_action.model.json_values import count, count_values, members, parse_json
from agentevals_action.targets.otel.otlp.protobuf import Budget, read_request

#: Spans of a sample, and values (messages of protobuf, objects and lists of JSON) of its requests
#: and of the texts in them that may be JSON.
MAX_SPANS, MAX_VALUES = 10_000, 1_000_000
_ERROR_CODES = (2, "STATUS_CODE_ERROR", "ERROR")
_ID = re.compile(r"[0-9A-Za-z+/=]{1,64}")
#: Events of a span whose attributes are those of the span: the messages of a call to a model.
_CONTENT_EVENTS = re.compile(r"gen_ai\.(?:client\.inference\.operation\.details|content\..*)")


@dataclass(frozen=True)
class Span:
    """A span with its attributes as plain values. `start` and `end` are nanoseconds since 1970,
    `parent_id` is empty for a root, `scope` names the library that made it. `failed` marks an error
    status, `is_cut` that the exporter left attributes out."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    scope: str = ""
    failed: bool = False
    is_cut: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the span."""
        return self.trace_id, self.span_id


class SpanReader:
    """Reads the spans of one sample, each once: an exporter that gets no answer sends them again.

    ValueError for data that is not valid, and for more than `MAX_SPANS` or `MAX_VALUES`."""

    def __init__(self) -> None:
        self._spans: dict[tuple[str, str], Span] = {}
        self._budget = Budget(MAX_VALUES)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans by their start."""
        return tuple(sorted(self._spans.values(), key=lambda span: span.start))

    def read_protobuf(self, body: bytes) -> None:
        """Reads a request of `http/protobuf`."""
        self._add_request(read_request(body, self._budget))

    def read_json(self, body: bytes) -> None:
        """Reads a request of `http/json`."""
        self._add_request(self._parse(body))

    def read_lines(self, data: bytes) -> None:
        """Reads a file of JSON lines: requests as the Collector's file exporter writes them, or
        one span a line as JavaScript's exporters write them, Copilot's among them. Lines of other
        content (metrics, logs) count for nothing."""
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                value = members(self._parse(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            if "resourceSpans" in value:
                self._add_request(value)
            elif "spanId" in value and "traceId" in value and "attributes" in value:
                self.read_objects([value])

    def read_objects(self, spans: list[Any]) -> None:
        """Reads spans that are not encoded, in the form of JavaScript's exporters."""
        for span in spans:
            self._add(members(span), members(members(span).get("instrumentationScope")).get("name"))

    def _parse(self, text: bytes) -> Any:
        # Counted before the objects are made: 16 MB of `{},` would be objects of 400 MB.
        decoded = text.decode(json.detect_encoding(text))
        self._budget.take(count_values(decoded))
        return parse_json(decoded)

    def _add_request(self, request: Any) -> None:
        for resource in _objects(request, "resourceSpans"):
            for scope in _objects(resource, "scopeSpans"):
                name = members(scope.get("scope")).get("name")
                for span in _objects(scope, "spans"):
                    self._add(span, name)

    def _add(self, data: Mapping[str, Any], scope: Any) -> None:
        span = _read_span(data, scope)
        if span.key in self._spans:
            return
        # Conventions parse these texts: 16 MB of `[{},{},…]` would be objects of 400 MB.
        texts = filter(_may_be_json, _texts(span.attributes))
        self._budget.take(sum(map(count_values, texts)))
        self._spans[span.key] = span
        if len(self._spans) > MAX_SPANS:
            raise ValueError(f"there are more than {MAX_SPANS} spans")


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, at any depth."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _may_be_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _objects(data: Any, name: str) -> list[Mapping[str, Any]]:
    items = members(data).get(name)
    items = items if isinstance(items, list) else []
    return [item for item in items if isinstance(item, Mapping)]


def _read_span(data: Mapping[str, Any], scope: Any) -> Span:
    ids = [data.get(name) for name in ("traceId", "spanId")]
    if not all(isinstance(each, str) and _ID.fullmatch(each) for each in ids):
        raise ValueError("a span has no valid traceId and spanId")
    parent, name = data.get("parentSpanId"), data.get("name")
    contents = [
        _attributes(event.get("attributes"))
        for event in _objects(data, "events")
        if _CONTENT_EVENTS.fullmatch(str(event.get("name")))
    ]
    attributes: dict[str, Any] = {}
    for each in (*contents, _attributes(data.get("attributes"))):
        attributes |= each
    return Span(
        trace_id=str(ids[0]).lower(),
        span_id=str(ids[1]).lower(),
        parent_id=parent.lower() if isinstance(parent, str) else "",
        name=name if isinstance(name, str) else "",
        start=_nanoseconds(data.get("startTimeUnixNano", data.get("startTime"))),
        end=_nanoseconds(data.get("endTimeUnixNano", data.get("endTime"))),
        attributes=attributes,
        scope=scope if isinstance(scope, str) else "",
        is_cut=bool(data.get("droppedAttributesCount")),
        failed=members(data.get("status")).get("code") in _ERROR_CODES,
    )


def _attributes(data: Any) -> dict[str, Any]:
    if isinstance(data, Mapping):  # JavaScript's form
        return dict(data)
    return dict(_pairs(data))


def _pairs(data: Any) -> Iterator[tuple[str, Any]]:
    for pair in data if isinstance(data, Iterable) and not isinstance(data, str) else ():
        if isinstance(key := members(pair).get("key"), str):
            yield key, _plain(pair.get("value"))


def _plain(value: Any) -> Any:
    """The value of an `AnyValue`; a number may be a string in it."""
    for kind, content in members(value).items():
        if kind == "arrayValue":
            items = members(content).get("values")
            return [_plain(item) for item in items] if isinstance(items, list) else []
        if kind == "kvlistValue":
            return dict(_pairs(members(content).get("values")))
        if kind == "intValue":
            return _integer(content)
        return content
    return None


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


def _nanoseconds(value: Any) -> int:
    """A time as a number, as a string, or as JavaScript's seconds and nanoseconds; 0 if it is
    neither, or no time of a span."""
    if isinstance(value, list):
        numbers = [each for each in value if isinstance(each, int | float) and math.isfinite(each)]
        value = int(numbers[0]) * 10**9 + int(numbers[1]) if len(numbers) == 2 else 0
    return count(_integer(value)) or 0
