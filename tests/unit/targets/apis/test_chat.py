import base64
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.apis.openai_chat import chat_messages, read_completion
from tests.support.cases import file_block


def completion(
    message: dict[str, Any], finish_reason: str = "stop", usage: Any = None
) -> dict[str, Any]:
    return {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **message},
                "finish_reason": finish_reason,
            }
        ],
        "usage": usage,
    }


def test_chat_messages__a_conversation_with_tools() -> None:
    messages = [
        Message("system", "be brief"),
        Message("user", "q", name="ann"),
        Message("assistant", "", tool_calls=(ToolCall("a", {"k": "ü"}, id="x1"), ToolCall("b"))),
        Message("tool", "one", name="a", tool_call_id="x1"),
        Message("tool", "two"),
    ]
    calls = [
        {"id": "x1", "type": "function", "function": {"name": "a", "arguments": '{"k": "ü"}'}},
        {"id": "call_2_1", "type": "function", "function": {"name": "b", "arguments": "{}"}},
    ]
    assert chat_messages(messages) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "q", "name": "ann"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "one", "tool_call_id": "x1"},
        {"role": "tool", "content": "two", "tool_call_id": "call_2_1"},
    ]


def test_chat_messages__blocks_are_text_and_pictures_are_pictures(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    picture = base64.b64encode(b"GIF89a").decode()
    blocks = (
        Block("text", "see"),
        Block("json", {"a": 1}),
        file_block("file", "n.txt", tmp_path / "n.txt"),
    )
    text = 'see\n{"a": 1}\n<file path="n.txt">\nnotes\n</file>'
    assert chat_messages([Message("user", blocks)]) == [{"role": "user", "content": text}]
    (wired,) = chat_messages([Message("user", (blocks[0], Block("image", picture)))])
    assert wired["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{picture}"}},
    ]


def test_chat_messages__a_picture_where_models_take_none_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="a picture in a system message cannot be sent"):
        chat_messages([Message("system", (Block("image", "R0lGODlh"),))])


def test_chat_messages__the_output_that_a_call_carries_answers_it() -> None:
    calls = (ToolCall("a", output="one"), ToolCall("b", output={"n": 2}))
    wired = chat_messages(
        [
            Message("assistant", "", tool_calls=calls),
            Message("tool", "said", tool_call_id="call_0_0"),
        ]
    )
    assert wired[1:] == [
        {"role": "tool", "content": "said", "tool_call_id": "call_0_0"},
        {"role": "tool", "content": '{"n": 2}', "tool_call_id": "call_0_1"},
    ]


def test_chat_messages__a_file_that_is_no_text_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"a\xff")
    with pytest.raises(
        ValueError, match=r"the file x\.bin is no UTF-8 text \(invalid start byte at byte 1\)"
    ):
        chat_messages([Message("user", (file_block("file", "x.bin", tmp_path / "x.bin"),))])


def test_read_completion__text_and_usage() -> None:
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    assert read_completion(completion({"content": "hi"}, usage=usage)) == Trace(
        (Message("assistant", "hi"),), (), 1, Usage(11, 7, 3)
    )


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None},
        {"prompt_tokens": "11"},
        {"prompt_tokens": True, "prompt_tokens_details": None},
        [],
    ],
)
def test_read_completion__usage_that_is_not_reported_is_unknown(usage: Any) -> None:
    trace = read_completion(completion({"content": "hi"}, usage=usage))
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        None,
        None,
        None,
    )


def test_read_completion__tool_calls_even_with_broken_arguments() -> None:
    calls = [
        {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"k": 1}'}},
        {"id": None, "type": "function", "function": {"name": "b", "arguments": "{broken"}},
        {"type": "function", "function": {"name": "c", "arguments": ""}},
        {"id": "4", "type": "custom", "custom": {"name": "d", "input": "print(1)"}},
    ]
    trace = read_completion(completion({"content": None, "tool_calls": calls}, "tool_calls"))
    assert trace.tool_calls == (
        ToolCall("a", {"k": 1}, id="1"),
        ToolCall("b", "{broken"),
        ToolCall("c", {}),
        ToolCall("d", "print(1)", id="4"),
    )
    assert (trace.output, trace.llm_call_count) == ("", 1)


def test_read_completion__parts_and_refusals_are_the_answer() -> None:
    assert (
        read_completion(
            completion({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
        ).output
        == "ab"
    )
    assert (
        read_completion(completion({"content": None, "refusal": "I cannot"})).output == "I cannot"
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "not a chat completion"),
        ([], "not a chat completion"),
        ({"choices": []}, "not a chat completion"),
        ({"choices": [5]}, "not a chat completion"),
        ({"choices": [{"message": None}]}, "not a chat completion"),
        (completion({"content": "partly"}, "content_filter"), "content filter"),
        (completion({"content": 5}), "`choices\\[0\\].message.content` is not a text"),
        (completion({"content": "x", "tool_calls": {}}), "tool_calls` is not a list"),
        (completion({"content": "x", "tool_calls": ["y"]}), "not an object"),
        (
            completion({"content": "x", "tool_calls": [{"function": {"arguments": ""}}]}),
            r"function.name` is missing",
        ),
    ],
)
def test_read_completion__what_is_no_answer_is_a_value_error(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_completion(data)


def test_read_completion__one_that_says_nothing() -> None:
    for message, reason in (({"content": None}, "length"), ({"content": ""}, "stop")):
        with pytest.raises(ValueError, match=rf"empty \(finish_reason '{reason}'\)"):
            read_completion(completion(message, reason))
