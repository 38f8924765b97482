import secrets
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Message, ToolCall
from tests.support.agent_programs import copilot_ended, lines
from tests.support.agent_programs import copilot_event as event
from tests.support.agent_runs import AgentRun


def asked(own_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"toolCallId": own_id, "name": name, "arguments": arguments, "type": "function"}


def copilot(tmp_path: Path, *events: Any, code: int = 0) -> AgentRun:
    return AgentRun("copilot", tmp_path).printing(lines(*events), code)


def test_command__copilots_own_words(tmp_path: Path) -> None:
    words = AgentRun("copilot", tmp_path).seen(model="m", args=["--allow-tool", "write"])["words"]
    assert words == [
        "--output-format",
        "json",
        "--no-color",
        "--no-ask-user",
        "--model",
        "m",
        "--allow-tool",
        "write",
    ]


def test_stream__tool_calls_with_arguments_results_and_durations(tmp_path: Path) -> None:
    requests = [
        asked("c1", "bash", {"command": "ls"}),
        asked("c2", "view", '{"path": "/w/a.py"}'),
        asked("c3", "docs-find", "not json"),
    ]
    trace = copilot(
        tmp_path,
        event("session.start", sessionId="s"),
        event("assistant.message", messageId="m1", content="I look.", toolRequests=requests),
        event(
            "tool.execution_start",
            at="2026-07-26T09:00:01.000Z",
            toolCallId="c1",
            toolName="bash",
            arguments={"command": "ls"},
        ),
        event(
            "tool.execution_complete",
            at="2026-07-26T09:00:01.500Z",
            toolCallId="c1",
            success=True,
            result={"content": "a\n"},
        ),
        event(
            "tool.execution_complete",
            toolCallId="c2",
            success=False,
            error={"message": "no such file", "code": "x"},
        ),
        event(
            "tool.execution_start", toolCallId="c4", toolName="skill", arguments={"skill": "pdf"}
        ),
        event("assistant.message_delta", messageId="m2", deltaContent="do"),
        event("assistant.message", messageId="m2", content="done", toolRequests=[]),
        copilot_ended(),
    ).answer()
    calls = (
        ToolCall("Bash", {"command": "ls"}, "a\n", "c1", 500),
        ToolCall("Read", {"file_path": "/w/a.py"}, "no such file", "c2"),
        ToolCall("docs-find", "not json", None, "c3"),
        ToolCall("Skill", {"skill": "pdf"}, None, "c4"),
    )
    assert trace.tool_calls == calls
    assert trace.messages == (
        Message("assistant", "I look.", tool_calls=calls[:3]),
        Message("assistant", "", tool_calls=calls[3:]),
        Message("assistant", "done"),
    )


def usage(tokens_in: int, tokens_out: int, cached: int | None = None) -> dict[str, Any]:
    return {"inputTokens": tokens_in, "outputTokens": tokens_out} | (
        {} if cached is None else {"cacheReadTokens": cached}
    )


def test_stream__tokens_of_each_call_where_they_are_told(tmp_path: Path) -> None:
    calls = [
        event("assistant.usage", model="m", **usage(40000, 120, 30000)),
        event("assistant.usage", model="m", **usage(5000, 64)),
    ]
    trace = copilot(
        tmp_path,
        *calls,
        event("assistant.message", content="done", outputTokens=1),
        copilot_ended(),
    ).answer()
    assert (
        trace.usage.input_tokens,
        trace.usage.cached_tokens,
        trace.usage.output_tokens,
        trace.llm_call_count,
    ) == (
        45000,
        30000,
        184,
        2,
    )


def test_stream__tokens_of_the_sessions_end_where_they_are_told(tmp_path: Path) -> None:
    metrics = {
        "a": {"requests": {"count": 2}, "usage": usage(100, 10, 50)},
        "b": {"usage": usage(7, 3, 0)},
        "c": "odd",
    }
    ended = event("session.shutdown", shutdownType="routine", modelMetrics=metrics)
    trace = copilot(
        tmp_path,
        event("assistant.usage", **usage(1, 1)),
        event("assistant.message", content="done"),
        ended,
    ).answer()
    assert (trace.usage.input_tokens, trace.usage.cached_tokens, trace.usage.output_tokens) == (
        107,
        50,
        13,
    )


def test_stream__odd_shapes_are_passed_over(tmp_path: Path) -> None:
    odd = [
        {"type": "assistant.message"},
        event("assistant.message", content=5, toolRequests=[5, {"name": 5}]),
        event("tool.execution_start", toolCallId=5, toolName=5),
        event("tool.execution_complete", at="never", result="text"),
        {"type": "session.shutdown", "data": {"modelMetrics": []}},
    ]
    assert (
        copilot(tmp_path, *odd, event("assistant.message", content="done"), copilot_ended())
        .answer()
        .output
        == "done"
    )


def test_end__an_error_that_it_got_over_is_none(tmp_path: Path) -> None:
    error = event("session.error", errorType="rate_limit", message="slow down", statusCode=429)
    assert (
        copilot(tmp_path, error, event("assistant.message", content="done"), copilot_ended())
        .answer()
        .output
        == "done"
    )


def test_failure__an_error_after_which_nothing_came(tmp_path: Path) -> None:
    error = event("session.error", errorType="query", message="it went wrong")
    assert (
        str(copilot(tmp_path, event("assistant.message", content="I try"), error).refused())
        == "Copilot: it went wrong"
    )


