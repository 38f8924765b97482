"""`cli` with `trace: otel`: real processes that export spans over HTTP on the loopback."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.target import Provider, Target
from agentevals_action.model.trace import Trace
from agentevals_action.targets.otel.receiver import MAX_BODY, MAX_TOTAL
from tests.support import targets, traced_agent

REFUND = ToolCall("refund", {"order": "A1"}, "refunded A1", "c1", 5.0)


def agent(*words: str) -> list[str]:
    return [sys.executable, str(traced_agent.HERE), *words]


def traced(command: Any) -> Target:
    return targets.target({"provider": "cli", "command": command, "trace": "otel"})


def complete(root: Path, command: Any) -> Trace:
    return targets.ask(traced(command), root, "A1", timeout=100)


def refused(root: Path, command: Any, allowed: Mapping[str, str] | None = None) -> AttemptError:
    around = targets.context(allowed)
    return targets.refused(traced(command), root, "A1", timeout=100, around=around)


@pytest.mark.parametrize("mode", ["json", "gzip", "twice", "at-exit"])
def test_complete__spans_become_the_trace(mode: str, tmp_path: Path) -> None:
    trace = complete(tmp_path, agent(mode))
    tokens = (trace.usage.input_tokens, trace.usage.output_tokens)
    assert (trace.tool_calls, trace.llm_call_count, tokens) == ((REFUND,), 2, (50, 14))
    assert (trace.output, trace.duration_ms) == ("A1", 100.0)


def test_complete__an_agent_that_ends_before_the_answer_to_its_export(tmp_path: Path) -> None:
    trace = complete(tmp_path, agent("no-answer-awaited"))
    assert (trace.output, trace.tool_calls) == ("left", (REFUND,))


def test_complete__spans_of_samples_at_once_stay_apart(tmp_path: Path) -> None:
    orders = [f"A{number}" for number in range(6)]

    async def at_once(provider: Provider) -> list[Trace]:
        requests = [targets.request(tmp_path, order, timeout=100) for order in orders]
        return await asyncio.gather(*map(provider.complete, requests))

    traces = targets.use(traced(agent("json")), at_once)
    found = [[call.arguments["order"] for call in trace.tool_calls or ()] for trace in traces]
    assert found == [[order] for order in orders]


def test_complete__a_process_without_the_token_writes_into_no_sample(tmp_path: Path) -> None:
    error = refused(tmp_path, agent("stranger"))
    assert "no OpenTelemetry span" in str(error)
    assert "with OTEL_EXPORTER_OTLP_HEADERS" in error.hint


def test_complete__without_a_span_it_is_an_error(tmp_path: Path) -> None:
    envelope = json.dumps({"output": "done", "token_usage": {"input": 1, "output": 2}})
    error = refused(tmp_path, ["echo", envelope])
    assert "no OpenTelemetry span" in str(error)
    assert "or remove `trace: otel`" in error.hint
    assert error.spent.usage.input_tokens == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "problem"),
    [
        ("b'{'", {}, "not OTLP"),
        ("b'\\xff'", {"Content_Type": "application/x-protobuf"}, "not OTLP"),
        ("b'not'", {"Content_Encoding": "gzip"}, "a body is not gzip"),
        ("b'x'", {"Content_Encoding": "br"}, "the content encoding 'br'"),
        ("b'x'", {"Content_Type": "text/plain"}, "the content type 'text/plain'"),
        (f"b'x' * ({MAX_BODY} + 1)", {}, "the body is longer than"),
    ],
)
def test_complete__spans_that_cannot_be_read_make_the_trace_incomplete(
    body: str, headers: Mapping[str, str], problem: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, agent("send", body, json.dumps(headers)))
    assert "the OpenTelemetry trace of the agent is not complete" in str(error)
    assert problem in str(error)


def test_complete__a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    assert f"longer than {MAX_BODY} bytes when decompressed" in str(
        refused(tmp_path, agent("bomb"))
    )


def test_complete__all_bodies_together_have_a_limit(tmp_path: Path) -> None:
    loop = (
        f"[send(b' ' * {MAX_BODY}) for _ in range({MAX_TOTAL // MAX_BODY})] and b' ' * {MAX_BODY}"
    )
    assert "64 MB of spans" in str(refused(tmp_path, agent("send", loop, "{}")))


def test_complete__metrics_are_accepted_and_not_read(tmp_path: Path) -> None:
    code = "send(b'{', '/v1/metrics') == 200 and json.dumps(request(*refund_spans('A1'))).encode()"
    trace = complete(tmp_path, agent("send", code, "{}"))
    assert trace.tool_calls == (REFUND,)


def test_complete__a_failed_agent_is_paid_for(tmp_path: Path) -> None:
    error = refused(tmp_path, agent("fails"))
    assert isinstance(error.spent, Trace)
    assert (error.spent.usage.input_tokens, error.spent.usage.output_tokens) == (50, 14)


def test_complete__the_workflow_s_variables_take_precedence_for_the_content(
    tmp_path: Path,
) -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

    def seen(allowed: Mapping[str, str] | None = None) -> str:
        script = f'echo "${name} $OTEL_EXPORTER_OTLP_ENDPOINT" >&2; exit 1'
        return str(refused(tmp_path, script, allowed=allowed))

    assert "SPAN_ONLY http://127.0.0.1:" in seen()
    allowed = {name: "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere"}
    assert "true http://127.0.0.1:" in seen(allowed)
