"""How each command-line agent gets the MCP servers and the commands of a suite."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.tools import ToolAccess
from agentevals_action.targets.agents.headless import AgentTarget
from tests.support import suites, targets

ACCESS = ToolAccess("http://127.0.0.1:1", "t0ken", ("shop", "suite"), {"gh": "#!/bin/sh\n"})
#: The words, variables and files of each agent; FOLDER stands for that of the call.
EXPECTED: dict[str, tuple[list[str], dict[str, str], str, dict[str, Any], dict[str, Any]]] = {
    "claude": (
        [
            "--strict-mcp-config",
            "--mcp-config=FOLDER/servers.json",
            "--allowedTools=mcp__shop,mcp__suite",
        ],
        {},
        "servers.json",
        {"alwaysLoad": True},
        {},
    ),
    "copilot": (
        [
            "--disable-builtin-mcps",
            "--additional-mcp-config",
            "@FOLDER/servers.json",
            *("--allow-tool", "shop", "--allow-tool", "suite"),
        ],
        {"COPILOT_HOME": "FOLDER/home"},
        "servers.json",
        {"tools": ["*"]},
        {},
    ),
    "gemini": (
        ["--allowed-mcp-server-names=shop", "--allowed-mcp-server-names=suite"],
        {"GEMINI_CLI_HOME": "FOLDER"},
        ".gemini/settings.json",
        {"trust": True},
        {"security": {"auth": {"selectedType": "gemini-api-key"}}},
    ),
}


def attached(
    agent: str, folder: Path, access: ToolAccess = ACCESS, **variables: str
) -> tuple[list[str], dict[str, str]]:
    """The words and variables, with FOLDER for the folder of the call."""
    target = targets.target({"provider": f"{agent}-cli"})
    assert isinstance(target, AgentTarget)
    words, own = target.tool_arguments(access, folder, variables)
    texts = [word.replace(str(folder), "FOLDER") for word in words]
    return texts, {name: value.replace(str(folder), "FOLDER") for name, value in own.items()}


@pytest.mark.parametrize("agent", EXPECTED)
def test_tool_arguments__name_a_file_with_the_servers(agent: str, tmp_path: Path) -> None:
    words, variables, file, fields, settings = EXPECTED[agent]
    assert attached(agent, tmp_path, GEMINI_API_KEY="k") == (words, variables)
    headers = {"Authorization": "Bearer t0ken"}
    servers = {
        name: {"type": "http", "url": f"{ACCESS.url}/mcp/{name}", "headers": headers, **fields}
        for name in ACCESS.servers
    }
    assert json.loads((tmp_path / file).read_text()) == {**settings, "mcpServers": servers}


@pytest.mark.parametrize("agent", EXPECTED)
def test_tool_arguments__commands_alone_change_no_server(agent: str, tmp_path: Path) -> None:
    commands = ToolAccess("http://127.0.0.1:1", "t0ken", (), ACCESS.stubs)
    assert attached(agent, tmp_path, commands) == ([], {})


def test_tool_arguments__gemini_keeps_another_login(tmp_path: Path) -> None:
    attached("gemini", tmp_path, GEMINI_API_KEY="k", GOOGLE_GENAI_USE_VERTEXAI="true")
    assert "security" not in json.loads((tmp_path / ".gemini/settings.json").read_text())


def test_tool_arguments__codex_has_the_servers_in_its_options(tmp_path: Path) -> None:
    (ignored, *words), variables = attached("codex", tmp_path)
    assert (ignored, set(words[::2]), variables) == ("--ignore-user-config", {"-c"}, {})
    options = tomllib.loads("\n".join(words[1::2]))
    assert options == {
        "allow_login_shell": False,
        "mcp_servers": {
            name: {
                "url": f"{ACCESS.url}/mcp/{name}",
                "bearer_token_env_var": "AGENTEVALS_MCP_TOKEN",
                "required": True,
                "default_tools_approval_mode": "approve",
            }
            for name in ACCESS.servers
        },
    }


SUITE = """\
name: shop
tools: [{name: refund, parameters: {}, replies: [{reply: done}]}]
commands: [{name: gh, replies: [{stdout: x}]}]
tests: [{id: a, input: hi, assert: [{type: contains, value: done}]}]
"""
#: Arguments with which a suite has tools and commands, and a warning.
ARGUMENTS: dict[str, tuple[str, list[str], str]] = {
    "Codex without a sandbox": ("codex", ["--sandbox=danger-full-access"], ""),
    "Codex with a network": (
        "codex",
        ["-c", "sandbox_workspace_write.network_access=true", "-s", "workspace-write"],
        "",
    ),
    "Claude Code with a server": ("claude", ["--mcp-config", "mine.json"], "--mcp-config"),
    "Claude Code": ("claude", ["--allowedTools", "Bash(gh:*)"], ""),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_suite__an_agent_has_no_other_servers(case: str, tmp_path: Path) -> None:
    agent, args, named = ARGUMENTS[case]
    target = {"name": "default", "provider": f"{agent}-cli", "args": args}
    files = {"EVAL.yaml": SUITE, ".agentv/targets.yaml": json.dumps([target])}
    found = suites.load_valid(suites.write(tmp_path, files)).warnings
    expected = (
        f"the target `default` starts MCP servers that the suite does not answer ({named}); "
        "remove them from its `args`"
    )
    assert [str(warning).partition(": ")[2] for warning in found] == [expected] * bool(named)
