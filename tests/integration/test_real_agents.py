"""The real command-line agents against a model server on loopback: figures as the server gave them.

Run with `pytest -m slow tests/integration/test_real_agents.py`. npm installs the programs into a
temporary folder; `AGENT_PROGRAMS` names a folder where they are installed already."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.trace import Trace, list_calls
from tests.support import data, mcp_shop, real_agents, targets
from tests.support.agent_models import AgentModels, Call, Turn
from tests.support.stand_in import Sent

SERVERS = {"shop": {"command": sys.executable, "args": [mcp_shop.__file__]}}
AGENTS = data.read("real_agents.yaml")
#: In the first message of the main agent, and of its sub-agent (in the data).
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
            "args": [*AGENTS[self.name]["args"], *args],
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


each = pytest.mark.parametrize("name", AGENTS)


@each
def test_run__calls_tokens_and_durations(
    name: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    """Each turn reads 100 tokens and 20 cached ones, and writes 10."""
    calls = AGENTS[name]["calls"]
    turns = [
        Turn("I look." if number == 0 else "", (Call(*call),), cached=20)
        for number, (call, _) in enumerate(calls)
    ]
    with AgentModels({MAIN: [*turns, Turn("all done", cached=20)]}) as server:
        trace = Agent(name, programs, tmp_path, server, codex_home).run()
    assert trace.output == "all done"
    called = [[call.name, call.arguments, call.refused] for call in trace.tool_calls or ()]
    assert called == [expected for _, expected in calls]
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


@pytest.mark.parametrize("name", [name for name in AGENTS if "sub_agent" in AGENTS[name]])
def test_run__sub_agents(name: str, programs: Path, tmp_path: Path, codex_home: Path) -> None:
    """The main agent: 250 + 300 in, 40 + 10 out. Its sub-agent: 50 + 60 in, 5 + 6 out."""
    call, inner, arguments = AGENTS[name]["sub_agent"]
    scripts = {
        MAIN: [
            Turn(calls=(Call(*call),), tokens_in=250, tokens_out=40),
            Turn("it says 42", tokens_in=300, tokens_out=10),
        ],
        SUB: [
            Turn(calls=(Call(*inner),), tokens_in=50, tokens_out=5),
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


@each
def test_failure__a_rejected_key_ends_the_target(
    name: str, programs: Path, tmp_path: Path, codex_home: Path
) -> None:
    with AgentModels({}, Sent(*AGENTS[name]["refusal"])) as server:
        error = Agent(name, programs, tmp_path, server, codex_home).refused(timeout=300)
    assert isinstance(error, TargetDead), error
