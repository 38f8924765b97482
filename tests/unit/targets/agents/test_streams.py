"""The streams of the agents: those that the real programs wrote, with figures counted by hand, and
events (`agent_events.yaml`) of which there is no recording."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.trace import Trace
from tests.support.agent_programs import STREAMS, AgentRun, lines, recorded

EVENTS = yaml.safe_load((STREAMS.parent / "agent_events.yaml").read_text())


def agent_of(name: str) -> str:
    return name.removeprefix("raw-").partition("-")[0]


def printing(tmp_path: Path, name: str, code: int = 0) -> AgentRun:
    return AgentRun(agent_of(name), tmp_path).printing(recorded(name), code)


@dataclass(frozen=True)
class Counted:
    """Figures of a stream: model calls; tokens in, out, cached; cost; tool calls as name, arguments
    and whether they were refused; the answer."""

    calls: int | None
    tokens: tuple[int | None, int | None, int | None]
    cost: float | None
    tools: tuple[tuple[str, Any, bool], ...]
    answer: str


def run(command: str, description: str, *, refused: bool = False) -> tuple[str, Any, bool]:
    return "Bash", {"command": command, "description": description}, refused


def bash(command: str) -> tuple[str, Any, bool]:
    return "Bash", {"command": command}, False


UNKNOWN = (None, None, None)
FIND_ORDER = ("mcp__shop__find_order", {"order": 2077}, False)
NO_MCP = (
    "NO MCP TOOL among exec_command,write_stdin,list_mcp_resources,list_mcp_resource_templates,"
    "read_mcp_resource,request_user_input,view_image,get_goal,create_goal,update_goal"
)
SUB_AGENT = {
    "description": "ask",
    "prompt": "SUBTASK-GO",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
DENIED = "touch /home/dev/never-allowed-file && curl -s http://127.0.0.1:4030/health"
WRITTEN = {"file_path": "/description>/new.txt", "content": "written by agent\n"}

ANSWERED = {
    # One message of 120 in, 7 out.
    "claude-PONG": Counted(1, (120, 7, 0), 0.000775, (), "pong"),
    # Two messages (two lines have one id): 200 + 260 in, 20 + 11 out.
    "claude-SHELL": Counted(
        2,
        (460, 31, 0),
        0.003075,
        (run("echo hello-from-shell", "say hello"),),
        "It printed hello-from-shell.",
    ),
    # A thought and a text with one id are one call.
    "raw-claude-THINK": Counted(1, (120, 70, 0), 0.00141, (), "thought about it"),
    # 250 + 300 in, 40 + 10 out.
    "raw-claude-MCP": Counted(2, (550, 50, 0), 0.0024, (FIND_ORDER,), "Order 2077 is shipped."),
    # The main agent: 250 + 300 in, 40 + 10 out; its sub-agent, whose message is not in the stream:
    # 50 in, 5 out. Three calls in all.
    "raw-claude-SUB": Counted(
        3, (600, 55, 0), 0.002625, (("Agent", SUB_AGENT, False),), "The sub-agent says 42."
    ),
    # 250 + 10 in, 40 + 1 out; the call is in `permission_denials`.
    "raw-claude-DENY": Counted(
        2, (260, 41, 0), 0.001395, (run(DENIED, "run", refused=True),), "Not allowed."
    ),
    # The agent says that it wrote the file; it was not permitted to.
    "raw-claude-EDIT": Counted(2, (550, 50, 0), 0.0024, (("Write", WRITTEN, True),), "I wrote it."),
    # 300 + 360 in, 30 + 12 out; it needed an approval.
    "raw-claude-FAILTOOL": Counted(
        2,
        (660, 42, 0),
        0.00261,
        (run("echo oops >&2; exit 3", "run", refused=True),),
        "It failed with 3.",
    ),
    # Codex's stream has the usage of the turn, and neither model calls nor a cost.
    "codex-PONG": Counted(None, (120, 7, 0), None, (), "pong"),
    # Two calls of the model made three items.
    "codex-SHELL": Counted(
        None,
        (460, 31, 0),
        None,
        (bash("echo hello-from-shell"),),
        "It printed hello-from-shell.",
    ),
    # Three calls of the model made six items, three of them commands.
    "raw-codex-MULTI": Counted(
        None,
        (600, 60, 150),
        None,
        (bash("echo a"), bash("echo b"), bash("exit 7")),
        "Done: all three.",
    ),
    "raw-codex-MCP": Counted(None, (1, 1, 0), None, (), NO_MCP),
    "raw-codex-NSMCP": Counted(None, (400, 40, 100), None, (FIND_ORDER,), "Order is shipped."),
    "raw-codex-NOTOOL": Counted(None, (400, 40, 100), None, (), "after unknown tool"),
    "raw-codex-PATCH": Counted(None, (400, 40, 100), None, (), "patched"),
    "raw-codex-PLAN": Counted(None, (400, 40, 100), None, (), "planned"),
    "raw-codex-WEB": Counted(
        None, (200, 20, 50), None, (("WebSearch", {"query": "weather oslo"}, False),), "sunny"
    ),
    # Copilot: one `model.call_finished`; its stream has no tokens.
    "copilot-PONG": Counted(1, UNKNOWN, None, (), "pong"),
    "copilot-SHELL": Counted(
        2,
        UNKNOWN,
        None,
        (run("echo hello-from-shell", "say hello"),),
        "It printed hello-from-shell.",
    ),
    "raw-copilot-MCP": Counted(2, UNKNOWN, None, (FIND_ORDER,), "Order 2077 is shipped."),
    # Of 150 tokens 100 were read, 20 are the answer, and 30 thoughts that are in the total only.
    "gemini-PONG": Counted(None, (100, 50, 30), None, (), "pong"),
    "gemini-TOOLS": Counted(
        None,
        (810, 61, 50),
        None,
        (
            ("Read", {"file_path": "notes.txt"}, False),
            FIND_ORDER,
            ("Write", {"file_path": "new.txt", "content": "x"}, True),
            bash("exit 1"),
            ("Agent", {"subagent_type": "generalist", "prompt": "look"}, False),
            ("Skill", {"skill": "pdf"}, False),
        ),
        "done",
    ),
}

#: The class of the error, whether it is a rate limit, and a part of its message.
FAILED: dict[str, tuple[type[AttemptError], bool, str]] = {
    "raw-claude-E400": (AttemptError, False, "Prompt is too long"),
    "raw-claude-E401": (TargetDead, False, "Invalid API key"),
    "raw-claude-E403": (TargetDead, False, "API Error: 403 forbidden"),
    "raw-claude-E404": (TargetDead, False, "There's an issue with the selected model"),
    "raw-claude-E429": (TransientError, True, "Request rejected (429) · rate limited"),
    "raw-claude-E429Q": (TargetDead, False, "You exceeded your current quota"),
    "raw-claude-E500": (TransientError, False, "API Error: 500 boom"),
    "raw-claude-E529": (TransientError, False, "API Error: 529 Overloaded"),
    "raw-claude-DROP": (TransientError, False, "ECONNRESET"),
    "raw-claude-TRUNC": (TransientError, False, "ECONNRESET"),
    "raw-claude-MALF": (AttemptError, False, "Failed to parse JSON"),
    "raw-claude-LOOP": (AttemptError, False, "Reached maximum number of turns (3)"),
    "raw-claude-EMPTY": (AttemptError, False, "it succeeded without an answer"),
    "raw-codex-CTX": (AttemptError, False, "ran out of room in the model's context window"),
    "raw-codex-CUT": (TransientError, False, "stream disconnected before completion"),
    "raw-codex-H400": (AttemptError, False, "Codex: Unsupported parameter"),
    "raw-codex-H401": (TargetDead, False, "401 Unauthorized: Incorrect API key provided"),
    "raw-codex-H403": (TargetDead, False, "403 Forbidden: Country not supported"),
    "raw-codex-H404": (TargetDead, False, "The model `gpt-5.1-codex` does not exist"),
    "raw-codex-H429": (TransientError, True, "last status: 429 Too Many Requests"),
    "raw-codex-H429U": (TargetDead, False, "hit your usage limit"),
    "raw-codex-H500": (TransientError, False, "currently experiencing high demand"),
    "raw-codex-H503": (TransientError, False, "at capacity"),
    "raw-codex-INC": (AttemptError, False, "reason: max_output_tokens"),
    "raw-codex-POLICY": (AttemptError, False, "Your prompt was flagged."),
    "raw-codex-QUOTA": (TargetDead, False, "Quota exceeded."),
    "raw-codex-RATE": (TransientError, True, "rate limit exceeded: Rate limit reached"),
    "raw-codex-SRV": (TransientError, False, "at capacity"),
    "raw-copilot-DROP": (TransientError, False, "connection closed before message completed"),
    "raw-copilot-TRUNC": (TransientError, False, "connection closed before message completed"),
    "raw-copilot-MALF": (TransientError, False, "was not valid JSON"),
    "raw-copilot-E400": (AttemptError, False, "rejected the prompt as too long"),
    "raw-copilot-E401": (TargetDead, False, "Authentication failed with provider"),
    "raw-copilot-E403": (TargetDead, False, "Authentication failed with provider"),
    "raw-copilot-E404": (TargetDead, False, "Model 'gpt-4.1' not found"),
    "raw-copilot-E429": (TransientError, True, "429 rate limited"),
    "raw-copilot-E500": (TransientError, False, "500 boom"),
    "raw-copilot-EMPTY": (AttemptError, False, "No response was returned."),
    "gemini-KEY": (TargetDead, False, "API key not valid"),
}


def test_streams__each_has_a_test() -> None:
    names = {path.stem for path in STREAMS.glob("*.jsonl")} - {"otel"}
    assert names == ANSWERED.keys() | FAILED.keys()


def tools(trace: Trace) -> tuple[tuple[str, Any, bool], ...]:
    return tuple((call.name, call.arguments, call.refused) for call in trace.tool_calls or ())


@pytest.mark.parametrize("name", ANSWERED)
def test_answered__the_figures_counted_by_hand(name: str, tmp_path: Path) -> None:
    expected, trace = ANSWERED[name], printing(tmp_path, name).answer()
    assert trace.llm_call_count == expected.calls
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
    ) == expected.tokens
    assert trace.usage.cost_usd == pytest.approx(expected.cost)
    assert tools(trace) == expected.tools
    assert trace.output == expected.answer


@pytest.mark.parametrize("name", FAILED)
def test_failed__each_error_is_what_it_is(name: str, tmp_path: Path) -> None:
    expected, limited, words = FAILED[name]
    error = printing(tmp_path, name, 0 if name.endswith("EMPTY") else 1).refused()
    assert type(error) is expected
    assert getattr(error, "limited", False) is limited
    assert error.kind == "target"
    assert words in str(error)


def test_failed__the_wait_of_a_rate_limit(tmp_path: Path) -> None:
    error = printing(tmp_path, "raw-codex-RATE", 1).refused()
    assert isinstance(error, TransientError)
    assert error.retry_after == 1.2


@pytest.mark.parametrize(
    ("name", "calls", "tokens", "tool_calls"),
    [
        # Three turns with one call of a tool each: 3 x 100 in, 3 x 10 out.
        ("raw-claude-LOOP", 3, (300, 30, 0), 3),
        # Two replies without a visible word, so that no message shows their calls.
        ("raw-claude-EMPTY", None, (240, 2, 0), 0),
    ],
)
def test_failed__what_was_spent_before(
    name: str, calls: int, tokens: tuple[int, int, int], tool_calls: int, tmp_path: Path
) -> None:
    spent = printing(tmp_path, name).refused().spent
    assert (
        spent.usage.input_tokens,
        spent.usage.output_tokens,
        spent.usage.cached_tokens,
    ) == tokens
    assert (spent.llm_call_count, len(spent.tool_calls)) == (calls, tool_calls)


@pytest.mark.parametrize(
    ("name", "duration"),
    [
        # `totalDurationMs` of the sub-agent.
        ("raw-claude-SUB", 46),
        # From 23:52:35.346 to 23:52:35.384.
        ("copilot-SHELL", 38),
        # From 23:57:14.012 to 23:57:14.017.
        ("raw-copilot-MCP", 5),
    ],
)
def test_answered__durations_of_the_stream(name: str, duration: float, tmp_path: Path) -> None:
    (call,) = printing(tmp_path, name).answer().tool_calls or ()
    assert call.duration_ms == duration


@pytest.mark.parametrize("name", ["claude-SHELL", "raw-claude-MCP", "codex-SHELL"])
def test_answered__durations_by_arrival_where_the_stream_has_none(
    name: str, tmp_path: Path
) -> None:
    (call,) = printing(tmp_path, name).answer().tool_calls or ()
    assert call.duration_ms is not None
    assert call.duration_ms >= 0


def test_answered__a_refused_call_has_no_duration(tmp_path: Path) -> None:
    (call,) = printing(tmp_path, "raw-claude-EDIT").answer().tool_calls or ()
    assert call.duration_ms is None


def test_events_file__has_copilots_tokens(tmp_path: Path) -> None:
    """Two calls of the model: 200 + 260 in, 20 + 11 out; the span of the agent repeats the sum."""
    run = AgentRun("copilot", tmp_path).printing(recorded("copilot-SHELL"), events=recorded("otel"))
    usage = run.answer().usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (460, 31, None)


@pytest.mark.parametrize("make", ["ln -s {target} $F", "mkfifo $F", "mkdir $F"])
def test_events_file__only_a_regular_file_is_read(make: str, tmp_path: Path) -> None:
    """Attack: the agent puts a link there to read a file through the action, or a pipe that blocks
    it."""
    make = make.format(target=STREAMS / "otel.jsonl")
    make = make.replace("$F", '"$COPILOT_OTEL_FILE_EXPORTER_PATH"')
    command = ["sh", "-c", f"{make}; cat {STREAMS / 'copilot-SHELL.jsonl'}"]
    assert AgentRun("copilot", tmp_path).answer(command=command).usage.input_tokens is None


def test_events_file__the_workflow_may_want_it_elsewhere(tmp_path: Path) -> None:
    own = {"COPILOT_OTEL_FILE_EXPORTER_PATH": str(tmp_path / "mine.jsonl")}
    assert own.items() <= AgentRun("copilot", tmp_path, own).seen().environment.items()


def test_codex__reads_are_hidden(tmp_path: Path) -> None:
    assert "Read" in printing(tmp_path, "codex-SHELL").answer().hidden_tools
    for name in ("claude-SHELL", "copilot-SHELL"):
        assert printing(tmp_path, name).answer().hidden_tools == ()


REJECTED = (
    "2026-11-22T09:26:21Z ERROR codex_core::tools::router: error=exec_command failed: "
    "CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'rm -rf a'` rejected: "
    'not permitted\\")" }\n'
)


def test_codex__refused_calls_on_standard_error_are_warnings(tmp_path: Path) -> None:
    run = AgentRun("codex", tmp_path).printing(recorded("codex-PONG"), says=REJECTED * 2)
    expected = "the agent refused a call: `/bin/bash -lc 'rm -rf a'` rejected: not permitted"
    assert run.answer().warnings == (expected,)
    assert printing(tmp_path, "codex-PONG").answer().warnings == ()


def described(trace: Trace) -> dict[str, Any]:
    usage = trace.usage
    return {
        "output": trace.output,
        "calls": [
            [call.name, call.arguments, call.output, *(["refused"] if call.refused else [])]
            for call in trace.tool_calls or ()
        ],
        "durations": [call.duration_ms for call in trace.tool_calls or ()],
        "tokens": [usage.input_tokens, usage.output_tokens, usage.cached_tokens],
        "cost": usage.cost_usd,
    }


@pytest.mark.parametrize("case", EVENTS["answered"], ids=lambda case: case["name"])
def test_events__as_a_trace(case: dict[str, Any], tmp_path: Path) -> None:
    run = AgentRun(case["agent"], tmp_path).printing(lines(*case["events"]))
    found = described(run.answer())
    assert {name: found[name] for name in case["trace"]} == case["trace"]


@pytest.mark.parametrize("case", EVENTS["failed"], ids=lambda case: case["name"])
def test_events__as_an_error(case: dict[str, Any], tmp_path: Path) -> None:
    error = AgentRun(case["agent"], tmp_path).printing(lines(*case["events"]), 1).refused()
    assert [type(error).__name__, str(error)] == case["error"]
    assert getattr(error, "limited", False) is case.get("limited", False)
