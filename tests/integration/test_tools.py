"""Tools and commands that the suite answers, on both sides of a review."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, mcp_shop, tool_agent, tool_clients
from tests.support.repositories import Files, Repository

AGENT = Path(tool_agent.__file__).read_text("utf-8")
TARGETS = "- {name: default, provider: cli, command: [python3, agent.py, plan.json]}\n"
SUITE = """\
name: shop
tools:
  - name: find_order
    description: Finds an order.
    parameters: {type: object, properties: {id: {type: integer}}, required: [id]}
    replies:
      - {when: {id: 2077}, reply: {state: delivered, days: 24}}
      - {when: {id: 2078}, in_turn: [{error: busy}, {reply: {state: sent}}]}
  - name: refund
    parameters:
      type: object
      properties: {id: {type: integer}, amount: {type: number}}
      required: [id]
    replies:
      - {matches: {properties: {amount: {maximum: 50}}, required: [amount]}, reply: refunded}
      - error: needs approval
commands:
  - name: gh
    replies:
      - {when: {line: pr view 7 --json title}, stdout: '{"title": "Fix"}'}
      - {stderr: "not logged in\\n", exit: 1}
tests:
  - id: refund
    input: Refund order 2077.
    assert:
      - type: tool_trajectory
        mode: in_order
        required: true
        expected: [{tool: find_order, args: {id: 2077}}, {tool: refund}]
"""
FIND, REFUND = ["find_order", {"id": 2077}], ["refund", {"id": 2077, "amount": 30}]


def files(plan: list[Any], suite: str = SUITE) -> Files:
    return {
        "EVAL.yaml": suite,
        "agent.py": AGENT,
        "plan.json": json.dumps(plan),
        ".agentv/targets.yaml": TARGETS,
        ".gitignore": "/agentevals-report/\n",
    }


def reviewed(folder: Path, base: Files, change: Files) -> command.Done:
    made = Repository.create(folder / "repository", base)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return command.run(made.path, "review", "--base", "main")


def plan(*calls: Any) -> Files:
    return {"plan.json": json.dumps(calls)}


#: What the agent on head calls, the exit code and words of the review.
ON_HEAD: dict[str, tuple[list[Any], int, list[str]]] = {
    "the same calls": ([FIND, REFUND, FIND], 0, ["all pass"]),
    "a refund before the order is found": (
        [REFUND, FIND],
        1,
        ["1 test regressed", "but not in the order"],
    ),
    "wrong arguments, corrected": (
        [["find_order", {"id": "2077"}], FIND, REFUND],
        0,
        ["all pass"],
    ),
    "an unknown tool": ([["find_orders", {}], FIND, REFUND], 0, ["all pass"]),
    "an unknown tool alone": ([["find_orders", {}]], 1, ["1 test regressed"]),
    "a call without a reply": (
        [["find_order", {"id": 9}], REFUND],
        3,
        ["the test has no reply for a call of", '{when: {"id": 9}, reply: …}'],
    ),
    "a forbidden amount is answered": ([FIND, ["refund", {"id": 1, "amount": 99}]], 0, ["all"]),
    "no connection": ([["echo", "hi"]], 3, ["did not connect to the tools of the test"]),
    "commands": ([FIND, ["gh", "pr", "view", "7", "--json", "title"], REFUND], 0, ["all pass"]),
}


@pytest.mark.parametrize("case", ON_HEAD)
def test_review__agent_that_calls_tools(case: str, tmp_path: Path) -> None:
    calls, code, words = ON_HEAD[case]
    done = reviewed(tmp_path, files([FIND, REFUND]), plan(*calls))
    print(done.out)
    assert [word for word in words if word not in done.out] == []
    assert done.code == code


#: The list of a saved server, and that of each side's own.
LISTED = """\
name: shop
tools:
  - {from: shop.json}
  - {name: find_order, replies: [{when: {order: 2077}, reply: delivered}]}
  - {name: "*", replies: [{error: not allowed}]}
tests:
  - id: find
    input: Where is order 2077?
    assert: [{type: tool_trajectory, required: true, expected: [{tool: find_order}]}]
