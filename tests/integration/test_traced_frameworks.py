"""Agents of real frameworks, which know nothing of traces, under `opentelemetry-instrument` with
the instrumentations of OpenInference and OpenLLMetry, which see the same calls."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentevals_action.model.trace import Trace
from tests.support import targets
from tests.support.openai_server import OpenAIServer, Reply, function_call

AGENTS = Path(__file__).parents[1] / "support/instrumented_agents"
MODULES = (
    "agents",
    "langgraph",
    "langchain_openai",
    "opentelemetry.distro",
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.instrumentation.openai",
    "openinference.instrumentation.langchain",
    "openinference.instrumentation.openai_agents",
)
ARGUMENTS = '{"order": "A1", "amount": 9.5}'
TOOL_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "refund", "arguments": ARGUMENTS},
}


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it
        return False


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not all(map(is_installed, MODULES)),
        reason="the extra `frameworks` installs the frameworks and their instrumentations",
    ),
]


def traced(root: Path, program: str, script: Sequence[Reply], disabled: str = "") -> Trace:
    """The trace of an agent that calls `refund`, and then answers."""
    instrument = Path(sys.executable).with_name("opentelemetry-instrument")
    command = [str(instrument), sys.executable, str(AGENTS / program)]
    with OpenAIServer(script=script) as server:
        allowed = {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": server.url,
            "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": disabled,
        }
        definition = {"provider": "cli", "command": command, "trace": "otel"}
        question, around = "Refund order A1: 9.5.", targets.context(allowed)
        return targets.ask(definition, root, question, around=around, timeout=200)


@pytest.mark.parametrize(
    ("program", "disabled", "has_duration"),
    [
        ("openai_agents.py", "", True),
        ("openai_agents.py", "openai", True),
        ("langgraph_agent.py", "", True),
        ("langgraph_agent.py", "openai", True),
        ("langgraph_agent.py", "langchain", False),
    ],
)
def test_complete__an_unchanged_agent(
    program: str, disabled: str, has_duration: bool, tmp_path: Path
) -> None:
    if program == "openai_agents.py":
        first = Reply(items=[function_call("refund", ARGUMENTS, "call_1")], fields={"id": "r1"})
    else:
        message = {"content": None, "tool_calls": [TOOL_CALL]}
        first = Reply(message=message, finish_reason="tool_calls")
    last = Reply(text="Refunded 9.5 for A1.", fields={"id": "r2"})
    trace = traced(tmp_path, program, [first, last], disabled)
    (call,) = trace.tool_calls or ()
    assert (call.name, call.arguments, call.output) == (
        "refund",
        {"order": "A1", "amount": 9.5},
        "refunded 9.5 for A1",
    )
    assert (call.duration_ms is not None) is has_duration
    # Each of the two calls has 11 tokens in, 3 of them cached, and 7 out.
    assert (trace.llm_call_count, trace.usage.input_tokens, trace.usage.output_tokens) == (
        2,
        22,
        14,
    )
    assert trace.usage.cached_tokens == 6
    assert trace.output == "Refunded 9.5 for A1."
    assert [len(message.tool_calls) for message in trace.messages] == [1, 0]
