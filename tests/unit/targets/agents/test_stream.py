from typing import Any

import pytest

from agentevals_action.targets.agents import stream as agent_stream
from agentevals_action.targets.agents.stream import Severity


def read_text(text: str) -> agent_stream.StreamReader:
    reader = agent_stream.StreamReader()
    reader.add(text.encode())
    reader.end()
    return reader


def test_stream_reader__separates_events_text_and_broken_lines() -> None:
    read = read_text(
        'hello\r\n{"type": "a"}\r\n  {"type": "b", "x": "\\u2028"}\n{"no": "type"}\n{"type": 5}\n{"type": "c"\n{x}\n[1]'
    )
    assert [event.type for event in read.events] == ["a", "b"]
    assert read.text == ["hello\r", "[1]"]
    assert read.broken == 'line 6 of its stream is not valid JSON: {"type": "c"'


def test_stream_reader__a_line_without_end_of_brackets_is_broken_and_no_crash() -> None:
    assert read_text('{"type":' + "[" * 100_000).broken.startswith("line 1 of its stream")


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_stream_reader__lines_may_arrive_in_pieces(size: int) -> None:
    data = 'text\n{"type": "a", "x": "é€"}\n\n{"type": "b"}'.encode()
    reader = agent_stream.StreamReader()
    for start in range(0, len(data), size):
        reader.add(data[start : start + size])
    reader.end()
    assert [event.type for event in reader.events] == ["a", "b"]
    assert (reader.events[0].text("x"), reader.text, reader.broken) == ("é€", ["text"], "")
    assert reader.events[0].arrived is not None


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("rate limit: Please try again in 1.2s.", 1.2),
        ("429: try again in 350ms", 0.35),
        ("status: 429, try again in 2 m", 120),
        ("status: 429, try again later", None),
    ],
)
def test_failure__the_wait_that_the_vendor_asks_for(message: str, seconds: float | None) -> None:
    assert agent_stream.failure(message, severity="limited").retry_after == (pytest.approx(seconds))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-07-26T09:00:00.000Z", "2026-07-26T09:00:01.250Z", 1250),
        ("2026-07-26T09:00:00Z", "2026-07-26T11:00:00+02:00", 0),
        ("2026-07-26T09:00:01Z", "2026-07-26T09:00:00Z", None),
        ("2026-07-26T09:00:00", "2026-07-26T09:00:01Z", None),
        ("soon", "2026-07-26T09:00:01Z", None),
        (None, 5, None),
    ],
)
def test_milliseconds__between_two_timestamps(start: Any, end: Any, expected: float | None) -> None:
    assert agent_stream.milliseconds(start, end) == expected


@pytest.mark.parametrize(
    ("message", "status", "severity"),
    [
        ("unexpected status 403 Forbidden", None, "dead"),
        ("last status: 429 Too Many Requests", None, "limited"),
        ("API Error: 529 overloaded", None, "transient"),
        ("HTTP 404", None, "dead"),
        ("status code: 408", None, "transient"),
        ("API Error: 401", 400, "own"),
        ("it read 500 files", None, "own"),
    ],
)
def test_failure__severity_by_its_status(
    message: str, status: int | None, severity: Severity
) -> None:
    assert agent_stream.failure(message, status).severity == severity


def test_failure__is_one_line_and_bounded() -> None:
    assert agent_stream.failure("a\n  b").message == "a b"
    assert len(agent_stream.failure("x" * 10_000).message) == 500
