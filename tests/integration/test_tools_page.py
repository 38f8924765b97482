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

#: The targets of a command and of a service, and the suite with a command.
OF_COMMANDS, OF_SERVICE = re.findall(
    r"^```yaml\n# .agentv/targets.yaml\n(.*?)^```", PAGE, re.M | re.S
)
(WITH_COMMAND,) = re.findall(
    r"^```yaml\n(# evals/EVAL.yaml\nname: pull-requests\n.*?)^```", PAGE, re.M | re.S
)

#: Programs as the page starts them: their clients take an address and headers, and make both calls.
CLIENT = """
import json, os, sys, urllib.request

def work(url, headers):
    for name in ("find_order", "refund"):
        params = {"name": name, "arguments": {"id": 2077}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            text = json.load(response)["result"]["content"][0]["text"]
    return text
"""
PROGRAM = f"""{CLIENT}
if sys.argv[1:]:
    with open(sys.argv[sys.argv.index("--mcp-config") + 1]) as file:
        server = json.load(file)["mcpServers"]["suite"]
    print(work(server["url"], server["headers"]))
else:
    headers = {{"Authorization": f"Bearer {{os.environ['AGENTEVALS_MCP_TOKEN']}}"}}
    print(work(os.environ["AGENTEVALS_MCP_URL"], headers))
"""
SERVICE = f"""{CLIENT}
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "http":
        asked = json.loads((await receive())["body"] or "{{}}")
        text = "ready"
        if asked:
            headers = {{"Authorization": asked["authorization"]}}
            text = await asyncio.to_thread(work, asked["mcp"], headers)
        await send({{"type": "http.response.start", "status": 200, "headers": []}})
        await send({{"type": "http.response.body", "body": text.encode()}})
"""
ASKS_GITHUB = """
import subprocess
print(subprocess.check_output("gh pr view 7 --json title", shell=True, text=True))
"""


def row_of(
    folder: Path,
    agent: str,
    targets: str,
    suite: str = SUITE,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The row of the only test of an agent: a program, a service and a function."""
    files = {".agentv/targets.yaml": targets, "evals/EVAL.yaml": suite}
    places = ("agent.py", "shop/agent.py", "evals/agent.py")
    suites.write(folder, files | dict.fromkeys(places, agent))
    words = ("run", "--output", "results.jsonl", "--env", ",".join(variables or ()))
    done = command.run(folder, *words, env=variables, timeout=280)
    (row,) = (json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines())
    assert row["verdict"] == "pass", (row, done.err)
    found: dict[str, Any] = row
    return found


@pytest.mark.parametrize("name", ["default", "with-variables"])
def test_command__calls_the_tools_of_the_suite(name: str, tmp_path: Path) -> None:
    suite = f"execution: {{target: {name}}}\n{SUITE}"
    assert row_of(tmp_path, PROGRAM, OF_COMMANDS, suite)["candidateAnswer"] == "refunded"


def test_service__calls_the_tools_of_the_suite(tmp_path: Path) -> None:
    assert row_of(tmp_path, SERVICE, OF_SERVICE)["candidateAnswer"] == "refunded"


def test_command_of_the_suite__answers_the_agent(tmp_path: Path) -> None:
    row = row_of(tmp_path, ASKS_GITHUB, OF_COMMANDS, WITH_COMMAND)
    assert json.loads(row["candidateAnswer"]) == {"title": "Fix"}


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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PACKAGES)
def test_framework__calls_the_tools_of_the_suite(name: str, python: Path, tmp_path: Path) -> None:
    target = {
        "name": "default",
        "provider": "python",
        "target": "agent:answer",
        "python": str(python),
    }
    order = '{"id":2077}'
    script = [
        calls("find_order", order, "call_1"),
        calls("refund", order, "call_2"),
        Reply(text="It is refunded.", fields={"model": "gpt-5-mini"}),
    ]
    with OpenAIServer(script=script) as server:
        variables = {
            "OPENAI_API_KEY": "sk-loopback",
            "OPENAI_BASE_URL": server.url,
            "PYTHONWARNINGS": "default",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        row = row_of(tmp_path, AGENTS[name], json.dumps([target]), variables=variables)
    text = json.dumps(row)
    assert "delivered" in text
    assert "refunded" in text
