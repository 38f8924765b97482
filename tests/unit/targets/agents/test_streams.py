"""The streams of the agents: those that the real programs wrote, with figures counted by hand, and
events (`agent_events.yaml`) of which there is no recording."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.model.trace import Trace, list_calls
from tests.support.agent_programs import STREAMS, AgentRun, lines, recorded

EVENTS = yaml.safe_load((STREAMS.parent / "agent_events.yaml").read_text())
RECORDED = yaml.safe_load((STREAMS.parent / "agent_streams.yaml").read_text())


def agent_of(name: str) -> str:
    return name.removeprefix("raw-").partition("-")[0]


def printing(tmp_path: Path, name: str, code: int = 0) -> AgentRun:
    return AgentRun(agent_of(name), tmp_path).printing(recorded(name), code)


def test_streams__each_has_a_test() -> None:
    names = {path.stem for path in STREAMS.glob("*.jsonl")} - {"otel"}
    assert names == RECORDED["answered"].keys() | RECORDED["failed"].keys()


def figures(trace: Trace) -> list[Any]:
    usage = trace.usage
    tokens = [usage.input_tokens, usage.output_tokens, usage.cached_tokens]
    return [trace.llm_call_count, tokens, usage.cost_usd]


def tools(trace: Trace) -> list[list[Any]]:
    return [
        [call.name, call.arguments, *(["refused"] if call.refused else [])]
        for call in list_calls(trace.messages)
    ]


@pytest.mark.parametrize("name", RECORDED["answered"])
def test_answered__the_figures_counted_by_hand(name: str, tmp_path: Path) -> None:
    expected, trace = RECORDED["answered"][name], printing(tmp_path, name).answer()
    found = figures(trace)
    assert found[:2] == expected["figures"][:2]
    assert found[2] == pytest.approx(expected["figures"][2])
    assert tools(trace) == expected.get("tools", [])
    assert (trace.tool_calls is None) == expected.get("has_hidden_calls", False)
    assert trace.output == expected["answer"]


@pytest.mark.parametrize("name", RECORDED["failed"])
def test_failed__each_error_is_what_it_is(name: str, tmp_path: Path) -> None:
    kind, words = RECORDED["failed"][name]
    error = printing(tmp_path, name, 0 if name.endswith("EMPTY") else 1).refused()
    is_limit = getattr(error, "limited", False)
    assert type(error).__name__ + (" (rate limit)" if is_limit else "") == kind
    assert error.kind == "target"
    assert words in str(error)


def test_failed__the_advice_names_the_key_that_the_agent_names(tmp_path: Path) -> None:
    """With a model of another vendor, Copilot needs no key of its own."""
    hint = printing(tmp_path, "raw-copilot-E401", 1).refused().hint
    assert hint == (
        "name COPILOT_PROVIDER_API_KEY or COPILOT_PROVIDER_BEARER_TOKEN in the input `env` (`--env`)"
    )


@pytest.mark.parametrize("name", ["raw-claude-E429Q", "raw-codex-H429U", "raw-codex-QUOTA"])
def test_failed__a_spent_quota_is_no_problem_of_the_key(name: str, tmp_path: Path) -> None:
    hint = printing(tmp_path, name, 1).refused().hint
    assert hint.startswith("the account has no credit, or its limit is reached")
    assert "KEY" not in hint


@pytest.mark.parametrize(
    ("name", "spent", "count"),
    [
        # Three turns with one call of a tool each: 3 x 100 in, 3 x 10 out.
        ("raw-claude-LOOP", [3, [300, 30, 0]], 3),
        # Two replies without a visible word, so that no message shows their calls.
        ("raw-claude-EMPTY", [None, [240, 2, 0]], 0),
    ],
)
def test_failed__what_was_spent_before(
    name: str, spent: list[Any], count: int, tmp_path: Path
) -> None:
    trace = printing(tmp_path, name).refused().spent
    assert (figures(trace)[:2], len(trace.tool_calls)) == (spent, count)


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


@pytest.mark.parametrize("name", ["claude-SHELL", "raw-claude-MCP"])
def test_answered__durations_by_arrival_where_the_stream_has_none(
    name: str, tmp_path: Path
) -> None:
    (call,) = printing(tmp_path, name).answer().tool_calls or ()
    assert call.duration_ms is not None
    assert call.duration_ms >= 0


@pytest.mark.parametrize("name", ["codex-SHELL", "raw-codex-MULTI"])
def test_answered__codex_reports_the_start_of_a_call_late(name: str, tmp_path: Path) -> None:
    """A command of 200 ms would take 66 ms by the arrival of its events."""
    calls = printing(tmp_path, name).answer().tool_calls or ()
    assert {call.duration_ms for call in calls} == {None}


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
    for name in ("claude-SHELL", "copilot-SHELL", "codex-PONG"):
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
    usage, calls = trace.usage, list_calls(trace.messages)
    return {
        "output": trace.output,
        "calls": [
            [call.name, call.arguments, call.output, *(["refused"] if call.refused else [])]
            for call in calls
        ],
        "has_hidden_calls": trace.tool_calls is None,
        "warnings": list(trace.warnings),
        "durations": [call.duration_ms for call in calls],
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
