import base64
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.apis.anthropic_messages import conversation, read_message
from tests.support.anthropic_server import message

GIF = base64.b64encode(b"GIF89a").decode()


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_conversation__system_apart_and_turns_joined() -> None:
    calls = (ToolCall("look", {"k": "ü"}, id="x1"), ToolCall("wait"))
    messages = [
        Message("system", "be brief"),
        Message("user", "one", name="ann"),
        Message("user", "two"),
        Message("assistant", "let me look", tool_calls=calls),
        Message("tool", "seen", tool_call_id="x1"),
        Message("tool", ""),
        Message("user", "and now?"),
        Message("assistant", ""),
    ]
    assert conversation(messages) == {
        "system": "be brief",
        "messages": [
            {"role": "user", "content": [text("one"), text("two")]},
            {
                "role": "assistant",
                "content": [
                    text("let me look"),
                    {"type": "tool_use", "id": "x1", "name": "look", "input": {"k": "ü"}},
                    {"type": "tool_use", "id": "call_3_1", "name": "wait", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "x1", "content": [text("seen")]},
                    {"type": "tool_result", "tool_use_id": "call_3_1", "content": []},
                    text("and now?"),
                ],
            },
            {"role": "assistant", "content": []},
        ],
    }


def test_conversation__without_system_has_no_such_field() -> None:
    assert conversation([Message("user", "q")]) == {
        "messages": [{"role": "user", "content": [text("q")]}]
    }


def test_conversation__pictures_from_the_user_and_from_tools() -> None:
    picture = Block("image", f"data:image/gif;base64,{GIF}")
    call = Message("assistant", "", tool_calls=(ToolCall("shot", id="1"),))
    wired = conversation(
        [Message("user", (Block("text", "see"), picture)), call, Message("tool", (picture,))]
    )["messages"]
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": GIF}}
    assert wired[0]["content"] == [text("see"), block]
    assert wired[2]["content"] == [{"type": "tool_result", "tool_use_id": "1", "content": [block]}]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (Message("assistant", (Block("image", GIF),)), "a picture in an assistant message"),
        (Message("assistant", "", tool_calls=(ToolCall("a", "text"),)), "are not an object"),
        (Message("tool", "said"), "answers no tool call"),
        (Message("user", (Block("image", "bm90aGluZw=="),)), "not a PNG, JPEG, GIF or WebP"),
    ],
)
def test_conversation__what_cannot_be_sent_is_a_value_error(wrong: Message, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        conversation([Message("user", "q"), wrong])


def test_read_message__texts_are_one_answer_and_thinking_none_of_it() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    trace = read_message(message(thinking, "a", {"type": "redacted_thinking", "data": "x"}, "b"))
    assert (trace.messages, trace.tool_calls, trace.llm_call_count) == (
        (Message("assistant", "ab"),),
        (),
        1,
    )


def test_read_message__tool_calls() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"x": [1]}}
    trace = read_message(message("let me look", use, stop_reason="tool_use"))
    assert (
        trace.tool_calls
        == trace.messages[0].tool_calls
        == (ToolCall("look", {"x": [1]}, id="toolu_1"),)
    )
    assert read_message(message(use, stop_reason="tool_use")).output == ""


def test_read_message__tools_that_the_vendor_ran_have_their_output() -> None:
    found = [{"type": "web_search_result", "title": "t", "url": "https://example.org"}]
    trace = read_message(
        message(
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "q"},
            },
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
            "found",
        )
    )
    assert trace.tool_calls == (ToolCall("web_search", {"query": "q"}, found, "srvtoolu_1"),)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {
                "input_tokens": 8,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 300,
                "output_tokens": 7,
            },
            (328, 7, 300),
        ),
        ({"input_tokens": 8, "output_tokens": 7}, (8, 7, None)),
        (
            {
                "input_tokens": 8,
                "cache_creation_input_tokens": None,
                "cache_read_input_tokens": 0,
                "output_tokens": 0,
            },
            (8, 0, 0),
        ),
        ({"cache_read_input_tokens": 5}, (None, None, 5)),
        ({"input_tokens": -1, "output_tokens": True}, (None, None, None)),
        ("none", (None, None, None)),
    ],
)
def test_read_message__tokens_in_are_all_that_are_paid(
    usage: Any, tokens: tuple[int | None, ...]
) -> None:
    trace = read_message(message("hi", usage=usage))
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
    ) == tokens
    assert trace.usage.cost_usd is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "the reply is not a message"),
        ([], "the reply is not a message"),
        ({"type": "error"}, "the reply is not a message"),
        ({"content": "text"}, "the reply is not a message"),
        ({"content": ["text"]}, "the reply is not a message"),
        (message(), r"the reply is empty \(stop_reason 'end_turn'\)$"),
        (
            message("", stop_reason="max_tokens"),
            r"the reply is empty \(stop_reason 'max_tokens'\); raise `max_tokens`",
        ),
        (
            message({"type": "tool_use", "id": "1", "input": {}}),
            "a tool call of the reply has no name",
        ),
        (message("partly", stop_reason="pause_turn"), "paused the turn"),
        (
            message("partly", stop_reason="refusal", stop_details=None),
            r"refused to answer \(stop_reason 'refusal'\)$",
        ),
        (
            message(
                stop_reason="refusal",
                stop_details={
                    "type": "refusal",
                    "category": "bio",
                    "explanation": "Too dangerous.",
                },
            ),
            r"refused to answer \(stop_reason 'refusal'\): bio: Too dangerous\.",
        ),
    ],
)
def test_read_message__what_is_no_answer_is_a_value_error(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_message(data)


def test_read_message__an_answer_cut_short_is_one() -> None:
    assert read_message(message("the begin", stop_reason="max_tokens")).output == "the begin"
