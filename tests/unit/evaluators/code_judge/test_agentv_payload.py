"""The payload of AgentV's code graders: its published schema, its contract, and its SDK."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.trace import Trace, Usage
from tests.support import cases

_PRINT = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))"
#: What `@agentv/sdk` 4.42 requires of its input, in the wire form.
SCHEMA = json.loads((Path(__file__).parents[3] / "data/agentv_payload.schema.json").read_text())
BARE = Trace((Message("assistant", "the answer"),))
CALLS = Message("assistant", "", tool_calls=(ToolCall("search", {"q": 1}), ToolCall("search")))
CALLED = Message(
    "assistant",
    "",
    tool_calls=(
        ToolCall("search", {"q": 1}, output="found", duration_ms=7),
        ToolCall("search", refused=True),
    ),
)
FULL = Trace(
    (CALLS, Message("assistant", "the answer")),
    tool_calls=CALLS.tool_calls,
    llm_call_count=2,
    usage=Usage(1, 2),
)


def payload(root: Path, type_: str = "code_grader", **given: Any) -> dict[str, Any]:
    """What a judge gets; `given` are fields of the case."""
    fields = {"type": type_, "script": [sys.executable, "-c", _PRINT]}
    details = cases.run("code_judge", fields, cases.case(root=root, **given)).details
    assert isinstance(details, dict)
    return details


@pytest.mark.parametrize("trace", [BARE, FULL], ids=["bare", "full"])
@pytest.mark.parametrize("type_", ["code_judge", "code_grader"])
def test_payload__fits_the_published_schema(tmp_path: Path, trace: Trace, type_: str) -> None:
    jsonschema.validate(payload(tmp_path, type_, trace=trace), SCHEMA)


def test_payload__counts_calls_by_tool(tmp_path: Path) -> None:
    summary = payload(tmp_path, trace=FULL)["trace_summary"]

    assert (summary["tool_calls"], summary["error_count"]) == ({"search": 2}, 0)


def test_trace__has_the_question_the_calls_and_the_answer(tmp_path: Path) -> None:
    full = replace(FULL, messages=(CALLED, *FULL.messages[1:]), tool_calls=CALLED.tool_calls)
    got = payload(tmp_path, trace=full)

    trace = got["trace"]
    assert got["messages"] == trace["messages"]
    assert [message["role"] for message in trace["messages"]] == ["user", "assistant", "assistant"]
    assert trace["messages"][0]["content"] == "What is it?"
    assert (trace["event_count"], trace["tool_calls"]) == (1, {"search": 1})
    assert (trace["tool_durations"], trace["llm_call_count"]) == ({"search": [7]}, 2)
    assert trace["token_usage"] == {"input": 1, "output": 2}
    assert "cost_usd" not in trace
    assert [(event["event_id"], event["type"]) for event in trace["events"]] == [
        ("message-0", "message"),
        ("message-1", "message"),
        ("message-1-tool-0", "tool_call"),
        ("message-1-tool-0-result", "tool_result"),
        ("message-1-tool-1", "tool_call"),
        ("message-2", "message"),
        ("final-response", "final_response"),
    ]
    assert trace["events"][2] == {
        "event_id": "message-1-tool-0",
        "parent_event_id": "message-1",
        "ordinal": 2,
        "type": "tool_call",
        "duration_ms": 7,
        "tool": {"name": "search", "input": {"q": 1}, "output": "found", "status": "ok"},
        "metadata": {"message_index": 1},
    }
    assert trace["events"][4]["tool"] == {"name": "search", "status": "cancelled"}


def test_trace__an_agent_that_repeats_the_question_has_it_once(tmp_path: Path) -> None:
    messages = (Message("user", "What is it?"), Message("assistant", "the answer"))

    got = payload(tmp_path, trace=Trace(messages, tool_calls=()))

    assert [message["role"] for message in got["messages"]] == ["user", "assistant"]
    assert (got["trace"]["event_count"], got["trace"]["tool_calls"]) == (0, {})


def test_trace__is_null_if_the_tool_calls_are_unknown(tmp_path: Path) -> None:
    assert payload(tmp_path, trace=BARE)["trace"] is None


def test_payload__structured_expected_output_is_the_object(tmp_path: Path) -> None:
    expected = (Message("assistant", (Block("json", {"riskLevel": "High"}),)),)

    got = payload(tmp_path, expected=expected)

    assert got["expected_output"] == [{"role": "assistant", "content": {"riskLevel": "High"}}]


def test_payload__of_a_code_grader_has_no_keys_that_its_contract_forbids(tmp_path: Path) -> None:
    forbidden = {"answer", "expectedOutput", "inputFiles", "outputPath", "traceSummary"}

    assert not forbidden & payload(tmp_path).keys()
    assert {"answer", "inputFiles", "traceSummary"} <= payload(tmp_path, "code_judge").keys()


def test_failed_judge__shows_standard_output_and_error(tmp_path: Path) -> None:
    code = "import sys; print('{\"reason\": \"input refused\"}'); sys.exit('bad input')"
    fields = {"script": [sys.executable, "-c", code]}

    error = cases.run("code_judge", fields, cases.case(root=tmp_path)).error

    assert error is not None
    assert 'ended with exit code 1:\n{"reason": "input refused"}\nbad input' in error.message


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which node finds `@agentv/sdk`: the one in `AGENTV_SDK`, or installed by npm."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    if given := os.environ.get("AGENTV_SDK"):
        return Path(given)
    folder = tmp_path_factory.mktemp("sdk")
    command = ["npm", "install", "--no-audit", "--no-fund", "@agentv/sdk@4.42.4"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install @agentv/sdk: {done.stderr.strip().splitlines()[:2]}")
    return folder


@pytest.mark.parametrize("trace", [BARE, FULL], ids=["bare", "full"])
def test_sdk__a_judge_written_with_it_scores(sdk: Path, tmp_path: Path, trace: Trace) -> None:
    code = (
        "import { defineCodeGrader } from '@agentv/sdk';\n"
        "defineCodeGrader(({ output, criteria, expectedOutput, traceSummary, trace }) => ({\n"
        "  score: output === 'the answer' && criteria === '' ? 0.75 : 0,\n"
        "  assertions: [{ text: JSON.stringify(expectedOutput[0].content), passed: true },\n"
        "    { text: `${traceSummary.errorCount} errors`, passed: true },\n"
        "    { text: `${trace?.events.length} events`, passed: true }],\n"
        "}));\n"
    )
    (tmp_path / "judge.mjs").write_text(code)
    (tmp_path / "node_modules").symlink_to(sdk / "node_modules")
    expected = (Message("assistant", (Block("json", {"riskLevel": "High"}),)),)
    fields = {"type": "code-grader", "script": ["node", "judge.mjs"]}

    result = cases.run(
        "code_judge", fields, cases.case(root=tmp_path, trace=trace, expected=expected)
    )

    assert result.error is None
    assert result.score == 0.75
    assert result.hits == (
        json.dumps({"riskLevel": "High"}, separators=(",", ":")),
        "0 errors",
        "6 events" if trace is FULL else "undefined events",
    )
