"""Runs of suites with agents: what was refused, what they write into the checkout, unknown fields
of replies."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.results.jsonl import read_results
from tests.support import agent_programs, command
from tests.support.repositories import Repository

SUITE = """\
name: writer
tests:
  - id: one
    input: write the file
    assert:
      - {type: tool_trajectory, expected: [{tool: Write}]}
"""
RESULTS = "agentevals-report/results.jsonl"


def repository(tmp_path: Path, target: dict[str, Any], suite: str = SUITE, **more: str) -> Path:
    """A repository with a suite and its target, which git does not ignore anything of."""
    targets = json.dumps([{"name": "default", **target}])
    files = {"EVAL.yaml": suite, ".agentv/targets.yaml": targets, **more}
    return Repository.create(tmp_path / "work", files).path


@pytest.mark.slow
def test_refused__is_no_pass_and_is_named(tmp_path: Path) -> None:
    """Claude Code may not write, and says that it did."""
    stream = agent_programs.STREAMS / "raw-claude-EDIT.jsonl"
    target = {"provider": "claude-cli", "command": ["sh", "-c", f"cat {stream}"]}
    folder = repository(tmp_path, target)
    done = command.run(folder, "run")
    assert done.code == 1, done.err
    (result,) = read_results(folder / RESULTS)
    assert result.misses == ('did not call "Write"; called "Write (refused)"',)
    summary = result.trace_summary
    assert summary is not None
    assert (summary.tool_call_count, summary.tool_names) == (0, ())
    assert summary.refused_tools == ("Write",)
    reason = "Claude requested permissions to write"
    assert f'the call of "Write" was not made ({reason}' in done.err
    # The stored answer keeps the mark: a baseline that is scored again does not pass.
    (sample,) = result.samples
    assert sample.output_messages[0]["tool_calls"][0]["refused"] is True


PLAIN = """\
name: plain
tests:
  - {id: one, input: hi, assert: [{type: contains, value: done}]}
  - {id: two, input: hi, assert: [{type: contains, value: done}]}
"""


def test_reply__unknown_fields_of_an_envelope_are_named(tmp_path: Path) -> None:
    reply = json.dumps({"output": "done", "trace_id": "t-1"})
    folder = repository(tmp_path, {"provider": "cli", "command": f"echo '{reply}'"}, PLAIN)
    done = command.run(folder, "run")
    assert done.code == 0, done.err
    assert "the target `default`: its reply is read as an envelope" in done.err
    assert '"trace_id" are not read' in done.err


NO_CALL = """\
name: no-calls
tests:
  - {id: count, input: hi, assert: [{type: execution_metrics, max_tool_calls: 0}]}
  - {id: none, input: hi, assert: [{type: tool_trajectory, mode: subset, expected: []}]}
  - {id: not, input: hi, assert: [{type: tool_trajectory, expected: [{tool: refund}], negate: true}]}
"""


def test_reply__a_call_in_an_unknown_dialect_fails_tests_that_permit_none(tmp_path: Path) -> None:
    call = {"type": "action", "action": "refund", "arguments": {"amount": 9999}}
    messages = [
        {"role": "assistant", "content": [call]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    target = {"provider": "cli", "command": f"echo '{json.dumps(messages)}'"}
    folder = repository(tmp_path, target, NO_CALL)
    done = command.run(folder, "run")
    assert done.code == 1, done.err
    verdicts = {result.eval_id: result.verdict for result in read_results(folder / RESULTS)}
    assert verdicts == dict.fromkeys(("count", "none", "not"), "fail")
    assert 'parts of an unknown kind ("action"), which may be tool calls' in done.err
