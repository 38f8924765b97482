"""Real MCP servers of npm and PyPI: their tools are listed and offered, and `record` writes what
they answer.

`MCP_SERVERS` names a folder in which they are installed already (`npm install --prefix`, and a
virtual environment `venv`)."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentevals_action.model.tools import Tool, ToolSet, combine_tools
from agentevals_action.system.program import Program
from agentevals_action.tools.mcp import serve_tools
from agentevals_action.tools.server_list import list_server_tools
from agentevals_action.tools.session import ToolSession
from tests.support import command, tool_agent
from tests.support.repositories import Repository

NPM = "@modelcontextprotocol/server-everything@2026.8.31"
PYPI = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
EVERYTHING, GIT, TIME = (
    "node_modules/.bin/mcp-server-everything",
    "venv/bin/mcp-server-git",
    "venv/bin/mcp-server-time",
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def install(*words: str) -> None:
    """Runs a command that installs; skips where it cannot."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]}, which installs the servers, is not on this machine")
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{words[0]} does not install the servers within 5 minutes")
    if done.returncode:
        pytest.skip(f"{words[0]} cannot install the servers: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of the servers."""
    if known := os.environ.get("MCP_SERVERS"):
        return Path(known)
    folder = tmp_path_factory.mktemp("servers")
    install("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), NPM)
    install(sys.executable, "-m", "venv", str(folder / "venv"))
    install(str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", *PYPI)
    return folder


def list_tools(server: Path) -> Sequence[Tool]:
    program = Program((str(server),), server.parent, {"PATH": os.environ["PATH"], "HOME": "/"})
    return asyncio.run(list_server_tools(program))


def test_lists__are_offered_as_they_are(servers: Path) -> None:
    """A tool of server-everything that only clients with tasks may call is one that plain ones
    never call."""
    listed = [tool for name in (EVERYTHING, GIT, TIME) for tool in list_tools(servers / name)]
    assert [len(list_tools(servers / EVERYTHING)), len(listed)] == [13, 27]

    async def offered() -> list[dict[str, Any]]:
        session = ToolSession(ToolSet(combine_tools(listed)))
        async with (
            serve_tools(session) as access,
            httpx2.AsyncClient(headers=access.headers) as http,
            Client(streamable_http_client(access.address("suite"), http_client=http)) as client,
        ):
            found = await client.list_tools()
        return [
            tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in found.tools
        ]

    expected = sorted((tool.listing() for tool in listed), key=lambda tool: tool["name"])
    assert asyncio.run(offered()) == expected


def record(folder: Path, plan: Any, *server: str) -> Any:
    """The entries that are recorded when an agent makes these calls."""
    files = {
        "EVAL.yaml": "name: shop\ntests: [{id: a, input: Do it., assert: [{type: equals, value: x}]}]\n",
        "agent.py": Path(tool_agent.__file__).read_text("utf-8"),
        "plan.json": json.dumps(plan),
        ".agentv/targets.yaml": "- {name: default, provider: cli, command: [python3, agent.py, plan.json]}\n",
    }
    repository = Repository.create(folder / "repository", files)
    done = command.run(repository.path, "record", "EVAL.yaml", "--", *server)
    assert done.code == 0, done.err
    entries = yaml.safe_load((repository.path / "tools/suite.yaml").read_text())
    return {entry["name"]: entry["replies"] for entry in entries}


def test_git__is_recorded(servers: Path, tmp_path: Path) -> None:
    plan = [["git_status", {"repo_path": "."}], ["git_log", {"repo_path": "/nowhere"}]]
    found = record(tmp_path, plan, str(servers / GIT))
    (status,), (log,) = found["git_status"], found["git_log"]
    assert status["when"] == {"repo_path": "."}
    assert "working tree" in status["reply"] or "Untracked" in status["reply"]
    assert "error" in log


def test_everything__is_recorded_without_the_environment(servers: Path, tmp_path: Path) -> None:
    plan: Any = [
        ["echo", {"message": "a: [b]"}],
        ["get-sum", {"a": 2, "b": 3}],
        ["get-tiny-image", {}],
        ["get-structured-content", {"location": "Chicago"}],
    ]
    found = record(tmp_path, plan, str(servers / EVERYTHING))
    assert found["echo"] == [{"when": {"message": "a: [b]"}, "reply": "Echo: a: [b]"}]
    assert found["get-sum"][0]["reply"] == "The sum of 2 and 3 is 5."
    assert "image" in found["get-tiny-image"][0]["reply"]
    assert set(found["get-structured-content"][0]["reply"]) >= {"temperature", "conditions"}
