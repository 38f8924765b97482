"""The page "Tests without side effects": each kind of agent on it calls the tools of a suite.

The frameworks need versions of MCP's SDK that differ from ours: they are installed into an
environment of their own. `FRAMEWORKS` names one that exists."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, suites
from tests.support.openai_server import OpenAIServer, Reply, function_call

PAGE = (Path(__file__).parents[2] / "docs/guides/tools.md").read_text("utf-8")
AGENTS = dict(re.findall(r"^```python\n# ([\w -]+)\n(.*?)^```", PAGE, re.M | re.S))
PACKAGES = {
    "openai-agents": ["openai-agents==0.24.0"],
    "LangChain": ["langchain-mcp-adapters==0.3.2", "langchain-openai==1.7.4", "langgraph==1.2.24"],
    "pydantic-ai": ["pydantic-ai-slim[openai,mcp]==2.68.0"],
}
(SUITE,) = re.findall(r"^```yaml\n(# evals/EVAL.yaml\nname: refunds\n.*?)^```", PAGE, re.M | re.S)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter that has the frameworks; skips where pip cannot install them."""
    known = os.environ.get("FRAMEWORKS")
    folder = Path(known) if known else tmp_path_factory.mktemp("frameworks")
    if not known:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        words = [package for packages in PACKAGES.values() for package in packages]
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *words]
        try:
            done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=400)
        except subprocess.TimeoutExpired:
            pytest.skip("pip does not install the frameworks in time")
        if done.returncode:
            pytest.skip(f"pip cannot install the frameworks: {done.stderr.strip()[-300:]}")
    return folder / "bin/python"


def calls(name: str, arguments: str, call_id: str) -> Reply:
    """A model's call of a tool, in both formats."""
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return Reply(
        items=[function_call(name, arguments, call_id)],
        message={"content": None, "tool_calls": [call]},
        finish_reason="tool_calls",
        fields={"model": "gpt-5-mini"},
    )


def run(folder: Path, target: Mapping[str, Any], agent: str, script: list[Reply]) -> dict[str, Any]:
    """The row of the page's test, of an agent whose model says this."""
    targets = {"targets": [{"name": "default", "cwd": "/", **target}]}
    files = {
        ".agentv/targets.yaml": json.dumps(targets),
        "evals/EVAL.yaml": SUITE,
        "agent.py": agent,
    }
    suites.write(folder, files)
    with OpenAIServer(script=script) as server:
        variables = {"OPENAI_API_KEY": "sk-loopback", "OPENAI_BASE_URL": server.url}
        words = ("run", "--output", "results.jsonl", "--env", ",".join(variables))
        environment = {
            **variables,
            "PYTHONWARNINGS": "default",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        done = command.run(folder, *words, env=environment, timeout=280)
    (row,) = (json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines())
    assert row["verdict"] == "pass", (row, done.err)
    found: dict[str, Any] = row
    return found


@pytest.mark.parametrize("name", PACKAGES)
def test_framework__calls_the_tools_of_the_suite(name: str, python: Path, tmp_path: Path) -> None:
    target = {"provider": "python", "target": "agent:answer", "python": str(python)}
    order = '{"id":2077}'
    script = [
        calls("find_order", order, "call_1"),
        calls("refund", order, "call_2"),
        Reply(text="It is refunded.", fields={"model": "gpt-5-mini"}),
    ]
    row = run(tmp_path, target, AGENTS[name], script)
    text = json.dumps(row)
    assert "delivered" in text
    assert "refunded" in text
