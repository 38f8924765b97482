"""Unchanged agents of real frameworks, asked by a run with `provider: python`: their calls, tokens
and cost are in the results. The libraries are the extra `frameworks`; the imports take seconds."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, suites
from tests.support.openai_server import OpenAIServer, Reply, function_call

AGENTS = Path(__file__).parents[1] / "support" / "framework_agents"
#: The library of each module of agents, and its functions with what they return.
MODULES = {
    "agents_sdk": ("agents", {"result": "RunResult", "items": "to_input_list"}),
    "graph": ("langgraph", {"state": "messages", "as_dicts": "messages_to_dict"}),
    "pydantic_agent": (
        "pydantic_ai",
        {"result": "AgentRunResult", "messages_json": "all_messages_json"},
    ),
}
CASES = [(module, name) for module, (_, functions) in MODULES.items() for name in functions]
#: The items of `to_input_list()` contain no tokens.
WITHOUT_TOKENS = {("agents_sdk", "items")}
SUITE = {
    "name": "shop",
    "execution": {"target": "default"},
    "tests": [
        {
            "id": "order",
            "input": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello!"},
                {"role": "user", "content": "Where is order 7?"},
            ],
            "assert": [
                {"type": "contains", "value": "shipped"},
                {
                    "type": "tool_trajectory",
                    "mode": "exact",
                    "expected": [{"tool": "look_up", "args": {"order": "7"}}],
                },
            ],
        }
    ],
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def is_installed(module: str) -> bool:
    return importlib.util.find_spec(MODULES[module][0]) is not None


def run(folder: Path, module: str, function: str) -> dict[str, Any]:
    """The row of the test in the results of a run."""
    target = {
        "name": "default",
        "provider": "python",
        "target": f"{module}:{function}",
        "python": sys.executable,
        "cwd": "/",
    }
    suites.write(
        folder,
        {
            ".agentv/targets.yaml": json.dumps({"targets": [target]}),
            "evals/EVAL.yaml": json.dumps(SUITE),
        },
    )
    shutil.copy(AGENTS / f"{module}.py", folder)
    call = {
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"order":"7"}'},
            }
        ],
    }
    model = {"model": "gpt-5-mini"}
    script = [
        Reply(
            items=[function_call("look_up", '{"order":"7"}', "call_1")],
            message=call,
            finish_reason="tool_calls",
            fields=model,
        ),
        Reply(text="It was shipped.", fields=model),
    ]
    with OpenAIServer(script=script) as server:
        variables = {"OPENAI_API_KEY": "sk-loopback", "OPENAI_BASE_URL": server.url}
        done = command.run(
            folder,
            *("run", "--output", "results.jsonl", "--env", ",".join(variables)),
            env={**variables, "PYTHONWARNINGS": "default"},
            timeout=280,
        )
        assert len(server.requests) == 2, done.err
    (row,) = (json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines())
    assert row["verdict"] == "pass", (row, done.err)
    found: dict[str, Any] = row
    return found


@pytest.mark.parametrize(("module", "function"), CASES)
def test_run__an_agent_of_a_framework_is_measured(
    module: str, function: str, tmp_path: Path
) -> None:
    if not is_installed(module):
        pytest.skip(f"{MODULES[module][0]} is not installed: pip install -e '.[frameworks]'")
    row = run(tmp_path / "work", module, function)
    trace = row["traceSummary"]
    assert row["candidateAnswer"] == "It was shipped."
    assert (trace["toolNames"], trace["toolCallCount"]) == (["look_up"], 1)
    assert trace["llmCallCount"] == 2
    if (module, function) in WITHOUT_TOKENS:
        assert trace.get("inputTokens") is None
        return
    assert (trace["inputTokens"], trace["outputTokens"]) == (22, 14)
    # 16 fresh and 6 cached tokens of input, 14 of output, in millionths: 0.25, 0.025 and 2 dollars
    assert trace["costUsd"] == pytest.approx((16 * 0.25 + 6 * 0.025 + 14 * 2.0) / 1e6)
