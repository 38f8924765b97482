from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import ToolCall
from tests.support.agent_programs import lines
from tests.support.agent_runs import AgentRun

Event = dict[str, Any]


def item(kind: str, own_id: str = "item_0", **fields: Any) -> Event:
    return {"type": "item.completed", "item": {"id": own_id, "type": kind, **fields}}


def codex(tmp_path: Path, *events: Event, code: int = 0) -> AgentRun:
    begun = ({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})
    return AgentRun("codex", tmp_path).printing(lines(*begun, *events), code)


DONE: Event = {
    "type": "turn.completed",
    "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2},
}


def test_command__codexs_own_words(tmp_path: Path) -> None:
    words = AgentRun("codex", tmp_path).seen(model="m", args=["--sandbox", "read-only"])["words"]
    assert words == [
        "exec",
        "--json",
        "--color",
        "never",
        "--skip-git-repo-check",
        "--model",
        "m",
        "--sandbox",
        "read-only",
        "-",
    ]


def test_stream__every_kind_of_tool_call(tmp_path: Path) -> None:
    command = "bash -lc ls"
    changes = [
        {"path": "/w/a.py", "kind": "add"},
        {"path": "/w/b.py", "kind": "update"},
        {"path": "/w/c.py", "kind": "delete"},
    ]
    trace = codex(
        tmp_path,
        item("reasoning", "item_0", text="**Looking**"),
        {
            "type": "item.started",
            "item": {
                "id": "item_1",
                "type": "command_execution",
                "command": command,
                "status": "in_progress",
            },
        },
        item(
            "command_execution",
            "item_1",
            command=command,
            aggregated_output="a\n",
            exit_code=0,
            status="completed",
        ),
        item("file_change", "item_2", changes=changes, status="completed"),
        item(
            "mcp_tool_call",
            "item_3",
            server="docs",
            tool="find",
            arguments={"q": 1},
            result={"content": [{"type": "text", "text": "x"}]},
        ),
        item(
            "mcp_tool_call",
            "item_4",
            server="docs",
            tool="get",
            arguments={},
            error={"message": "gone"},
            status="failed",
        ),
        item(
            "mcp_tool_call",
            "item_5",
            server="docs",
            tool="n",
            arguments={},
            result={"content": [], "structured_content": {"n": 1}},
        ),
        item("web_search", "item_6", query="weather"),
        item(
            "collab_tool_call",
            "item_7",
            tool="spawn_agent",
            prompt="help",
            agents_states={"a": {"status": "completed"}},
        ),
        item("command_execution", "item_11", command="rm -r /", status="declined"),
        item("todo_list", "item_8", items=[{"text": "x", "completed": True}]),
        item("error", "item_9", message="not fatal"),
        item("agent_message", "item_10", text="done"),
        DONE,
    ).answer()
    assert trace.output == "done"
    first, *others = trace.tool_calls or ()
    assert first.duration_ms is not None  # by arrival
    assert (replace(first, duration_ms=None), *others) == (
        ToolCall("Bash", {"command": "ls"}, "a\n", "item_1"),
        ToolCall("Write", {"file_path": "/w/a.py"}, "completed", "item_2"),
        ToolCall("Edit", {"file_path": "/w/b.py"}, "completed", "item_2.1"),
        ToolCall("Delete", {"file_path": "/w/c.py"}, "completed", "item_2.2"),
        ToolCall("mcp__docs__find", {"q": 1}, [{"type": "text", "text": "x"}], "item_3"),
        ToolCall("mcp__docs__get", {}, "gone", "item_4"),
        ToolCall("mcp__docs__n", {}, {"n": 1}, "item_5"),
        ToolCall("WebSearch", {"query": "weather"}, None, "item_6"),
        ToolCall("Agent", {"prompt": "help"}, {"a": {"status": "completed"}}, "item_7"),
        ToolCall("Bash", {"command": "rm -r /"}, None, "item_11", refused=True),
    )
    assert trace.llm_call_count is None


def test_stream__tokens_of_sub_agents_are_not_in_the_usage(tmp_path: Path) -> None:
    spawned = item("collab_tool_call", tool="spawn_agent", prompt="help")
    trace = codex(tmp_path, spawned, item("agent_message", text="done"), DONE).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/bin/bash -lc 'echo a | head -1'", "echo a | head -1"),
        ("/usr/bin/sh -c \"it's \"'$X'", "it's $X"),
        ("zsh -lc ls", "ls"),
        ("bash script.sh a", "bash script.sh a"),
        ("bash -x ls", "bash -x ls"),
        ("/bin/bash -lc 'unclosed", "/bin/bash -lc 'unclosed"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        (None, None),
    ],
)
def test_stream__a_command_without_its_shell(tmp_path: Path, command: Any, expected: Any) -> None:
    ran = item("command_execution", command=command, status="completed")
    (call,) = codex(tmp_path, ran, DONE).answer().tool_calls or ()
    assert call.arguments == {"command": expected}


def test_stream__usage_is_of_the_whole_thread(tmp_path: Path) -> None:
    later = {
        "type": "turn.completed",
        "usage": {"input_tokens": 30, "cached_input_tokens": 20, "output_tokens": 5},
    }
    trace = codex(
        tmp_path, item("agent_message", text="one"), DONE, item("agent_message", text="two"), later
    ).answer()
    assert (
        trace.usage.input_tokens,
        trace.usage.cached_tokens,
        trace.usage.output_tokens,
        trace.output,
    ) == (
        30,
        20,
        5,
        "two",
    )


def test_stream__what_is_not_told_is_unknown(tmp_path: Path) -> None:
    trace = codex(
        tmp_path,
        item("agent_message", text="done"),
        {"type": "turn.completed", "usage": {"input_tokens": "x"}},
    ).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        None,
        None,
        None,
    )


def test_stream__odd_shapes_are_passed_over(tmp_path: Path) -> None:
    odd = [
        item("agent_message", text=5),
        item("collab_tool_call", tool=5),
        {"type": "item.completed", "item": "x"},
        {"type": "item.completed"},
    ]
    assert codex(tmp_path, *odd, item("agent_message", text="done"), DONE).answer().output == "done"


def test_failure__of_the_stream_alone(tmp_path: Path) -> None:
    caught = codex(tmp_path, {"type": "error", "message": "Invalid request"}, code=1).refused()
    assert (type(caught), str(caught)) == (AttemptError, "Codex: Invalid request")


REJECTED = (
    "2026-11-22T09:26:21Z ERROR codex_core::tools::router: error=exec_command failed: "
    "CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'rm -rf a'` rejected: "
    'not permitted\\")" }\n'
)


def test_refused__is_on_standard_error_alone_and_becomes_a_warning(tmp_path: Path) -> None:
    stream = lines(item("agent_message", text="done"), DONE)
    trace = AgentRun("codex", tmp_path).printing(stream, says=REJECTED * 2).answer()
    expected = "the agent refused a call: `/bin/bash -lc 'rm -rf a'` rejected: not permitted"
    assert trace.warnings == (expected,)
    assert AgentRun("codex", tmp_path).printing(stream, says="warning: x").answer().warnings == ()


def test_model_reasoning_effort__is_a_setting_of_the_run(tmp_path: Path) -> None:
    words = AgentRun("codex", tmp_path).seen(model_reasoning_effort="high")["words"]
    assert words[words.index("-c") + 1] == 'model_reasoning_effort="high"'
