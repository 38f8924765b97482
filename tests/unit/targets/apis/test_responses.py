import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.apis.openai_responses import (
    TemporaryFailure,
    conversation,
    read_response,
)
from tests.support.cases import file_block
from tests.support.openai_server import RESPONSES_USAGE, function_call, output_message

GIF = base64.b64encode(b"GIF89a").decode()
PICTURE = Block("image", GIF)
URI = f"data:image/gif;base64,{GIF}"


def response(*items: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": list(items),
        **fields,
    }


def test_conversation__system_messages_at_the_beginning_are_the_instructions() -> None:
    messages = [
        Message("system", "a"),
        Message("system", "b"),
        Message("user", "q", name="ann"),
        Message("system", "c"),
    ]
    assert conversation(messages) == {
        "instructions": "a\n\nb",
        "input": [{"role": "user", "content": "q"}, {"role": "system", "content": "c"}],
    }
    assert conversation([Message("user", "q")]) == {"input": [{"role": "user", "content": "q"}]}


def test_conversation__calls_and_their_outputs_are_items() -> None:
    calls = (ToolCall("a", {"k": "ü"}, id="x1"), ToolCall("b", output={"n": 1}))
    messages = [
        Message("user", "q"),
        Message("assistant", "so", tool_calls=calls),
        Message("tool", "one", tool_call_id="x1"),
        Message("assistant", "", tool_calls=(ToolCall("c", id="x2"),)),
        Message("tool", (Block("text", "see"), PICTURE)),
        Message("assistant", "done"),
    ]
    assert conversation(messages)["input"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": "x1", "name": "a", "arguments": '{"k": "ü"}'},
        {"type": "function_call", "call_id": "call_1_1", "name": "b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x1", "output": "one"},
        {"type": "function_call_output", "call_id": "call_1_1", "output": '{"n": 1}'},
        {"type": "function_call", "call_id": "x2", "name": "c", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "x2",
            "output": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "detail": "auto", "image_url": URI},
            ],
        },
        {"role": "assistant", "content": "done"},
    ]


def test_conversation__blocks_are_text_and_pictures_are_pictures(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    blocks = (
        Block("text", "see"),
        Block("json", {"a": 1}),
        file_block("file", "n.txt", tmp_path / "n.txt"),
    )
    texts = ["see", '{"a": 1}', '<file path="n.txt">\nnotes\n</file>']
    assert conversation([Message("user", blocks)])["input"] == [
        {"role": "user", "content": "\n".join(texts)}
    ]
    (item,) = conversation([Message("user", (*blocks, PICTURE))])["input"]
    assert item["content"] == [
        *({"type": "input_text", "text": text} for text in texts),
        {"type": "input_image", "detail": "auto", "image_url": URI},
    ]


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_conversation__a_picture_where_models_take_none_is_a_value_error(role: Any) -> None:
    with pytest.raises(ValueError, match=f"a picture in an? {role} message cannot be sent"):
        conversation([Message("user", "q"), Message(role, (PICTURE,))])


def test_read_response__text_and_usage() -> None:
    reasoning = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
    }
    trace = read_response(response(reasoning, output_message("hi"), usage=RESPONSES_USAGE))
    assert trace == Trace((Message("assistant", "hi"),), (), 1, Usage(11, 7, 3, 0))


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": None},
        {"input_tokens": "11"},
        {"input_tokens": True, "input_tokens_details": None},
        [],
    ],
)
def test_read_response__usage_that_is_not_reported_is_unknown(usage: Any) -> None:
    trace = read_response(response(output_message("hi"), usage=usage))
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        None,
        None,
        None,
    )


def test_read_response__calls_stand_with_the_message_before_them_and_the_last_message_is_the_answer() -> (
    None
):
    trace = read_response(
        response(
            output_message("I look.", phase="commentary"),
            function_call("look", '{"x": 1}', "c1"),
            function_call("broken", "{x", "c2"),
            output_message("Seen.", phase="final_answer"),
        )
    )
    calls = (ToolCall("look", {"x": 1}, id="c1"), ToolCall("broken", "{x", id="c2"))
    assert trace.messages == (
        Message("assistant", "I look.", tool_calls=calls),
        Message("assistant", "Seen."),
    )
    assert (trace.tool_calls, trace.output, trace.llm_call_count) == (calls, "Seen.", 1)


def test_read_response__calls_alone() -> None:
    trace = read_response(response(function_call("look", "", "c1")))
    assert (trace.tool_calls, trace.output) == ((ToolCall("look", {}, id="c1"),), "")


def test_read_response__tools_that_the_vendor_ran_itself_are_calls() -> None:
    trace = read_response(
        response(
            {"type": "mcp_list_tools", "id": "l1", "server_label": "s", "tools": []},
            {
                "type": "mcp_call",
                "id": "m1",
                "name": "roll",
                "server_label": "s",
                "arguments": '{"d": 6}',
                "output": "4",
                "error": None,
            },
            {
                "type": "web_search_call",
                "id": "w1",
                "status": "completed",
                "action": {"type": "search", "query": "cats"},
            },
            {
                "type": "custom_tool_call",
                "id": "t1",
                "call_id": "c1",
                "name": "exec",
                "input": "print(1)",
            },
            output_message("four"),
        )
    )
    assert trace.tool_calls == (
        ToolCall("roll", {"d": 6}, "4", "m1"),
        ToolCall("web_search", {"action": {"type": "search", "query": "cats"}}, id="w1"),
        ToolCall("exec", "print(1)", id="c1"),
    )
    assert trace.output == "four"


def test_read_response__refusals_and_answers_cut_short_are_answers() -> None:
    refusal = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I cannot"}],
    }
    assert read_response(response(refusal)).output == "I cannot"
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert read_response(response(output_message("once upon"), **cut)).output == "once upon"


def test_read_response__a_server_that_tells_no_more_than_it_must() -> None:
    assert read_response({"output": [{"type": "message", "content": "hi"}]}).output == "hi"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "not a response"),
        ({}, "`output` is missing"),
        ({"object": "chat.completion", "output": []}, "not a response"),
        (response(output=5), "`output` is not a list"),
        (response(output=["x"]), "output.0.` is not an object"),
        (response({"type": "message", "content": 5}), "`content` is not a text or a list"),
        (
            response({"type": "function_call", "arguments": "{}"}),
            "function_call of the reply has no name",
        ),
        (
            response(
                output_message("partly"),
                status="incomplete",
                incomplete_details={"reason": "content_filter"},
            ),
            "content filter",
        ),
        (
            response(status="failed", error={"code": "invalid_prompt", "message": "no"}),
            r"\(status 'failed'\): invalid_prompt: no",
        ),
        (response(output_message("x"), status="cancelled"), r"status 'cancelled'"),
        (response(status="in_progress"), "status 'in_progress'"),
    ],
    ids=str,
)
def test_read_response__what_is_no_answer_is_a_value_error(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_response(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (response(), r"empty \(status 'completed'\)"),
        (response(output_message("")), "empty"),
        (response({"type": "reasoning", "summary": []}), "empty"),
        (
            response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            r"status 'incomplete', max_output_tokens",
        ),
    ],
    ids=str,
)
def test_read_response__one_that_says_nothing(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_response(data)


@pytest.mark.parametrize(
    ("code", "limited"), [("server_error", False), ("rate_limit_exceeded", True)]
)
def test_read_response__a_failure_that_passes(code: str, limited: bool) -> None:
    with pytest.raises(TemporaryFailure, match="try again") as caught:
        read_response(response(status="failed", error={"code": code, "message": "try again"}))
    assert caught.value.limited is limited