def test_failure__an_exit_code_without_a_word(tmp_path: Path) -> None:
    run = copilot(tmp_path, event("assistant.message", content="I try"), copilot_ended(2), code=2)
    assert str(run.refused()) == "Copilot: it ended with exit code 2"


def span(operation: str = "chat", code: int = 0, **usage: int) -> dict[str, Any]:
    attributes = {f"gen_ai.usage.{name}": count for name, count in usage.items()}
    return {
        "type": "span",
        "traceId": "1",
        "spanId": secrets.token_hex(8),
        "attributes": {"gen_ai.operation.name": operation, **attributes},
        "status": {"code": code},
    }


@pytest.mark.parametrize(
    ("spans", "tokens"),
    [
        ([span(input_tokens=5, output_tokens=2), span(input_tokens=7, output_tokens=1)], (12, 3)),
        ([span(input_tokens=5, output_tokens=2), span("invoke_agent", input_tokens=5)], (5, 2)),
        ([span(input_tokens=5, output_tokens=2), span(code=2)], (5, 2)),
        # A call without tokens: the sum would be too small.
        ([span(input_tokens=5, output_tokens=2), span()], (None, None)),
        ([span(input_tokens=5)], (None, None)),
        ([{"type": "metric"}, {"type": "span", "attributes": "odd"}], (None, None)),
        ([], (None, None)),
    ],
)
def test_telemetry__tokens_of_the_models_calls(
    tmp_path: Path, spans: list[dict[str, Any]], tokens: tuple[int | None, int | None]
) -> None:
    events = event("assistant.message", content="done"), copilot_ended()
    trace = copilot(tmp_path, *events).reporting(lines(*spans)).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == tokens


@pytest.mark.parametrize("missing", ["inputTokens", "outputTokens"])
def test_telemetry__replaces_sums_that_lack_a_call(tmp_path: Path, missing: str) -> None:
    """Attack: the tokens of one call of two pass a limit for both."""
    part = {name: count for name, count in usage(50, 5).items() if name != missing}
    events = (
        event("assistant.usage", **usage(40, 4)),
        event("assistant.usage", **part),
        event("assistant.message", content="done"),
        copilot_ended(),
    )
    known = {"inputTokens": (None, 9), "outputTokens": (90, None)}[missing]
    trace = copilot(tmp_path, *events).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == known
    spans = lines(span(input_tokens=40, output_tokens=4), span(input_tokens=50, output_tokens=5))
    trace = copilot(tmp_path, *events).reporting(spans).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (90, 9)


def test_telemetry__cached_tokens(tmp_path: Path) -> None:
    call, other = span(input_tokens=5, output_tokens=2), span(input_tokens=5, output_tokens=2)
    for one in (call, other):
        one["attributes"]["gen_ai.usage.cache_read.input_tokens"] = 4
    events = event("assistant.message", content="done"), copilot_ended()
    trace = copilot(tmp_path, *events).reporting(lines(call, other)).answer()
    assert trace.usage.cached_tokens == 8


def test_telemetry__the_workflows_own_file_is_left_alone(tmp_path: Path) -> None:
    own = str(tmp_path / "mine.jsonl")
    seen = AgentRun("copilot", tmp_path, {"COPILOT_OTEL_FILE_EXPORTER_PATH": own}).seen()
    assert seen["environment"]["COPILOT_OTEL_FILE_EXPORTER_PATH"] == own


@pytest.mark.parametrize("attack", ["ln -s {target} $F", "mkfifo $F", "mkdir $F"])
def test_telemetry__only_a_regular_file_is_read(tmp_path: Path, attack: str) -> None:
    """Attack: the agent puts a link there to read a file through the action, or a pipe that blocks
    it."""
    (tmp_path / "telemetry").write_text(lines(span(input_tokens=5, output_tokens=2)))
    (tmp_path / "stream").write_text(
        lines(event("assistant.message", content="done"), copilot_ended())
    )
    put = attack.format(target=tmp_path / "telemetry").replace(
        "$F", '"$COPILOT_OTEL_FILE_EXPORTER_PATH"'
    )
    command = ["sh", "-c", f"{put}; cat {tmp_path / 'stream'}"]
    trace = AgentRun("copilot", tmp_path).answer(command=command)
    assert (trace.output, trace.usage.input_tokens) == ("done", None)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"message": "Permission denied because nobody answered", "code": "denied"}, True),
        ({"message": "Permission denied and could not request permission from user"}, True),
        ({"message": "Tool 'write' does not exist.", "code": "failure"}, True),
        ({"message": "no such file", "code": "failure"}, False),
    ],
)
def test_stream__refused_calls(tmp_path: Path, error: dict[str, Any], refused: bool) -> None:
    requests = [asked("c1", "edit", {"path": "/a", "old_str": "x", "new_str": "y"})]
    trace = copilot(
        tmp_path,
        event("assistant.message", content="", toolRequests=requests),
        event("tool.execution_start", toolCallId="c1", toolName="edit"),
        event("tool.execution_complete", toolCallId="c1", success=False, error=error),
        event("assistant.message", content="done"),
        copilot_ended(),
    ).answer()
    (call,) = trace.tool_calls or ()
    arguments = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    assert (call.name, call.arguments, call.refused) == ("Edit", arguments, refused)
