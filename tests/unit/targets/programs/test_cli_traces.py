"""`cli` with `trace: otel`: real processes that export spans over HTTP on the loopback."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.otel.receiver import MAX_BODY, MAX_TOTAL
from tests.support import targets, traced_agent

ENVIRONMENT = {"PATH": os.environ["PATH"]}
REFUND = ToolCall("refund", {"order": "A1"}, "refunded A1", "c1", 5.0)


def agent(*words: str) -> list[str]:
    return [sys.executable, str(traced_agent.HERE), *words]


def complete(
    root: Path,
    command: Any,
    *prompts: str,
    allowed: Mapping[str, str] | None = None,
) -> list[Trace]:
    """The traces of calls that run at once."""
    definition = {"provider": "cli", "command": command, "trace": "otel"}

    async def run() -> list[Trace]:
        provider = targets.target(definition).connect(targets.context(ENVIRONMENT, allowed))
        requests = [targets.request(root, prompt, timeout=100) for prompt in prompts or ["A1"]]
        return await asyncio.gather(*map(provider.complete, requests))

    return asyncio.run(run())


def refused(root: Path, command: Any, **fields: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        complete(root, command, **fields)
    return caught.value


@pytest.mark.parametrize("mode", ["json", "gzip", "twice", "at-exit"])
def test_complete__spans_become_the_trace(mode: str, tmp_path: Path) -> None:
    (trace,) = complete(tmp_path, agent(mode))
    assert trace.tool_calls == (REFUND,)
    assert (trace.llm_call_count, trace.usage.input_tokens, trace.usage.output_tokens) == (
        2,
        50,
        14,
    )
    assert (trace.output, trace.duration_ms) == ("A1", 100.0)


def test_complete__an_agent_that_ends_before_the_answer_to_its_export(tmp_path: Path) -> None:
    (trace,) = complete(tmp_path, agent("no-answer-awaited"))
    assert (trace.output, trace.tool_calls) == ("left", (REFUND,))


def test_complete__spans_of_samples_at_once_stay_apart(tmp_path: Path) -> None:
    orders = [f"A{number}" for number in range(6)]
    traces = complete(tmp_path, agent("json"), *orders)
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
    (trace,) = complete(tmp_path, agent("send", code, "{}"))
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
