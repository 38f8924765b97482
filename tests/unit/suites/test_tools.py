"""Tools and commands in a suite: how they are read and merged, and the mistakes in them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.tools import Tool, combine_tools
from tests.support import suites

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = {case["mistake"]: case for case in yaml.safe_load((DATA / "tool_errors.yaml").read_text())}


def write(folder: Path, case: dict[str, Any]) -> None:
    """A suite whose tools begin on the third line."""
    lines = ["name: shop"]
    for key in ("tools", "commands"):
        if key in case:
            lines += [f"{key}:", *(f"  {line}" for line in case[key].splitlines())]
    negate = ", negate: true" if case.get("negate") else ""
    check = f"{{type: tool_trajectory, expected: [{{tool: refund}}]{negate}}}"
    lines += ["tests:", f"  - {{id: t, input: hi, assert: [{check}]}}", ""]
    target = case.get("target", "{name: default, provider: cli, command: [agent]}")
    own = {"EVAL.yaml": "\n".join(lines), ".agentv/targets.yaml": f"- {target}\n"}
    suites.write(folder, own | case.get("files", {}))


@pytest.mark.parametrize("mistake", CASES)
def test_mistake__has_its_errors_and_no_others(mistake: str, tmp_path: Path) -> None:
    write(tmp_path, CASES[mistake])
    assert suites.errors(tmp_path) == CASES[mistake]["errors"]


LIST = {
    "tools": [
        {
            "name": "find_order",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        {"name": "cancel", "inputSchema": {"type": "object"}, "icons": [], "_meta": {}},
    ]
}
SUITE = """\
name: shop
tools:
  - {from: tools/shop.json, in: shop}
  - {name: find_order, replies: [{when: {id: 1}, reply: found}, {reply: of the suite}]}
  - {name: refund, parameters: {}, replies: [{reply: of the suite}]}
  - {name: "*", replies: [{error: not allowed}]}
  - {file: tools/more.yaml}
commands:
  - {name: gh, replies: [{stdout: of the suite}]}
  - {name: git, replies: [{stdout: of the suite}]}
tests:
  - {id: a, input: hi, assert: [{type: contains, value: hi}]}
  - id: b
    input: hi
    assert: [{type: contains, value: hi}]
    tools:
      - {name: refund, replies: [{reply: of the test}]}
      - {name: find_order, parameters: {type: object, title: of the test}, in: shop, replies: [{reply: x}]}
    commands:
      - {name: gh, replies: [{stdout: of the test}]}
"""


def loaded(folder: Path) -> Suite:
    more = '- {name: ship, parameters: {}, replies: [{reply: "{{workspace}}"}]}\n'
    files = {
        "EVAL.yaml": SUITE,
        "tools/shop.json": json.dumps(LIST),
        "tools/more.yaml": more,
        ".agentv/targets.yaml": "- {name: default, provider: cli, command: [agent]}\n",
    }
    return suites.load_valid(suites.write(folder, files))


def replies(test: Test) -> dict[str, Any]:
    tools = combine_tools(tool for tool in test.tools if isinstance(tool, Tool))
    return {
        tool.trace_name: [reply.error or reply.reply for reply in tool.replies]
        for tool in tools.values()
    }


def test_tools__lists_and_files_and_entries_are_one(tmp_path: Path) -> None:
    first, _ = loaded(tmp_path).tests
    assert replies(first) == {
        "mcp__shop__cancel": ["not allowed"],
        "mcp__shop__find_order": ["found", "of the suite"],
        "refund": ["of the suite"],
        "ship": ["{{workspace}}"],
    }


def test_tools__those_of_the_test_win(tmp_path: Path) -> None:
    _, second = loaded(tmp_path).tests
    assert replies(second)["refund"] == ["of the test"]
    assert replies(second)["mcp__shop__find_order"] == ["x"]
    printed = {each.name: each.replies[0].stdout for each in second.commands}
    assert printed == {"gh": "of the test", "git": "of the suite"}


def test_tools__their_files_are_the_suites(tmp_path: Path) -> None:
    files = {file.path: file.role for file in loaded(tmp_path).files}
    assert files["tools/shop.json"] == files["tools/more.yaml"] == "tool file"


def test_tool__name_that_agents_change_is_a_warning(tmp_path: Path) -> None:
    case = {"tools": "- {name: get-order, parameters: {}, replies: [{reply: x}]}"}
    write(tmp_path, case)
    (warning,) = suites.load_valid(tmp_path).warnings
    assert str(warning).startswith('EVAL.yaml:3:5: agents rename the tool "get-order"; ')
