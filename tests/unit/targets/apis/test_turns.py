import base64
from pathlib import Path

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.apis.alternating_turns import (
    arguments,
    link_calls,
    parts,
    sides,
    system_text,
)
from agentevals_action.targets.apis.images import Picture
from tests.support.cases import file_block

GIF = base64.b64encode(b"GIF89a").decode()


def test_linked__ids_of_the_suite_stay() -> None:
    call = ToolCall("look", {"x": 1}, id="one")
    asked, answer = link_calls(
        [Message("assistant", "", tool_calls=(call,)), Message("tool", "seen", tool_call_id="one")]
    )
    assert asked.tool_calls == (call,)
    assert answer == Message("tool", "seen", name="look", tool_call_id="one")


def test_linked__calls_without_ids_are_answered_in_order() -> None:
    calls = (ToolCall("a"), ToolCall("b", id="x"), ToolCall("a"))
    asked, *answers = link_calls(
        [Message("assistant", "", tool_calls=calls), *(Message("tool", text) for text in "123")]
    )
    assert [call.id for call in asked.tool_calls] == ["call_0_0", "x", "call_0_2"]
    assert [(answer.tool_call_id, answer.name, answer.content) for answer in answers] == [
        ("call_0_0", "a", "1"),
        ("x", "b", "2"),
        ("call_0_2", "a", "3"),
    ]


def test_linked__a_name_says_whose_answer_it_is() -> None:
    calls = (ToolCall("a"), ToolCall("b"))
    _, first, second = link_calls(
        [
            Message("assistant", "", tool_calls=calls),
            Message("tool", "B", name="b"),
            Message("tool", "A", name="a"),
        ]
    )
    assert [(first.tool_call_id, first.name), (second.tool_call_id, second.name)] == [
        ("call_0_1", "b"),
        ("call_0_0", "a"),
    ]


def test_linked__the_output_that_a_call_carries_answers_it_unless_a_message_does() -> None:
    calls = (ToolCall("a", output="one"), ToolCall("b", output={"n": 2}), ToolCall("c"))
    told = link_calls(
        [
            Message("assistant", "", tool_calls=calls),
            Message("tool", "said", tool_call_id="call_0_0"),
            Message("user", "and?"),
        ]
    )
    assert told[1:] == [
        Message("tool", "said", name="a", tool_call_id="call_0_0"),
        Message("tool", '{"n": 2}', name="b", tool_call_id="call_0_1"),
        Message("user", "and?"),
    ]
    assert link_calls([Message("assistant", "", tool_calls=calls[:1])])[1] == Message(
        "tool", "one", name="a", tool_call_id="call_0_0"
    )


def test_linked__an_answer_to_nothing_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="answers no tool call before it"):
        link_calls([Message("user", "q"), Message("tool", "said")])


def test_system_text__all_of_it_apart() -> None:
    blocks = (Block("text", "two"), Block("json", {"a": 1}))
    assert (
        system_text([Message("system", "one"), Message("user", "q"), Message("system", blocks)])
        == 'one\n\ntwo\n{"a": 1}'
    )
    assert system_text([Message("user", "q")]) == ""
    with pytest.raises(ValueError, match="a picture in a system message cannot be sent"):
        system_text([Message("system", (Block("image", GIF),))])


def test_sides__what_follows_from_one_side_is_together() -> None:
    messages = [
        Message("user", "1"),
        Message("system", "s"),
        Message("user", "2"),
        Message("assistant", "3"),
        Message("tool", "4"),
    ]
    assert [
        (side, [message.content for message in together]) for side, together in sides(messages)
    ] == [
        ("user", ["1", "2"]),
        ("assistant", ["3"]),
        ("user", ["4"]),
    ]


def test_parts__texts_files_and_pictures(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    blocks = (
        Block("text", ""),
        file_block("file", "n.txt", tmp_path / "n.txt"),
        Block("image", GIF),
        Block("json", [1]),
    )
    assert list(parts(Message("user", blocks), ("user",))) == [
        '<file path="n.txt">\nnotes\n</file>',
        Picture("image/gif", GIF),
        "[1]",
    ]
    assert list(parts(Message("user", ""), ())) == []


def test_parts__a_picture_where_none_is_taken_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="a picture in an assistant message"):
        list(parts(Message("assistant", (Block("image", GIF),)), ("user",)))


def test_arguments__an_object_or_nothing() -> None:
    assert (arguments(ToolCall("a")), arguments(ToolCall("a", {"x": 1}))) == ({}, {"x": 1})
    with pytest.raises(ValueError, match="the arguments of the tool call `a` are not an object"):
        arguments(ToolCall("a", "{broken"))
