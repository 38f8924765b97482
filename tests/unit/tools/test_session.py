"""The replies of one attempt, and what its record says."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.tools import Command, Tool, ToolSet, combine_tools
from agentevals_action.model.trace import Trace
from agentevals_action.tools.session import MAX_CALLS, ToolResult, ToolSession, UnknownTool
from agentevals_action.validation import patterns

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "order": {"type": "object"}, "path": {}},
    "required": ["id"],
}
REPLIES: list[dict[str, Any]] = [
    {"when": {"id": 1, "order.lines.0.sku": "A"}, "reply": "first line is A"},
    {"when": {"id": 1}, "reply": {"state": "sent", "days": 2}},
    {"when": {"id": 2}, "in_turn": [{"error": "busy"}, {"reply": "done"}]},
    {"matches": {"properties": {"id": {"minimum": 100}}}, "reply": ["large"]},
    {"when": {"path": "{{workspace}}/a.txt"}, "reply": "in {{workspace}}"},
]
ANSWER = Trace((Message("assistant", "ok"),))


def session(*replies: dict[str, Any], workspace: Path | None = None, **fields: Any) -> ToolSession:
    tool = Tool.model_validate(
        {"name": "find", "parameters": SCHEMA, "replies": replies or REPLIES, **fields}
    )
    return ToolSession(ToolSet(combine_tools([tool])), workspace)


def call(attempt: ToolSession, arguments: dict[str, Any], name: str = "find") -> ToolResult:
    return asyncio.run(attempt.call("suite", name, arguments))


#: Arguments, the text of the result, and whether it is an error.
CALLS: list[tuple[dict[str, Any], str, bool]] = [
    ({"id": 1, "order": {"lines": [{"sku": "A"}]}}, "first line is A", False),
    ({"id": 1, "order": {"lines": [{"sku": "B"}]}}, '{"state":"sent","days":2}', False),
    ({"id": 1.0}, '{"state":"sent","days":2}', False),
    ({"id": 100}, '["large"]', False),
    ({"id": 5, "path": "/w/a.txt"}, "in /w", False),
    ({"id": 1, "wait_for_previous": True}, '{"state":"sent","days":2}', False),
    ({"id": "1"}, "Invalid arguments for tool find: $.id: '1' is not of type 'integer'", True),
    ({}, "Invalid arguments for tool find: $: 'id' is a required property", True),
    ({"id": 3}, "The test has no reply for this call of find.", True),
]


@pytest.mark.parametrize(("arguments", "text", "is_error"), CALLS)
def test_call__first_reply_that_fits(arguments: Any, text: str, is_error: bool) -> None:
    done = call(session(workspace=Path("/w")), arguments)
    assert (done.text, done.is_error, done.structured) == (text, is_error, None)


def test_call__replies_in_turn_belong_to_one_attempt() -> None:
    for _ in range(2):
        attempt = session()
        texts = [call(attempt, {"id": 2}).text for _ in range(3)]
        assert texts == ["busy", "done", "done"]


def test_call__structured_content_only_with_a_schema_of_results() -> None:
    schema = {"type": "object"}
    done = call(session(output_schema=schema), {"id": 1})
    assert done.structured == {"state": "sent", "days": 2}


def test_call__unknown_tool_is_refused() -> None:
    attempt = session()
    with pytest.raises(UnknownTool, match="Unknown tool: refund"):
        call(attempt, {}, "refund")
    (made,) = attempt.finish(ANSWER).tool_calls or ()
    assert (made.name, made.refused) == ("refund", True)


def test_finish__wrong_arguments_are_refused_and_scored() -> None:
    attempt = session()
    call(attempt, {})
    call(attempt, {"id": 1})
    trace = attempt.finish(ANSWER)
    assert [call.refused for call in trace.tool_calls or ()] == [True, False]
    assert [call.output for call in trace.made_calls or ()] == [{"state": "sent", "days": 2}]


def test_finish__call_without_a_reply_cannot_be_scored() -> None:
    attempt = session(workspace=Path("/w"))
    call(attempt, {"id": 3, "path": "/w/b.txt"})
    with pytest.raises(AttemptError) as caught:
        attempt.finish(ANSWER)
    assert caught.value.kind == "tools"
    entry = '- {when: {"id": 3, "path": "{{workspace}}/b.txt"}, reply: …}'
    assert str(caught.value).endswith(entry)
    assert caught.value.spent.tool_calls[0].arguments["id"] == 3


def test_finish__agent_that_asks_for_no_list_did_not_connect() -> None:
    with pytest.raises(AttemptError, match="did not connect") as caught:
        session().finish(ANSWER)
    assert caught.value.kind == "target"
    attempt = session()
    attempt.list_tools("suite")
    assert attempt.finish(ANSWER).tool_calls == ()


def test_finish__agent_that_never_stops_calling_is_an_error() -> None:
    attempt = session()

    async def loop() -> None:
        for _ in range(MAX_CALLS + 1):
            await attempt.call("suite", "find", {"id": 1})

    asyncio.run(loop())
    with pytest.raises(AttemptError, match="more than 10,000 calls"):
        attempt.finish(ANSWER)


#: Schemas that cannot check every value, each with the error of the attempt.
ENDLESS: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"id": {"pattern": "(a|aa)+$"}}}, 'the pattern "(a|aa)+$" ran for over 0.1 s'),
    ({"$ref": "#"}, "a call cannot be validated: the references of the schema do not end"),
]


@pytest.mark.parametrize(("schema", "problem"), ENDLESS)
@pytest.mark.parametrize("place", ["parameters", "matches"])
def test_call__that_cannot_be_checked_is_an_error_of_the_attempt(
    monkeypatch: pytest.MonkeyPatch, place: str, schema: Any, problem: str
) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.1)
    replies = [{"matches": schema if place == "matches" else {}, "reply": "ok"}]
    parameters = schema if place == "parameters" else {"type": "object"}
    attempt = session(*replies, parameters=parameters)
    assert call(attempt, {"id": "a" * 60 + "b"}).is_error
    with pytest.raises(AttemptError, match=re.escape(problem)) as caught:
        attempt.finish(ANSWER)
    assert caught.value.kind == "tools"


COMMAND = Command.model_validate(
    {
        "name": "gh",
        "replies": [
            {"when": {"line": "pr view '7'", "stdin": "x"}, "stdout": "with input"},
            {"when": {"line": "pr view 7"}, "stdout": "title"},
            {"when": {"line": "auth status"}, "stderr": "no login", "exit": 1},
            {"matches": {"properties": {"line": {"pattern": "^issue "}}}, "stdout": "issues"},
        ],
    }
)


@pytest.mark.parametrize(
    ("words", "stdin", "printed"),
    [
        ("pr view 7", "x", ("with input", "", 0)),
        ("pr view 7", "", ("title", "", 0)),
        ("auth status", None, ("", "no login", 1)),
        ("issue list", None, ("issues", "", 0)),
        ("pr merge 7", None, ("", "The test has no reply for this call of gh.\n", 64)),
    ],
)
def test_run_command__first_reply_that_fits(words: str, stdin: Any, printed: Any) -> None:
    attempt = ToolSession(ToolSet(commands={"gh": COMMAND}))
    done = asyncio.run(attempt.run_command("gh", words.split(), stdin))
    assert (done.stdout, done.stderr, done.exit_code) == printed
    (call,) = attempt.merge(ANSWER).tool_calls or ()
    assert (call.name, call.arguments) == ("gh", {"line": words, "args": words.split()})
