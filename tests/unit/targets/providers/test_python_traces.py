"""`python` with `trace: otel`: spans that the real SDK makes in a worker."""

import asyncio
import os
import sys
import textwrap
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import ToolCall
from agentevals_action.model.trace import Trace
from tests.support import targets

ENVIRONMENT = {"PATH": os.environ["PATH"]}
AGENT = """
    import json, threading, time
    from opentelemetry import trace

    tracer = trace.get_tracer("shop")

    def tool(order):
        with tracer.start_as_current_span("execute_tool refund") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", "refund")
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps({"order": order}))

    with tracer.start_as_current_span("import"):
        tool("import")

    async def answer(messages):
        with tracer.start_as_current_span("invoke_agent") as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.usage.input_tokens", 20)
            span.set_attribute("gen_ai.usage.output_tokens", 7)
            tool(messages[-1]["content"])
        return "done"
"""


def traces(root: Path, source: str, *prompts: str) -> list[Trace]:
    """The traces of calls that one worker answers, one after another."""
    (root / "agent.py").write_text(textwrap.dedent(source))
    definition = {"provider": "python", "target": "agent:answer", "python": sys.executable}
    options = targets.options({**definition, "trace": "otel"})

    async def run() -> list[Trace]:
        provider = options.connect(targets.context(ENVIRONMENT))
        try:
            requests = [targets.request(root, prompt, timeout=100) for prompt in prompts]
            return [await provider.complete(request) for request in requests]
        finally:
            await provider.close()

    return asyncio.run(run())


def orders(trace: Trace) -> list[str]:
    return [call.arguments["order"] for call in trace.tool_calls or ()]


def test_complete__each_call_has_its_own_spans(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `frameworks` installs the SDK")
    found = traces(tmp_path, AGENT, "A1", "A2")
    assert [orders(trace) for trace in found] == [["A1"], ["A2"]]
    assert [(trace.usage.input_tokens, trace.usage.output_tokens) for trace in found] == [
        (20, 7),
        (20, 7),
    ]
    (call,) = found[0].tool_calls or ()
    assert call == ToolCall("refund", {"order": "A1"}, duration_ms=call.duration_ms)
    assert call.duration_ms is not None
    assert found[0].output == "done"


def test_complete__a_provider_of_the_module_s_own(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `frameworks` installs the SDK")
    own = "from opentelemetry import trace\nfrom opentelemetry.sdk.trace import TracerProvider\n"
    own += "trace.set_tracer_provider(TracerProvider())\n"
    (trace,) = traces(tmp_path, own + textwrap.dedent(AGENT), "A1")
    assert orders(trace) == ["A1"]


def test_complete__spans_that_end_after_their_call_are_not_the_next_one_s(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra `frameworks` installs the SDK")
    late = """
        late = []
        inner = answer

        async def answer(messages):
            for span in late:
                span.end()
            late.append(tracer.start_span("late", attributes={
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "late",
            }))
            return await inner(messages)
    """
    source = textwrap.dedent(AGENT) + textwrap.dedent(late)
    found = traces(tmp_path, source, "A1", "A2")
    assert [[call.name for call in trace.tool_calls or ()] for trace in found] == [["refund"]] * 2


def test_complete__without_a_span_it_is_an_error(tmp_path: Path) -> None:
    source = "def answer(messages): return {'output': 'x', 'token_usage': {'input': 3}}"
    with pytest.raises(AttemptError, match="no OpenTelemetry span") as caught:
        traces(tmp_path, source, "A1")
    assert "opentelemetry-sdk" in caught.value.hint
