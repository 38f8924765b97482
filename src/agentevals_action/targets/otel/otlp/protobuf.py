"""OTLP in protobuf: the fields of a request that traces need, in the form of OTLP's JSON.

A reader of its own, since the official package counts nothing while it parses: of 16 MB that are 8
million empty messages it makes objects of 510 MB, for each of the samples that run at once. It is
tested against the official package.

https://protobuf.dev/programming-guides/encoding and
https://github.com/open-telemetry/opentelemetry-proto (v1)."""

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Levels of messages in messages: the limit of the official parsers.
MAX_DEPTH = 100
_VARINT_BYTES = 10
_INT64 = 1 << 64


class MessageLimit:
    """The number of messages that may still be read; ValueError if there are more."""

    def __init__(self, limit: int) -> None:
        self.limit = self._left = limit

    def take(self, count: int = 1) -> None:
        """Counts messages."""
        self._left -= count
        if self._left < 0:
            raise ValueError(f"it has more than {self.limit} values")


@dataclass(frozen=True)
class _Field:
    """A field of a message: its name in JSON, and the conversion of its value. `message` returns
    the fields of the message that it contains."""

    name: str
    convert: Callable[[Any], Any] | None = None
    message: Callable[[], Mapping[int, "_Field"]] | None = None
    repeated: bool = False


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _signed(value: int) -> int:
    value %= _INT64
    return value - _INT64 if value >= _INT64 // 2 else value


def _double(value: int) -> float | None:
    number: float = struct.unpack("<d", struct.pack("<Q", value))[0]
    return number if math.isfinite(number) else None  # JSON, in which results are stored, has none


_VALUE: Mapping[int, _Field] = {
    1: _Field("stringValue", _text),
    2: _Field("boolValue", bool),
    3: _Field("intValue", _signed),
    4: _Field("doubleValue", _double),
    5: _Field("arrayValue", message=lambda: _ARRAY),
    6: _Field("kvlistValue", message=lambda: _PAIRS),
    7: _Field("bytesValue", _text),
}
_PAIR: Mapping[int, _Field] = {1: _Field("key", _text), 2: _Field("value", message=lambda: _VALUE)}
_ARRAY: Mapping[int, _Field] = {1: _Field("values", message=lambda: _VALUE, repeated=True)}
_PAIRS: Mapping[int, _Field] = {1: _Field("values", message=lambda: _PAIR, repeated=True)}
_EVENT: Mapping[int, _Field] = {
    2: _Field("name", _text),
    3: _Field("attributes", message=lambda: _PAIR, repeated=True),
}
_STATUS: Mapping[int, _Field] = {3: _Field("code", _signed)}
_SPAN: Mapping[int, _Field] = {
    1: _Field("traceId", bytes.hex),
    2: _Field("spanId", bytes.hex),
    4: _Field("parentSpanId", bytes.hex),
    5: _Field("name", _text),
    7: _Field("startTimeUnixNano", int),
    8: _Field("endTimeUnixNano", int),
    9: _Field("attributes", message=lambda: _PAIR, repeated=True),
    10: _Field("droppedAttributesCount", int),
    11: _Field("events", message=lambda: _EVENT, repeated=True),
    15: _Field("status", message=lambda: _STATUS),
}
_LIBRARY: Mapping[int, _Field] = {1: _Field("name", _text)}
_SCOPE: Mapping[int, _Field] = {
    1: _Field("scope", message=lambda: _LIBRARY),
    2: _Field("spans", message=lambda: _SPAN, repeated=True),
}
_RESOURCE: Mapping[int, _Field] = {2: _Field("scopeSpans", message=lambda: _SCOPE, repeated=True)}
_REQUEST: Mapping[int, _Field] = {
    1: _Field("resourceSpans", message=lambda: _RESOURCE, repeated=True)
}
_RECORD: Mapping[int, _Field] = {
    5: _Field("body", message=lambda: _VALUE),
    6: _Field("attributes", message=lambda: _PAIR, repeated=True),
    9: _Field("traceId", bytes.hex),
    10: _Field("spanId", bytes.hex),
    12: _Field("eventName", _text),
}
_LOG_SCOPE: Mapping[int, _Field] = {2: _Field("logRecords", message=lambda: _RECORD, repeated=True)}
_LOG_RESOURCE: Mapping[int, _Field] = {
    2: _Field("scopeLogs", message=lambda: _LOG_SCOPE, repeated=True)
}
_LOG_REQUEST: Mapping[int, _Field] = {
    1: _Field("resourceLogs", message=lambda: _LOG_RESOURCE, repeated=True)
}


def read_request(body: bytes, budget: MessageLimit, *, logs: bool = False) -> Mapping[str, Any]:
    """An `ExportTraceServiceRequest`, or with `logs` an `ExportLogsServiceRequest`; ValueError for
    bytes that are not one, and for more messages than the budget has."""
    return _read(memoryview(body), _LOG_REQUEST if logs else _REQUEST, budget, 0)


def _read(
    data: memoryview, fields: Mapping[int, _Field], budget: MessageLimit, depth: int
) -> dict[str, Any]:
    if depth >= MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    budget.take()
    message: dict[str, Any] = {}
    for number, wire_value in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        is_bytes = isinstance(wire_value, memoryview)
        if is_bytes is not (field.message is not None or field.convert in (_text, bytes.hex)):
            raise ValueError(f"its field {field.name} has a wrong type")
        if field.message is not None:
            value = _read(wire_value, field.message(), budget, depth + 1)
        elif field.convert is not None:
            value = field.convert(bytes(wire_value) if is_bytes else wire_value)
        if field.repeated:
            message.setdefault(field.name, []).append(value)
        else:
            message[field.name] = value
    return message


def _parts(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The number of each field, and its value: an integer, or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == 2:
            size, position = _varint(data, position)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:  # the groups of older versions, which OTLP does not use
            raise ValueError(f"it has a field of the type {wire_type}")
        part = data[position : position + size]
        if number == 0 or len(part) < size:
            raise ValueError("it ends within a field")
        position += size
        yield number, part if wire_type == 2 else int.from_bytes(part, "little")


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_BYTES):
        if position >= len(data):
            raise ValueError("it ends within a field")
        byte = data[position]
        value |= (byte & 0x7F) << (7 * index)
        position += 1
        if byte < 0x80:
            return value, position
    raise ValueError("it has an invalid number")
