import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Message, ToolCall
from tests.support.agent_programs import gemini_ended, gemini_event, gemini_failed, lines
from tests.support.agent_runs import AgentRun


def gemini(tmp_path: Path, *events: Any, code: int = 0) -> AgentRun:
    begun = gemini_event("init", session_id="s", model="m")
    return AgentRun("gemini", tmp_path).printing(lines(begun, *events), code)


def piece(text: str) -> Any:
    return gemini_event("message", role="assistant", content=text, delta=True)


def use(own_id: str, name: str, at: str = "00.000", /, **parameters: Any) -> Any:
    return {
        "type": "tool_use",
        "timestamp": f"2026-11-22T09:25:{at}Z",
        "tool_name": name,
        "tool_id": own_id,
        "parameters": parameters,
    }


def result_of(own_id: str, at: str = "00.000", **fields: Any) -> Any:
    timestamp = f"2026-11-22T09:25:{at}Z"
    return {"type": "tool_result", "timestamp": timestamp, "tool_id": own_id, **fields}


def test_command__geminis_own_words(tmp_path: Path) -> None:
    words = AgentRun("gemini", tmp_path).seen(model="m", args=["--approval-mode", "plan"])["words"]
    assert words == [
        "--output-format",
        "stream-json",
        "--skip-trust",
        "--model",
        "m",
        "--approval-mode",
        "plan",
    ]


def test_stream__an_answer_with_its_figures(tmp_path: Path) -> None:
    """Of 150 tokens 100 were read, 20 are the answer, and 30 thoughts that are in the total only."""
    trace = AgentRun("gemini", tmp_path).answer()
    assert (trace.messages, trace.tool_calls) == ((Message("assistant", "hello"),), ())
    assert (trace.usage.input_tokens, trace.usage.cached_tokens, trace.usage.output_tokens) == (
        100,
        30,
        50,
    )
    assert (trace.usage.cost_usd, trace.duration_ms, trace.llm_call_count) == (None, 971, None)


def test_stream__tool_calls_with_their_common_names(tmp_path: Path) -> None:
    """The events of a real run (0.61.0) with `--approval-mode default`."""
    missing = 'Tool "write_file" not found. Did you mean one of: "read_file"?'
    trace = gemini(
        tmp_path,
        gemini_event("message", role="user", content="GO"),
        piece("I will "),
        piece("look."),
        use("c1", "read_file", "04.934", file_path="notes.txt"),
        result_of("c1", "05.079", status="success", output=""),
        use("c2", "mcp_shop_find_order", order=2077),
        result_of("c2", status="success", output="shipped"),
        use("c3", "write_file", file_path="new.txt", content="x"),
        result_of(
            "c3",
            status="error",
            output=missing,
            error={"type": "tool_not_registered", "message": missing},
        ),
        use("c4", "run_shell_command", command="exit 1"),
        result_of("c4", status="error", output="", error={"type": "shell", "message": "failed"}),
        use("c5", "invoke_agent", agent_name="generalist", prompt="look"),
        use("c6", "activate_skill", name="pdf"),
        piece("done"),
        gemini_ended(total_tokens=871, input_tokens=810, output_tokens=61, cached=50),
    ).answer()
    assert trace.tool_calls == (
        ToolCall("Read", {"file_path": "notes.txt"}, "", "c1", 145),
        ToolCall("mcp__shop__find_order", {"order": 2077}, "shipped", "c2", 0),
        ToolCall("Write", {"file_path": "new.txt", "content": "x"}, missing, "c3", refused=True),
        ToolCall("Bash", {"command": "exit 1"}, "failed", "c4", 0),
        ToolCall("Agent", {"subagent_type": "generalist", "prompt": "look"}, None, "c5"),
        ToolCall("Skill", {"skill": "pdf"}, None, "c6"),
    )
    assert trace.messages[0].content == "I will look."
    assert trace.output == "done"
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        810,
        61,
        50,
    )


KEY = {"code": 400, "message": "API key not valid. Please pass a valid API key."}


@pytest.mark.parametrize(
    ("body", "expected", "limited", "shown"),
    [
        (KEY, TargetDead, False, "API key not valid"),
        ({"code": 403, "message": "denied"}, TargetDead, False, "Gemini CLI: denied"),
        ("models/x is not found", TargetDead, False, "models/x is not found"),
        ({"code": 429, "message": "quota"}, TransientError, True, "Gemini CLI: quota"),
        ({"code": 500, "message": "boom"}, TransientError, False, "Gemini CLI: boom"),
        ({"code": 400, "message": "bad"}, AttemptError, False, "Gemini CLI: bad"),
        ("exception TypeError: fetch failed", TransientError, False, "fetch failed"),
    ],
)
def test_failure__is_what_it_is(
    tmp_path: Path, body: Any, expected: type[AttemptError], limited: bool, shown: str
) -> None:
    error = AgentRun("gemini", tmp_path).printing(gemini_failed(body), code=144).refused()
    assert type(error) is expected
    assert getattr(error, "limited", False) is limited
    assert shown in str(error)


def test_failure__too_many_turns(tmp_path: Path) -> None:
    ended = gemini_ended({"type": "FatalTurnLimitedError", "message": "Reached max session turns"})
    error = gemini(tmp_path, piece("again"), ended, code=53).refused()
    assert str(error) == "Gemini CLI: Reached max session turns"


def test_stream__odd_shapes_are_passed_over(tmp_path: Path) -> None:
    odd = [
        json.loads('{"type": "tool_use"}'),
        {"type": "tool_result", "error": 5},
        {"type": "message", "role": "assistant", "content": 5},
    ]
    trace = gemini(tmp_path, *odd, piece("done"), gemini_ended()).answer()
    assert trace.output == "done"
