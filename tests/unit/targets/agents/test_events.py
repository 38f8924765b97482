import pytest

from agentevals_action.errors import AttemptError, NoCredit, TargetDead, TransientError
from agentevals_action.targets.agents import events as agent_events
from agentevals_action.targets.agents.events import Stream


def read(data: bytes, size: int = 1_000_000) -> Stream:
    stream = Stream()
    for start in range(0, len(data), size):
        stream.add(data[start : start + size])
    stream.add(b"\n")
    return stream


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_stream__separates_events_text_and_broken_lines(size: int) -> None:
    text = 'hello\r\n{"type": "a"}\r\n  {"type": "b", "x": "\\u2028é€"}\n{"no": "type"}\n'
    text += '{"type": 5}\n\n{"type": "c"\n{x}\n[1]'
    stream = read(text.encode(), size)
    assert [event.type for event in stream.events] == ["a", "b"]
    assert stream.events[1].text("x") == "\u2028é€"
    assert stream.events[1].arrived is not None
    assert stream.text == ["hello\r", "[1]"]
    assert stream.broken == 'line 7 of its stream is not valid JSON: {"type": "c"'


def test_stream__a_line_with_endless_brackets_is_broken() -> None:
    stream = read(('{"type":' + "[" * 100_000).encode())
    assert stream.broken.startswith("line 1 of its stream")


@pytest.mark.parametrize(
    ("message", "status", "code", "expected", "limited"),
    [
        ("unexpected status 403 Forbidden", None, "", TargetDead, False),
        ("last status: 429 Too Many Requests", None, "", TransientError, True),
        ("API Error: 529 overloaded", None, "", TransientError, False),
        ("HTTP 404", None, "", TargetDead, False),
        ("status code: 408", None, "", TransientError, False),
        ("API Error: 401", 400, "", AttemptError, False),
        ("it read 500 files", None, "", AttemptError, False),
        ("bad", 400, "", AttemptError, False),
        ("boom", 500, "", TransientError, False),
        ("slow down", 429, "", TransientError, True),
        ("Your credit balance is too low", 400, "rate_limit", NoCredit, False),
        ("Not logged in", 400, "", TargetDead, False),
        ("the model m does not exist", 400, "", TargetDead, False),
        ("socket hang up", None, "", TransientError, False),
        ("socket hang up", 400, "", AttemptError, False),
        ("it went wrong", 500, "authorization", TargetDead, False),
        ("it went wrong", 500, "query", TransientError, False),
    ],
)
def test_failure__is_the_error_of_its_message_status_or_code(
    message: str, status: int | None, code: str, expected: type[AttemptError], limited: bool
) -> None:
    error = agent_events.failure(message, status, code)
    assert type(error) is expected
    assert getattr(error, "limited", False) is limited


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
def test_milliseconds__between_two_timestamps(
    start: object, end: object, expected: float | None
) -> None:
    assert agent_events.milliseconds(start, end) == expected
