import base64
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.targets.apis.gemini_contents import FOREIGN_CALL, conversation, read_content
from tests.support.gemini_server import content

GIF = base64.b64encode(b"GIF89a").decode()


def test_conversation__system_apart_and_turns_joined() -> None:
    calls = (ToolCall("look", {"k": "ü"}, id="x1"), ToolCall("wait"))
    messages = [
        Message("system", "be brief"),
        Message("user", "one", name="ann"),
        Message("user", "two"),
        Message("assistant", "let me look", tool_calls=calls),
        Message("tool", '{"seen": true}', tool_call_id="x1"),
        Message("tool", "waited"),
        Message("user", "and now?"),
    ]
    assert conversation(messages, "gemini-2.5-flash") == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "let me look"},
                    {"functionCall": {"id": "x1", "name": "look", "args": {"k": "ü"}}},
                    {"functionCall": {"id": "call_3_1", "name": "wait", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "x1", "name": "look", "response": {"seen": True}}},
                    {
                        "functionResponse": {
                            "id": "call_3_1",
                            "name": "wait",
                            "response": {"output": "waited"},
                        }
                    },
                    {"text": "and now?"},
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("gemini-3-flash", True),
        ("gemini-4-argon", True),
        ("gemini-flash-latest", True),
        ("gemini-2.5-pro", False),
        ("models/gemini-2.0-flash", False),
        ("gemini-1.5-pro", False),
        ("gemini-20-pro", True),
    ],
)
def test_conversation__the_first_call_of_a_turn_has_a_signature_where_the_model_demands_one(
    model: str, signed: bool
) -> None:
    turn = Message(
        "assistant", "", tool_calls=(ToolCall("a", output="1"), ToolCall("b", output="2"))
    )
    (called, answered) = conversation([turn], model)["contents"]
    assert [part.get("thoughtSignature") for part in called["parts"]] == [
        FOREIGN_CALL if signed else None,
        None,
    ]
    assert [part["functionResponse"]["response"] for part in answered["parts"]] == [
        {"output": "1"},
        {"output": "2"},
    ]


def test_conversation__pictures_from_the_user() -> None:
    blocks = (Block("text", "see"), Block("image", GIF))
    assert conversation([Message("user", blocks)], "m") == {
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/gif", "data": GIF}}],
            }
        ]
    }


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (Message("assistant", (Block("image", GIF),)), "a picture in an assistant message"),
        (Message("assistant", "", tool_calls=(ToolCall("a", [1]),)), "are not an object"),
        (Message("tool", "said"), "answers no tool call"),
        (
            Message("tool", "said", tool_call_id="gone"),
            "the tool message for gone answers no tool call before it, and has no name",
        ),
    ],
)
def test_conversation__what_cannot_be_sent_is_a_value_error(wrong: Message, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        conversation([Message("user", "q"), wrong], "m")


def test_conversation__a_picture_from_a_tool_is_a_value_error() -> None:
    call = Message("assistant", "", tool_calls=(ToolCall("shot"),))
    with pytest.raises(ValueError, match="a picture in a tool message"):
        conversation([call, Message("tool", (Block("image", GIF),))], "m")


def test_read_content__texts_are_one_answer_and_thoughts_none_of_it() -> None:
    trace = read_content(
        content({"text": "hm", "thought": True}, "a", {"text": "b", "thoughtSignature": "c2ln"})
    )
    assert (trace.messages, trace.tool_calls, trace.llm_call_count) == (
        (Message("assistant", "ab"),),
        (),
        1,
    )


def test_read_content__function_calls() -> None:
    calls = (
        {"functionCall": {"name": "look", "args": {"x": [1]}, "id": "1"}},
        {"functionCall": {"name": "wait"}},
    )
    trace = read_content(content(*calls))
    assert (
        trace.tool_calls
        == trace.messages[0].tool_calls
        == (ToolCall("look", {"x": [1]}, id="1"), ToolCall("wait", {}))
    )
    assert trace.output == ""


def test_read_content__code_that_the_vendor_ran_has_its_output() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
    trace = read_content(content(code, result, "It is 1."))
    assert trace.tool_calls == (
        ToolCall("code_execution", {"language": "PYTHON", "code": "print(1)"}, "1\n"),
    )
    assert read_content(content(code)).tool_calls == (
        ToolCall("code_execution", {"language": "PYTHON", "code": "print(1)"}),
    )


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {
                "promptTokenCount": 328,
                "cachedContentTokenCount": 300,
                "candidatesTokenCount": 7,
                "thoughtsTokenCount": 40,
            },
            (328, 47, 300),
        ),
        (
            {"promptTokenCount": 8, "toolUsePromptTokenCount": 90, "candidatesTokenCount": 7},
            (98, 7, None),
        ),
        ({"promptTokenCount": 8, "thoughtsTokenCount": 40}, (8, 40, None)),
        ({"promptTokenCount": 8, "totalTokenCount": 8}, (8, None, None)),
        ({"promptTokenCount": "8"}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_read_content__tokens(usage: Any, tokens: tuple[int | None, ...]) -> None:
    trace = read_content(content("hi", usage=usage))
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
    ) == tokens
    assert trace.usage.cost_usd is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, r"not generated content"),
        ([{}], r"not generated content"),
        ({"candidates": []}, r"not generated content"),
        ({"candidates": ["x"]}, r"not generated content"),
        (
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            r"the vendor blocked the prompt \(PROHIBITED_CONTENT\)",
        ),
        (
            content(finish_reason="SAFETY"),
            r"the vendor stopped the reply \(SAFETY\): it may violate the safety policies",
        ),
        (content("partly", finish_reason="RECITATION"), r"stopped the reply \(RECITATION\)"),
        (
            content(finish_reason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed: print("),
            r"\(MALFORMED_FUNCTION_CALL\): Malformed: print",
        ),
        (content(finish_reason="SOMETHING_NEW"), r"empty \(finishReason 'SOMETHING_NEW'\)$"),
        (content(), r"the reply is empty \(finishReason 'STOP'\)$"),
        (
            content(finish_reason="MAX_TOKENS"),
            r"the reply is empty \(finishReason 'MAX_TOKENS'\); raise `maxOutputTokens`",
        ),
        (
            content({"text": "hm", "thought": True}, finish_reason="MAX_TOKENS"),
            "the reply is empty",
        ),
        ({"candidates": [{"content": {"parts": ["x"]}}]}, "parts.0.` is not an object"),
        (content({"functionCall": {"args": {}}}), "a function call of the reply has no name"),
    ],
)
def test_read_content__what_is_no_answer_is_a_value_error(data: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_content(data)


def test_read_content__an_answer_cut_short_is_one() -> None:
    assert read_content(content("the begin", finish_reason="MAX_TOKENS")).output == "the begin"
    assert read_content(content("hi", finish_reason=None)).output == "hi"
    assert read_content(content("hi", finish_reason="SOMETHING_NEW")).output == "hi"
