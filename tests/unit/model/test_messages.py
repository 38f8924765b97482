from typing import Any

import pytest

from agentevals_action.model.messages import (
    Block,
    Message,
    ToolCall,
    read_message,
    read_tool_call,
    wire_message,
    wire_messages,
)


def test_read_message__both_forms_of_a_tool_call() -> None:
    spec = {
        "id": "1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a"}'},
    }
    agentv = {"tool": "read", "input": {"path": "a"}, "output": "text", "duration_ms": 12}
    message = read_message({"role": "assistant", "content": None, "tool_calls": [spec, agentv]})
    assert message == Message(
        "assistant",
        "",
        tool_calls=(
            ToolCall("read", {"path": "a"}, id="1"),
            ToolCall("read", {"path": "a"}, "text", None, 12),
        ),
    )


def test_read_message__blocks_and_objects() -> None:
    blocks = [
        {"type": "text", "value": "a"},
        {"type": "json", "value": {"b": 1}},
        {"type": "file", "value": "c.txt"},
    ]
    assert read_message({"role": "user", "content": blocks}).content == (
        Block("text", "a"),
        Block("json", {"b": 1}),
        Block("file", "c.txt"),
    )
    assert read_message({"role": "user", "content": {"b": 1}}).content == (Block("json", {"b": 1}),)


def test_read_message__names_and_ids() -> None:
    assert read_message(
        {"role": "tool", "content": "x", "tool_call_id": "1", "name": "read"}
    ) == Message("tool", "x", "read", "1")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("text", "write a message"),
        ({"content": "x"}, "`role`: it is missing"),
        ({"role": "user", "content": 1}, "`content`: write a text or a list of blocks"),
        (
            {"role": "user", "content": [{"type": "video", "value": 1}]},
            r"`content\[0\].type`: write `text`, `file`, `image` or `json`",
        ),
        (
            {"role": "user", "content": [{"type": "text", "value": 1}]},
            r"`content\[0\].value`: write a text",
        ),
        ({"role": "tool", "content": "x", "tool_call_id": 1}, "`tool_call_id`: write a text"),
        ({"role": "assistant", "content": "x", "tool_calls": "y"}, "`tool_calls`: write a list"),
        ({"role": "assistant", "tool_calls": [{"name": "x"}]}, "has function.name or tool"),
    ],
)
def test_read_message__an_invalid_message_is_an_error(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_message(data)


@pytest.mark.parametrize("text", ["{", "nope", "[" * 100_000])
def test_read_tool_call__arguments_that_are_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="a string of JSON"):
        read_tool_call({"function": {"name": "x", "arguments": text}})


def test_read_tool_call__empty_arguments_are_none_given() -> None:
    assert read_tool_call({"function": {"name": "x", "arguments": " "}}).arguments == {}


def test_wire_message__reads_back_the_same() -> None:
    message = Message(
        "assistant",
        (Block("text", "hi"), Block("json", {"a": [1]})),
        "bot",
        tool_calls=(ToolCall("t", {"k": "v"}, "out", "1", 3),),
    )
    assert read_message(wire_message(message)) == message
    assert wire_messages([message, Message("user", "x")])[1] == {"role": "user", "content": "x"}


def test_wire_message__a_tool_call_carries_both_forms() -> None:
    (call,) = wire_message(Message("assistant", "", tool_calls=(ToolCall("t", {"k": "ü"}),)))[
        "tool_calls"
    ]
    assert call == {
        "type": "function",
        "function": {"name": "t", "arguments": '{"k": "ü"}'},
        "tool": "t",
        "input": {"k": "ü"},
    }


def test_read_message__a_call_of_a_server_that_sends_objects() -> None:
    call = {"type": "null", "name": "other", "function": {"name": "x", "arguments": {"a": 1}}}
    message = read_message({"role": "assistant", "toolCalls": [call]})
    assert message.tool_calls == (ToolCall("x", {"a": 1}),)
