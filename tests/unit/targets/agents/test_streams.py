"""The streams of the agents: those that the real programs wrote, with figures counted by hand, and
events (`agent_events.yaml`) of which there is no recording."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import ToolCall
from agentevals_action.model.trace import Trace, list_calls
from tests.support import data
from tests.support.agent_programs import STREAMS, AgentRun, lines, recorded

EVENTS = data.read("agent_events.yaml")
RECORDED = data.read("agent_streams.yaml")


def agent_of(name: str) -> str:
    return name.removeprefix("raw-").partition("-")[0]


def printing(tmp_path: Path, name: str, code: int = 0) -> AgentRun:
    return AgentRun(agent_of(name), tmp_path).printing(recorded(name), code)


def test_streams__each_has_a_test() -> None:
    names = {path.stem for path in STREAMS.glob("*.jsonl")} - {"otel"}
    assert names == RECORDED["answered"].keys() | RECORDED["failed"].keys()


def mark(call: ToolCall) -> list[str]:
    return ["refused"] if call.refused else []


def described(trace: Trace) -> dict[str, Any]:
    usage, calls = trace.usage, list_calls(trace.messages)
    tokens = [usage.input_tokens, usage.output_tokens, usage.cached_tokens]
    cost = None if usage.cost_usd is None else round(usage.cost_usd, 9)
    durations = [call.duration_ms for call in calls]
    return {
        "output": trace.output,
        "figures": [trace.llm_call_count, tokens, cost],
        "tokens": tokens,
        "cost": cost,
        "tools": [[call.name, call.arguments, *mark(call)] for call in calls],
        "calls": [[call.name, call.arguments, call.output, *mark(call)] for call in calls],
        "has_hidden_calls": trace.tool_calls is None,
        "hidden_tools": list(trace.hidden_tools),
        "warnings": list(trace.warnings),
        "durations": durations,
        "has_durations": all(each is not None and each >= 0 for each in durations),
    }


#: What a recording shows unless its row says something else.
USUAL: Mapping[str, Any] = {"tools": [], "has_hidden_calls": False, "hidden_tools": []}


@pytest.mark.parametrize("name", RECORDED["answered"])
def test_answered__the_figures_counted_by_hand(name: str, tmp_path: Path) -> None:
    expected = {**USUAL, **RECORDED["answered"][name]}
    found = described(printing(tmp_path, name).answer())
    assert {field: found[field] for field in expected} == expected


@pytest.mark.parametrize("name", RECORDED["failed"])
def test_failed__each_error_is_what_it_is(name: str, tmp_path: Path) -> None:
    kind, words, *more = RECORDED["failed"][name]
    error = printing(tmp_path, name, 0 if name.endswith("EMPTY") else 1).refused()
    is_limit = getattr(error, "limited", False)
    assert type(error).__name__ + (" (rate limit)" if is_limit else "") == kind
    assert error.kind == "target"
    assert words in str(error)
    spent = error.spent
    found = {
        "hint": error.hint,
        "spent": [*described(spent)["figures"][:2], len(spent.tool_calls or ())],
    }
    for expected in more:
        assert {field: found[field] for field in expected} == expected


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


REJECTED = (
    "2026-11-22T09:26:21Z ERROR codex_core::tools::router: error=exec_command failed: "
    "CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'rm -rf a'` rejected: "
    'not permitted\\")" }\n'
)
UNKNOWN = "ERROR codex_core::tools::router: error=unsupported call: mcp__suitecancel\n"


def test_codex__refused_calls_on_standard_error_are_warnings(tmp_path: Path) -> None:
    run = AgentRun("codex", tmp_path).printing(recorded("codex-PONG"), says=REJECTED * 2 + UNKNOWN)
    expected = "the agent refused a call: `/bin/bash -lc 'rm -rf a'` rejected: not permitted"
    assert run.answer().warnings == (expected, "the agent refused a call: mcp__suitecancel")
    assert printing(tmp_path, "codex-PONG").answer().warnings == ()


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
