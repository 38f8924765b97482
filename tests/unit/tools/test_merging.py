"""The calls that arrived, in the trace that an agent shows."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.tools import Tool, ToolSet, combine_tools
from agentevals_action.model.trace import Trace
from agentevals_action.tools.session import ToolSession, UnknownTool

LONG = "a_tool_whose_name_has_more_letters_than_some_agents_pass_on_to_their_model"
NAMES = ("find_order", "refund", "get-env", "orders.find/by_id", LONG)


def tool(name: str, server: str = "suite") -> Tool:
    data = {"name": name, "in": server, "parameters": {"type": "object", "required": ["id"]}}
    return Tool.model_validate({**data, "replies": [{"reply": "done"}]})


def merged(shown: list[ToolCall], arrived: list[Any], *, is_known: bool = True) -> Trace:
    """A trace in which an agent shows calls, of which some arrived: `[name, arguments, server]`."""
    tools = [*map(tool, NAMES), tool("find_order", "shop")]
    session = ToolSession(ToolSet(combine_tools(tools)))
    for name, arguments, *server in arrived:
        with suppress(UnknownTool):
            asyncio.run(session.call(server[0] if server else "suite", name, arguments))
    messages = tuple(Message("assistant", "", tool_calls=(call,)) for call in shown)
    calls = tuple(shown) if is_known else None
    return session.merge(Trace((*messages, Message("assistant", "ok")), calls))


def names(trace: Trace) -> list[str]:
    calls = trace.tool_calls or ()
    return [f"{call.name}{' (refused)' if call.refused else ''}" for call in calls]


#: How agents show a tool.
SHOWN = [
    ("mcp__suite__find_order", "find_order"),
    ("suite-find_order", "find_order"),
    ("mcp_suite_find_order", "find_order"),
    ("find_order", "find_order"),
    ("mcp__suite__get_env", "get-env"),
    ("mcp__suite__orders_find_by_id", "orders.find/by_id"),
    ("suite-orders-find-by_id", "orders.find/by_id"),
    (f"suite-{LONG}"[:64], LONG),
    (f"mcp_suite_{LONG}"[:61] + "...", LONG),
    ("mcp__shop__find_order", "mcp__shop__find_order"),
]


@pytest.mark.parametrize(("shown", "name"), SHOWN)
def test_merge__name_and_reply_are_those_of_the_server(shown: str, name: str) -> None:
    arguments = {"id": 1, "wait_for_previous": False}
    call = ToolCall(shown, arguments, "rewritten", id="c1", duration_ms=5.0)
    server = "shop" if "shop" in shown else "suite"
    trace = merged([call], [(name.rpartition("__")[2], {"id": 1}, server)])
    assert trace.tool_calls == (ToolCall(name, {"id": 1}, "done", "c1", 5.0),)


def test_merge__order_is_the_agents_and_parallel_calls_are_told_apart() -> None:
    shown = [ToolCall("mcp__suite__find_order", {"id": number}) for number in (1, 2, 3)]
    trace = merged(shown, [("find_order", {"id": number}) for number in (2, 3, 1)])
    assert [call.arguments["id"] for call in trace.tool_calls or ()] == [1, 2, 3]


#: What the agent shows, what arrived, and the calls of the trace.
CASES: dict[str, tuple[list[ToolCall], list[Any], list[str]]] = {
    "nothing shown": (
        [],
        [("refund", {"id": 1}), ("find_order", {"id": 1})],
        ["refund", "find_order"],
    ),
    "tools of its own": (
        [ToolCall("Bash", {}), ToolCall("mcp__suite__refund", {"id": 1}), ToolCall("Read", {})],
        [("refund", {"id": 1}), ("find_order", {"id": 2})],
        ["Bash", "refund", "find_order", "Read"],
    ),
    "a call before the first one that is shown": (
        [ToolCall("Bash", {}), ToolCall("refund", {"id": 1})],
        [("find_order", {"id": 2}), ("refund", {"id": 1})],
        ["Bash", "find_order", "refund"],
    ),
    "a call with a prefix that did not arrive": (
        [ToolCall("mcp__suite__refund", {"id": 1}), ToolCall("suite-nosuch", {})],
        [],
        ["refund (refused)", "nosuch (refused)"],
    ),
    "a call that the client found wrong": ([ToolCall("refund", {})], [], ["refund (refused)"]),
    # A tool of its own that really refunds must not count as refused.
    "a tool of its own with the name of one": ([ToolCall("refund", {"id": 1})], [], ["refund"]),
    "a call that the server refused": (
        [ToolCall("mcp__suite__nosuch", {"a": 1}), ToolCall("mcp__suite__refund", {})],
        [("nosuch", {"a": 1}), ("refund", {})],
        ["nosuch (refused)", "refund (refused)"],
    ),
    "twice the same": (
        [ToolCall("refund", {"id": 1}), ToolCall("refund", {"id": 1})],
        [("refund", {"id": 1}), ("refund", {"id": 1})],
        ["refund", "refund"],
    ),
    "arguments that the agent shows otherwise": (
        [ToolCall("refund", '{"id": 1}')],
        [("refund", {"id": 1})],
        ["refund"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_merge__calls(case: str) -> None:
    shown, arrived, expected = CASES[case]
    trace = merged(shown, arrived)
    assert names(trace) == expected
    assert trace.output == "ok"


def test_merge__calls_that_an_agent_does_not_show_stay_unknown() -> None:
    assert (
        merged([ToolCall("Task", {})], [("refund", {"id": 1})], is_known=False).tool_calls is None
    )
    assert names(merged([], [("refund", {"id": 1})], is_known=False)) == ["refund"]
