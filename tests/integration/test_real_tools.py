"""Tools that a suite answers, called by the real command-line agents against a model on
loopback."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, mcp_shop, real_agents
from tests.support.agent_models import AgentModels, Call, Turn
from tests.support.repositories import Repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SUITE = """\
name: shop
tools:
  - name: find_order
    description: Finds an order.
    parameters:
      type: object
      properties: {id: {type: integer}}
      required: [id]
      additionalProperties: false
    replies:
      - {when: {id: 2077}, reply: {state: delivered, days: 24}}
      - {error: order not found}
  - name: refund
    in: shop
    description: Refunds an order.
    parameters: {type: object, properties: {id: {type: integer}}}
    replies: [{reply: refunded}]
commands:
  - name: gh
    replies:
      - {when: {line: pr view 7 --json title}, stdout: "Fix the roof\n"}
      - {exit: 1}
tests:
  - id: refund
    input: CASE-1 please
    assert: [{type: regex, value: ".+"}]
"""
#: Servers of the user and of the repository, which do not start. The latter has a name of the
#: suite's.
SHOP = {"command": sys.executable, "args": [mcp_shop.__file__]}
USER_SERVERS = {"real": SHOP}
PROJECT = json.dumps({"mcpServers": {"suite": SHOP, "project": SHOP}})
CODEX = (
    'model="gpt-5.1-codex"',
    'model_provider="local"',
    'model_providers.local.name="local"',
    'model_providers.local.env_key="LOCAL_KEY"',
    'model_providers.local.wire_api="responses"',
)
#: How the model of each agent calls a tool of a server.
NAMED: Mapping[str, Callable[[str, str, Any], Call]] = {
    "claude": lambda server, tool, args: Call(f"mcp__{server}__{tool}", args),
    "codex": lambda server, tool, args: Call(tool, args, f"mcp__{server}"),
    "copilot": lambda server, tool, args: Call(f"{server}-{tool}", args),
    "gemini": lambda server, tool, args: Call(f"mcp_{server}_{tool}", args),
}


#: How the model of each agent calls the shell, and what permits it.
SHELLS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "claude": ("Bash", "command", ("--allowedTools", "Bash(gh:*)")),
    "codex": ("exec_command", "cmd", ("--sandbox", "danger-full-access")),
    "copilot": ("bash", "command", ("--allow-tool", "shell(gh:*)")),
    "gemini": ("run_shell_command", "command", ("--approval-mode", "yolo")),
}


def called(
    agent: str,
    programs: Path,
    folder: Path,
    codex_home: Path,
    turns: Sequence[Turn],
    *args: str,
) -> tuple[list[tuple[str, Any, bool]], AgentModels]:
    """The calls of the test's trace, and the model."""
    home = folder / "home"
    home.mkdir()
    (home / ".claude.json").write_text(json.dumps({"mcpServers": USER_SERVERS}))
    with AgentModels({"CASE-1": turns}) as server:
        variables = real_agents.configure(agent, server.url, home, codex_home, USER_SERVERS)
        if agent == "codex":  # the action leaves the user's settings out
            args = (*args, *(word for each in CODEX for word in ("-c", each)))
            args = (*args, "-c", f'model_providers.local.base_url="{server.url}/v1"')
        definition = {"name": "default", "provider": f"{agent}-cli", "args": args}
        if model := real_agents.MODELS.get(agent):
            definition["model"] = model
        files = {
            "EVAL.yaml": SUITE,
            ".agentv/targets.yaml": json.dumps([definition]),
            ".mcp.json": PROJECT,
            ".gemini/settings.json": PROJECT,
            ".codex/config.toml": f"[mcp_servers.suite]\ncommand = {json.dumps(sys.executable)}\n"
            f"args = {json.dumps(SHOP['args'])}\n",
        }
        made = Repository.create(folder / "repository", files)
        environ = {**variables, "HOME": str(home), "PATH": f"{programs}:{command.PATH}"}
        done = command.run(made.path, "run", "--env", ",".join(variables), env=environ, timeout=300)
    assert done.code == 0, done.out + done.err
    (row,) = (made.path / "agentevals-report/results.jsonl").read_text().splitlines()
    (sample,) = json.loads(row)["samples"]
    calls = [
        (call["tool"], call["input"], call.get("refused", False))
        for message in sample["outputMessages"]
        for call in message.get("tool_calls", ())
    ]
    return calls, server


@pytest.mark.parametrize("agent", NAMED)
def test_run__an_agent_calls_the_tools_of_the_suite_alone(
    agent: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    named = NAMED[agent]
    both = [named("suite", "find_order", {"id": number}) for number in (2077, 9)]
    turns = [
        Turn(calls=tuple(both)),
        Turn(calls=(named("suite", "find_order", {"id": "x"}),)),
        Turn(calls=(named("suite", "cancel", {}),)),
        Turn(calls=(named("shop", "refund", {"id": 2077}),)),
        Turn("all done"),
    ]
    calls, server = called(agent, programs, tmp_path, codex_home, turns, *SHELLS[agent][2])
    assert calls == [
        ("find_order", {"id": 2077}, False),
        ("find_order", {"id": 9}, False),
        ("find_order", {"id": "x"}, True),
        # Codex names it on standard error alone.
        *([] if agent == "codex" else [("cancel", {}, True)]),
        ("mcp__shop__refund", {"id": 2077}, False),
    ]
    assert not any("cancel_order" in name for name in server.tools())


@pytest.mark.parametrize("agent", SHELLS)
def test_run__an_agent_calls_a_command_of_the_suite(
    agent: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    shell, field, args = SHELLS[agent]
    words = {field: "gh pr view 7 --json title", "description": "asks"}
    turns = [Turn(calls=(Call(shell, words),)), Turn(finds=r"Fix the roof|all done")]
    calls, server = called(agent, programs, tmp_path, codex_home, turns, *args)
    made = {"line": "pr view 7 --json title", "args": ["pr", "view", "7", "--json", "title"]}
    assert ("gh", made, False) in calls
    assert "Fix the roof" in str(server.requests[-1].data)


@pytest.mark.parametrize("agent", NAMED)
def test_run__an_agent_that_calls_no_tool_has_them(
    agent: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    """An agent that did not ask for the list of its tools would be an error of the test."""
    args = SHELLS[agent][2]
    calls, server = called(agent, programs, tmp_path, codex_home, [Turn("done")], *args)
    assert calls == []
    first = next(received for received in server.requests if b"CASE-1" in received.data)
    assert b"find_order" in first.data
