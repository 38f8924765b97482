"""Spans, from the requests of exporters and from files."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.validation.json_values import count, count_values, members, parse_json
from agentevals_action.targets.otel.otlp.protobuf import MessageLimit, read_request

#: Spans of a sample, and values (messages of protobuf, objects and lists of JSON) of its requests
#: and of the texts in them that may be JSON.
MAX_SPANS, MAX_VALUES = 10_000, 1_000_000
_ERROR_CODES = (2, "STATUS_CODE_ERROR", "ERROR")
_ID = re.compile(r"[0-9A-Za-z+/=]{1,64}")
#: Events of a span whose attributes are those of the span: the messages of a call to a model.
_CONTENT_EVENTS = re.compile(r"gen_ai\.(?:client\.inference\.operation\.details|content\..*)")


#: Log events of one message, by its role; `gen_ai.choice` is that of the answer.
_MESSAGE_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")


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
        #: The contents of log events, by the span to which they belong.
        self._contents: dict[tuple[str, str], dict[str, Any]] = {}
        self._budget = MessageLimit(MAX_VALUES)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans by their start; an attribute takes precedence over a log event."""
        spans = sorted(self._spans.values(), key=lambda span: span.start)
        return tuple(
            replace(span, attributes={**content, **span.attributes})
            if (content := self._contents.get(span.key))
            else span
            for span in spans
        )

    def read_protobuf(self, body: bytes, *, logs: bool = False) -> None:
        """Reads a request of `http/protobuf`, with spans or with logs."""
        self._add_request(read_request(body, self._budget, logs=logs))

    def read_json(self, body: bytes) -> None:
        """Reads a request of `http/json`, with spans or logs."""
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

        for resource in _objects(request, "resourceLogs"):
            for scope in _objects(resource, "scopeLogs"):
                for record in _objects(scope, "logRecords"):
                    self._add_record(record)

    def _add_record(self, record: Mapping[str, Any]) -> None:
        """Keeps the messages in a log event of the GenAI conventions: all of a call, or, in events
        of earlier versions, one in each."""
        key = (str(record.get("traceId")).lower(), str(record.get("spanId")).lower())
        attributes, body = _attributes(record.get("attributes")), _plain(record.get("body"))
        name = str(record.get("eventName") or attributes.get("event.name"))
        content = self._contents.setdefault(key, {})
        if _CONTENT_EVENTS.fullmatch(name):
            content |= {**members(body), **attributes}
        elif name == "gen_ai.choice":
            message = members(members(body).get("message"))
            _append(content, "gen_ai.output.messages", message, "assistant")
        elif role := _MESSAGE_EVENT.fullmatch(name):
            _append(content, "gen_ai.input.messages", members(body), role[1])

    def _add(self, data: Mapping[str, Any], scope: Any) -> None:
        span = _read_span(data, scope)
        if span.key in self._spans:
            return
        # Conventions parse these texts: 16 MB of `[{},{},…]` would be objects of 400 MB.
        texts = (text for text in _texts(span.attributes) if text.lstrip().startswith(("{", "[")))
        self._budget.take(sum(map(count_values, texts)))
        self._spans[span.key] = span
        if len(self._spans) > MAX_SPANS:
            raise ValueError(f"there are more than {MAX_SPANS} spans")


def _append(content: dict[str, Any], name: str, data: Mapping[str, Any], role: str) -> None:
    """Adds a message of an event to a list of messages, in the form of the attribute."""
    text, calls, messages = data.get("content"), data.get("tool_calls"), content.get(name)
    parts: list[Mapping[str, Any]] = []
    if role == "tool":
        parts = [{"type": "tool_call_response", "response": text, "id": data.get("id")}]
    elif isinstance(text, str):
        parts = [{"type": "text", "content": text}]
    for call in calls if isinstance(calls, list) else ():
        function = members(members(call).get("function"))
        parts.append({**function, "type": "tool_call", "id": members(call).get("id")})
    before = messages if isinstance(messages, list) else []
    content[name] = [*before, {"role": role, "parts": parts}]


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
