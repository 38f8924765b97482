"""The real command-line agents against a model server on loopback: figures as the server gave them.

Run with `pytest -m slow tests/integration/test_real_agents.py`. npm installs the programs into a
temporary folder; `AGENT_PROGRAMS` names a folder where they are installed already."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.trace import Trace, list_calls
from tests.support import mcp_shop, real_agents, targets
from tests.support.agent_models import AgentModels, Call, Turn
from tests.support.stand_in import Sent

SERVERS = {"shop": {"command": sys.executable, "args": [mcp_shop.__file__]}}
#: In the first message of the main agent, and of its sub-agent.
MAIN, SUB = "CASE-4711", "ERRAND-4711"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Agent:
    """A real agent with a home of its own, which talks to `server`."""

    name: str
    programs: Path
    home: Path
    server: AgentModels
    codex_home: Path

    def run(self, *args: str, timeout: float = 100) -> Trace:
        """The trace of a run; `args` are more words for the command line."""
        work = self.home / "work"
        work.mkdir(exist_ok=True)
        (work / "notes.txt").write_text("the secret word is plum\n")
        variables = {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
        }
        definition: dict[str, Any] = {
            "provider": f"{self.name}-cli",
            "args": [*_WORDS[self.name], *args],
            "timeout_seconds": timeout,
        }
        if model := real_agents.MODELS.get(self.name):
            definition["model"] = model
        (work / "servers.json").write_text(json.dumps({"mcpServers": SERVERS}))
        configured = real_agents.configure(
            self.name, self.server.url, self.home, self.codex_home, SERVERS
        )
        around = targets.context(configured, environment=variables)
        question = f"{MAIN} please"
        return targets.ask(definition, work, question, around=around, timeout=timeout)

    def refused(self, *args: str, timeout: float = 100) -> AttemptError:
        """The error of a run."""
        with pytest.raises(AttemptError) as caught:
            self.run(*args, timeout=timeout)
        return caught.value


_WORDS = {
    "claude": (
        "--allowedTools",
        "Bash(sleep:*)",
        "mcp__shop__find_order",
        "--mcp-config",
        "servers.json",
    ),
    "codex": (),
    "copilot": ("--allow-tool", "shop", "--allow-tool", "shell(sleep)"),
    "gemini": ("--approval-mode", "auto_edit"),
}


ORDER = {"order": 2077}
SHELL = {"command": "echo hello", "description": "says hello"}
#: For each agent its own calls, one in each turn: the names and arguments of the model, and those
#: of the trace with whether they are refused.
CALLS: Mapping[str, tuple[tuple[Call, tuple[str, Any, bool]], ...]] = {
    "claude": (
        (Call("Bash", SHELL), ("Bash", SHELL, False)),
        (Call("mcp__shop__find_order", ORDER), ("mcp__shop__find_order", ORDER, False)),
        (
            Call("Write", {"file_path": "new.txt", "content": "x"}),
            ("Write", {"file_path": "new.txt", "content": "x"}, True),
        ),
        (Call("NotebookRead", {}), ("NotebookRead", {}, True)),
    ),
    "codex": (
        (
            Call("exec_command", {"cmd": "echo 'hello' | head -1"}),
            ("Bash", {"command": "echo 'hello' | head -1"}, False),
        ),
        (Call("find_order", ORDER, "mcp__shop"), ("mcp__shop__find_order", ORDER, False)),
        # It writes, so that somebody would have to approve it.
        (Call("cancel_order", ORDER, "mcp__shop"), ("mcp__shop__cancel_order", ORDER, True)),
    ),
    "copilot": (
        (Call("bash", SHELL), ("Bash", SHELL, False)),
        (Call("shop-find_order", ORDER), ("mcp__shop__find_order", ORDER, False)),
        (
            Call("edit", {"path": "notes.txt", "old_str": "plum", "new_str": "fig"}),
            (
                "Edit",
                {"file_path": "notes.txt", "old_string": "plum", "new_string": "fig"},
                True,
            ),
        ),
        (Call("no_such_tool", {}), ("no_such_tool", {}, True)),
    ),
    "gemini": (
        (
            Call("read_file", {"file_path": "notes.txt"}),
            ("Read", {"file_path": "notes.txt"}, False),
        ),
        (
            Call("mcp_shop_find_order", {**ORDER, "wait_for_previous": True}),
            ("mcp__shop__find_order", ORDER, False),
        ),
        (
            Call("mcp_shop_find_order", {"order": "x"}),
            ("mcp__shop__find_order", {"order": "x"}, True),
        ),
        # The mode of approval does not offer the shell.
        (Call("run_shell_command", SHELL), ("Bash", SHELL, True)),
    ),
}
each = pytest.mark.parametrize("name", real_agents.PACKAGES)


@each
def test_run__calls_tokens_and_durations(
    name: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    """Each turn reads 100 tokens and 20 cached ones, and writes 10."""
    turns = [
        Turn("I look." if number == 0 else "", (call,), cached=20)
        for number, (call, _) in enumerate(CALLS[name])
    ]
    with AgentModels({MAIN: [*turns, Turn("all done", cached=20)]}) as server:
        trace = Agent(name, programs, tmp_path, server, codex_home).run()
    assert trace.output == "all done"
    called = [(call.name, call.arguments, call.refused) for call in trace.tool_calls or ()]
    assert called == [expected for _, expected in CALLS[name]]
    count = len(turns) + 1
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (120 * count, 10 * count)
    assert trace.usage.cached_tokens == 20 * count
    assert trace.llm_call_count == (count if name in ("claude", "copilot") else None)
    durations = [call.duration_ms for call in trace.made_calls or ()]
    assert (None in durations) is (name == "codex")  # it reports the start of a call late
    assert (trace.usage.cost_usd is not None) is (name == "claude")
    assert ("Read" in trace.hidden_tools) is (name == "codex")


def test_run__codex_names_refused_calls_on_standard_error(
    programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    remove = Call("exec_command", {"cmd": "rm -rf notes.txt"})
    with AgentModels({MAIN: [Turn(calls=(remove,)), Turn("done")]}) as server:
        trace = Agent("codex", programs, tmp_path, server, codex_home).run()
    assert trace.tool_calls == ()
    (warning,) = trace.warnings
    assert warning.startswith("the agent refused a call: `/bin/bash -lc 'rm -rf notes.txt'`")


PROMPT = f"{SUB} now"
SUB_AGENTS: Mapping[str, tuple[Call, Call, Mapping[str, Any]]] = {
    "claude": (
        Call(
            "Agent",
            {
                "description": "ask",
                "prompt": PROMPT,
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        ),
        Call("Read", {"file_path": "notes.txt"}),
        {
            "description": "ask",
            "prompt": PROMPT,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
    ),
    "codex": (
        Call("spawn_agent", {"message": PROMPT}, "multi_agent_v1"),
        Call("exec_command", {"cmd": "echo sub"}),
        {"prompt": PROMPT},
    ),
    "copilot": (
        Call(
            "task",
            {
                "description": "ask",
                "prompt": PROMPT,
                "agent_type": "general-purpose",
                "name": "helper",
                "mode": "sync",
            },
        ),
        Call("view", {"path": "notes.txt"}),
        {
            "description": "ask",
            "prompt": PROMPT,
            "subagent_type": "general-purpose",
            "name": "helper",
            "mode": "sync",
        },
    ),
}


@pytest.mark.parametrize("name", SUB_AGENTS)
def test_run__sub_agents(name: str, programs: Path, tmp_path: Path, codex_home: Path) -> None:
    """The main agent: 250 + 300 in, 40 + 10 out. Its sub-agent: 50 + 60 in, 5 + 6 out."""
    call, inner, arguments = SUB_AGENTS[name]
    scripts = {
        MAIN: [
            Turn(calls=(call,), tokens_in=250, tokens_out=40),
            Turn("it says 42", tokens_in=300, tokens_out=10),
        ],
        SUB: [
            Turn(calls=(inner,), tokens_in=50, tokens_out=5),
            Turn("42", tokens_in=60, tokens_out=6),
        ],
    }
    with AgentModels(scripts) as server:
        trace = Agent(name, programs, tmp_path, server, codex_home).run()
    first, *others = list_calls(trace.messages)
    assert (trace.tool_calls is None) is (name == "codex")
    assert (first.name, first.arguments) == ("Agent", arguments)
    if name == "codex":  # its stream has neither the tokens nor the calls of sub-agents
        figures: tuple[int | None, ...] = (None, None, None)
        assert others == []
    else:
        figures = (660, 61, 4)
        assert [call.name for call in others] == ["Read"]
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.llm_call_count) == figures


REFUSALS = {
    "claude": Sent(
        {"type": "error", "error": {"type": "authentication_error", "message": "bad key"}}, 401
    ),
    "codex": Sent({"error": {"message": "Incorrect API key provided", "code": "bad"}}, 401),
    "copilot": Sent({"error": {"message": "bad key"}}, 401),
    "gemini": Sent(
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
            }
        },
        400,
    ),
}


@each
def test_failure__a_rejected_key_ends_the_target(
    name: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    with AgentModels({}, REFUSALS[name]) as server:
        error = Agent(name, programs, tmp_path, server, codex_home).refused(timeout=300)
    assert isinstance(error, TargetDead), error