"""
SERVED = LISTED.replace("{from: shop.json}", "{server: [python3, server.py]}")
SERVER = Path(mcp_shop.__file__).read_text("utf-8")
SHOP = json.dumps({"tools": mcp_shop.TOOLS}, indent=1)
FOUND = ["find_order", {"order": 2077}]
OTHER = '"name": "get_order"'

#: What main has, what the change does, the exit code and words of the review.
CHANGES: dict[str, tuple[Files, Files, int, list[str]]] = {
    "a list that changes is another question": (
        {"EVAL.yaml": LISTED, "shop.json": SHOP},
        {"shop.json": SHOP.replace("Finds an order", "Looks for an order")},
        0,
        ["changed: shop.json (tool file)", "not compared"],
    ),
    "a reply that changes is another question": (
        {"EVAL.yaml": LISTED, "shop.json": SHOP},
        {"EVAL.yaml": LISTED.replace("delivered", "sent")},
        0,
        ["not compared"],
    ),
    "the agent's own server changes": (
        {"EVAL.yaml": SERVED, "server.py": SERVER},
        {"server.py": SERVER.replace("Finds an order", "Looks for an order")},
        0,
        ["changed: server.py (tool server)", "all pass; none regressed"],
    ),
    "the agent's own server loses a tool": (
        {"EVAL.yaml": SERVED, "server.py": SERVER},
        {"server.py": SERVER.replace('"name": "find_order"', OTHER)},
        1,
        ["1 test regressed"],
    ),
    "the agent's own server ends": (
        {"EVAL.yaml": SERVED, "server.py": SERVER},
        {"server.py": "raise SystemExit('API_KEY is missing')\n"},
        3,
        ["1 test ended in an error", "KEY is missing"],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_review__tools_that_change(case: str, tmp_path: Path) -> None:
    base, change, code, words = CHANGES[case]
    done = reviewed(tmp_path, {**files([FOUND]), **base}, change)
    print(done.out)
    assert [word for word in words if word not in done.out] == []
    assert done.code == code


#: The target of each kind of agent.
KINDS = {
    "variables": "provider: cli, command: [python3, agents.py, variables]",
    "file": "provider: cli, command: [python3, agents.py, config, '{MCP_CONFIG}']",
    "file in a script": "provider: cli, command: 'python3 agents.py config {MCP_CONFIG}'",
    "lines": "provider: cli, command: [python3, agents.py, serve], serve: true",
    "python": "provider: python, target: 'agents:answer'",
    "http": "provider: http, url: 'http://127.0.0.1:{PORT}/', start: [python3, agents.py, listen, '{PORT}']",
    "http with a body": "provider: http, url: 'http://127.0.0.1:{PORT}/', body: {q: '{{ prompt }}', mcp: '{{ mcp }}'}, "
    "start: [python3, agents.py, listen, '{PORT}']",
}


@pytest.mark.parametrize("kind", KINDS)
def test_run__each_kind_of_agent_reaches_the_tools(kind: str, tmp_path: Path) -> None:
    written: Files = {
        **files([]),
        "EVAL.yaml": LISTED,
        "shop.json": SHOP,
        "agents.py": Path(tool_clients.__file__).read_text("utf-8"),
        ".agentv/targets.yaml": f"- {{name: default, {KINDS[kind]}}}\n",
    }
    made = Repository.create(tmp_path, written)
    done = command.run(made.path, "run", "--samples", "3", "--output", "rows.jsonl")
    assert done.code == 0, done.out + done.err
    (row,) = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    for sample in row["samples"]:
        assert sample["candidateAnswer"] == "delivered"
        (made_call,) = [
            call for message in sample["outputMessages"] for call in message.get("tool_calls", ())
        ]
        assert made_call["tool"] == "find_order"
        assert made_call["output"] == "delivered"


def test_validate__a_tool_of_a_named_server_has_its_prefix(tmp_path: Path) -> None:
    """A check that forbids the short name would pass whatever the agent calls."""
    suite = LISTED.replace("shop.json}", "shop.json, in: shop}")
    made = Repository.create(tmp_path, {**files([]), "EVAL.yaml": suite, "shop.json": SHOP})
    suite = suite.replace("2077}, reply: delivered}", "2077}, reply: x}, {error: none}")
    made.write({"EVAL.yaml": suite})
    done = command.run(made.path, "validate")
    words = 'names "find_order", and no call has this name; write "mcp__shop__find_order"'
    assert (done.code, words in done.err) == (0, True), done.out + done.err
    made.write({"EVAL.yaml": suite.replace("{tool: find_order}", "{tool: mcp__shop__find_order}")})
    assert "no call has this name" not in command.run(made.path, "validate").err


def test_run__tools_of_a_test_that_is_replayed_are_those_of_its_results(tmp_path: Path) -> None:
    made = Repository.create(tmp_path, {**files([FOUND]), "EVAL.yaml": LISTED, "shop.json": SHOP})
    first = command.run(made.path, "run", "--output", "rows.jsonl")
    target = "- {name: default, provider: replay, path: /rows.jsonl}\n"
    made.commit("replay", {".agentv/targets.yaml": target})
    assert (first.code, command.run(made.path, "run").code) == (0, 0)


def test_run__suite_without_tools_imports_nothing_of_them(tmp_path: Path) -> None:
    suite = "name: plain\ntests: [{id: t, input: hi, assert: [{type: contains, value: hi}]}]\n"
    target = "- {name: default, provider: cli, command: [cat]}\n"
    made = Repository.create(tmp_path, {"EVAL.yaml": suite, ".agentv/targets.yaml": target})
    lines = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agentevals_action", "run"],
        cwd=made.path,
        env=command.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stderr.splitlines()
    names = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert "agentevals_action.model.tools" in names
    assert {name for name in names if ".tools." in name} == set()
    assert "jsonschema" not in names
