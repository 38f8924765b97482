"""Histories in each wire format, with data as the real libraries wrote it (openai-agents 0.24,
langchain-core 1.7, pydantic-ai 2.68, anthropic 2.12, `ai` of npm 6.0), shortened."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.formats.conversations import HISTORIES
from agentevals_action.targets.formats.envelope import read_reply

QUESTION = (
    Message("user", "Hi"),
    Message("assistant", "", tool_calls=(ToolCall("look_up", {"order": "6"}, id="call_0"),)),
    Message("tool", "6: lost", tool_call_id="call_0"),
    Message("assistant", "Order 6 is lost."),
    Message("user", "And order 7?"),
)
#: What each format's agent returns: the whole conversation, with a call and an answer of its own.
CONVERSATIONS: dict[str, list[dict[str, Any]]] = json.loads(
    Path("tests/data/formats/histories.json").read_text(encoding="utf-8")
)
LANGCHAIN, PYDANTIC_AI = CONVERSATIONS["langchain"], CONVERSATIONS["pydantic_ai"]
#: A call of a tool, its result and the answer, in each format.
_, _, _, _, _, LC_ASKED, LC_CALL, LC_RESULT, LC_ANSWER = LANGCHAIN
PYDANTIC_CALL = PYDANTIC_AI[5]["parts"][1]
PYDANTIC_RETURN = PYDANTIC_AI[6]["parts"][0]
#: Those that contain tokens: input, output and cached ones of both calls.
TOKENS = dict.fromkeys(("anthropic", "langchain", "pydantic_ai"), (22, 14, 6))
MODELS = {
    "anthropic": "claude-sonnet-5",
    "langchain": "gpt-5-mini",
    "pydantic_ai": "gpt-5-mini",
}


def read(data: Any, question: Sequence[Message] = QUESTION) -> Trace:
    return read_reply(json.dumps(data), question)


def tokens(trace: Trace) -> tuple[int | None, int | None, int | None]:
    return trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens


@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__a_conversation_is_recognized_by_its_structure(name: str) -> None:
    items = CONVERSATIONS[name]
    found = next(other for other, history in HISTORIES.items() if history.matches(items))
    assert found == (name if name in HISTORIES else "role_messages")


@pytest.mark.parametrize("form", ["list", "envelope", "output"])
@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__the_agent_s_own_part_of_a_conversation(name: str, form: str) -> None:
    """Attack: the call in the question would pass a test that expects it of the agent."""
    items: Any = CONVERSATIONS[name]
    data = {"list": items, "envelope": {"messages": items}, "output": {"output": items}}[form]
    trace = read(data)
    assert trace.output == "It was shipped."
    assert trace.tool_calls == (
        ToolCall("look_up", {"order": "7"}, output="7: shipped", id="call_1"),
    )
    assert [message.role for message in trace.messages] == ["assistant", "tool", "assistant"]
    assert trace.llm_call_count == 2
    assert tokens(trace) == TOKENS.get(name, (None, None, None))
    assert trace.model == MODELS.get(name)


@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__an_agent_may_return_its_own_part_alone(name: str) -> None:
    items = CONVERSATIONS[name]
    start = next(
        index for index, item in enumerate(items) if "call_1" in json.dumps(item).replace("'", '"')
    )
    assert read(items[start:]) == read(items)


@pytest.mark.parametrize("name", ["openai_chat", "vercel"])
def test_read_reply__the_question_alone_does_not_prove_that_the_agent_made_no_call(
    name: str,
) -> None:
    trace = read({"output": "done", "messages": CONVERSATIONS[name][:6]})
    assert (trace.output, trace.tool_calls) == ("done", None)


def test_read_reply__messages_to_dict_of_langchain() -> None:
    wrapped = [{"type": message["type"], "data": message} for message in LANGCHAIN]
    assert read(wrapped) == read(LANGCHAIN)


def test_read_reply__figures_of_an_envelope_take_precedence() -> None:
    usage = {"input": 30, "output": 20, "cached": 1}
    trace = read({"messages": LANGCHAIN, "token_usage": usage, "llm_call_count": 3})
    assert tokens(trace) == (30, 20, 1)
    assert trace.llm_call_count == 3


@pytest.mark.parametrize("name", sorted(TOKENS))
def test_read_reply__tokens_of_which_a_part_is_missing_are_unknown(name: str) -> None:
    items = json.loads(json.dumps(CONVERSATIONS[name]))
    items[-1].pop("usage", None)
    items[-1]["usage_metadata"] = None
    assert tokens(read(items)) == (None, None, None)


@pytest.mark.parametrize(
    ("question", "texts", "own"),
    [
        (["Where is it?"], ["Where is it?"], 1),
        (["Where is it?"], ["Customer: Where is it?\nBe brief."], 1),
        (["Hello", "Where is it?"], ["Where is it?"], 1),
        (["Yes", "Yes"], ["Yes", "Yes"], 1),
        (["Yes", "Yes"], ["Yes"], 1),
        (["a", "b"], ["translated a", "translated c"], 1),
        (["Where is it?"], [], 1),
    ],
)
def test_read_reply__the_question_may_have_another_form(
    question: list[str], texts: list[str], own: int
) -> None:
    messages = [Message("user", text) for text in question]
    items = [{"role": "user", "content": text} for text in texts]
    before = items[:1] + [
        item for text in items[1:] for item in ({"role": "assistant", "content": "x"}, text)
    ]
    trace = read([*before, {"role": "assistant", "content": "Here."}], messages)
    assert trace.messages == (Message("assistant", "Here."),)
    assert trace.llm_call_count == own


def test_read_reply__replies_of_several_models_have_no_single_price() -> None:
    items = json.loads(json.dumps(PYDANTIC_AI))
    items[-1]["model_name"] = "gpt-5"
    assert read(items).model is None


def test_read_reply__a_cost_in_the_messages_is_summed() -> None:
    items = json.loads(json.dumps(PYDANTIC_AI))
    assert read(items).usage.cost_usd is None
    for item in items[-3:]:
        if "usage" in item:
            item["usage"] = {**item["usage"], "cost": 0.25}
    assert read(items).usage.cost_usd == 0.5


def test_read_reply__a_user_s_message_among_the_agent_s_does_not_end_the_question() -> None:
    """A supervisor that passes on the reply of a worker as a user's message."""
    worker = {"type": "human", "content": "The worker says: shipped", "name": "worker"}
    items = [LC_ASKED, LC_CALL, LC_RESULT, worker, LC_ANSWER]
    question = [Message("user", "And order 7?")]
    trace = read(items, question)
    assert [call.name for call in trace.tool_calls or ()] == ["look_up"]
    assert trace.llm_call_count == 2
    assert read(items[1:], question) == trace


def test_read_reply__a_question_with_a_file_is_recognized_by_its_text() -> None:
    question = Message("user", (Block("text", "Summarize."), Block("file", "notes.txt")))
    items = [
        {"role": "user", "content": "Summarize.\n<file>…</file>"},
        {"role": "assistant", "content": "Notes."},
    ]
    assert read(items, [question]).messages == (Message("assistant", "Notes."),)


def test_read_reply__a_question_may_end_with_the_agent_s_own_messages() -> None:
    """A test that continues after a call."""
    question = QUESTION[:3]
    trace = read(CONVERSATIONS["openai_responses"][:4], question)
    assert trace.messages == (Message("assistant", "Order 6 is lost."),)
    assert trace.tool_calls == ()


def pydantic_history(*parts: dict[str, Any], kind: str = "response") -> dict[str, Any]:
    return {"kind": kind, "parts": list(parts)}


def test_read_reply__structured_output_of_pydantic_ai_is_the_answer() -> None:
    call = {**PYDANTIC_CALL, "tool_kind": "output"}
    processed = {**PYDANTIC_RETURN, "content": "Final result processed."}
    for end in ([], [{"kind": "request", "parts": [processed]}]):
        trace = read([pydantic_history(call), *end])
        assert (trace.output, trace.tool_calls) == ('{"order": "7"}', ())


#: Parts of pydantic-ai that end a call, and whether the call was not made: a person denied it, its
#: arguments are not valid, or there is no such tool. Other texts are the tool's own.
ENDS: list[tuple[dict[str, Any], bool]] = [
    ({"outcome": "denied"}, True),
    ({"outcome": "failed"}, False),
    ({"part_kind": "retry-prompt", "content": [{"type": "int_parsing", "loc": ["order"]}]}, True),
    ({"part_kind": "retry-prompt", "content": "Unknown tool name: 'look_up'."}, True),
    ({"part_kind": "retry-prompt", "content": "Ask again with the year of the order."}, False),
]


@pytest.mark.parametrize(("end", "refused"), ENDS)
def test_read_reply__a_call_of_pydantic_ai_that_was_not_made_is_refused(
    end: dict[str, Any], refused: bool
) -> None:
    made = {**PYDANTIC_CALL, "tool_call_id": "call_2"}
    ends = {**PYDANTIC_RETURN, **end}, {**PYDANTIC_RETURN, "tool_call_id": "call_2"}
    items = [pydantic_history(PYDANTIC_CALL, made), pydantic_history(*ends, kind="request")]
    calls = read(items).tool_calls or ()
    assert [(call.id, call.refused) for call in calls] == [("call_1", refused), ("call_2", False)]


def test_read_reply__a_builtin_call_of_pydantic_ai_has_its_return_beside_it() -> None:
    call = {**PYDANTIC_CALL, "part_kind": "builtin-tool-call"}
    end = {**PYDANTIC_RETURN, "part_kind": "builtin-tool-return", "outcome": "denied"}
    (found,) = read([pydantic_history(call, end)]).tool_calls or ()
    assert (found.output, found.refused) == ("7: shipped", True)


def test_read_reply__broken_arguments_of_a_call_stay_a_text() -> None:
    broken = [{"name": "look_up", "args": "{order", "id": "1"}]
    message = {**LC_ANSWER, "invalid_tool_calls": broken}
    assert read([message]).tool_calls == (ToolCall("look_up", "{order", id="1"),)


def test_read_reply__tools_of_the_vendor_have_their_outputs() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": "found"},
    ]
    trace = read([{"role": "assistant", "content": blocks}])
    assert trace.tool_calls == (ToolCall("web_search", {"query": "x"}, "found", "s1"),)


def test_read_reply__server_tools_of_langchain_are_calls() -> None:
    content = [
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "x"}},
        {
            "type": "server_tool_result",
            "tool_call_id": "s1",
            "status": "success",
            "output": "found",
        },
        {"type": "tool_use", "id": "1", "name": "look_up", "input": {"order": "7"}},
        {"type": "text", "text": "Shipped."},
    ]
    listed = [{"name": "look_up", "args": {"order": "7"}, "id": "1", "type": "tool_call"}]
    copies = {"tool_call_chunks": listed, "additional_kwargs": {"tool_calls": listed}}
    chunk = {"type": "AIMessageChunk", "content": content, "tool_calls": listed, **copies}
    trace = read([chunk])
    assert (trace.output, trace.tool_calls) == (
        "Shipped.",
        (
            ToolCall("web_search", {"query": "x"}, "found", "s1"),
            ToolCall("look_up", {"order": "7"}, id="1"),
        ),
    )


def test_read_reply__the_old_function_call_of_openai() -> None:
    call = {"name": "refund", "arguments": '{"amount": 9999}'}
    items = [
        {"role": "user", "content": "Refund it."},
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "refund", "content": "done"},
        {"role": "assistant", "content": "Refunded.", "function_call": None},
    ]
    trace = read(items, [Message("user", "Refund it.")])
    assert (trace.output, trace.tool_calls) == (
        "Refunded.",
        (ToolCall("refund", {"amount": 9999}),),
    )


@pytest.mark.parametrize(
    ("end", "refused"),
    [
        ([], True),
        ([{"type": "tool-result", "output": {"type": "execution-denied", "reason": "no"}}], True),
        ([{"type": "tool-result", "output": {"type": "json", "value": {"ok": 1}}}], False),
    ],
)
def test_read_reply__a_call_of_vercel_that_a_person_must_approve(
    end: list[dict[str, Any]], refused: bool
) -> None:
    asked = [
        {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"amount": 9999}},
        {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
    ]
    results = [{**block, "toolCallId": "c1", "toolName": "refund"} for block in end]
    items = [{"role": "assistant", "content": asked}, {"role": "tool", "content": results}]
    trace = read(items)
    assert [(call.name, call.refused) for call in trace.tool_calls or ()] == [("refund", refused)]
    assert len(trace.made_calls or ()) == (not refused)


REFUND = {"name": "refund", "args": {"amount": 9999}}
LOOK_UP = {"name": "look_up", "args": {"order": "7"}, "id": "1"}
#: Messages with a part that may be a call, and the name of that part.
UNREAD: list[tuple[list[dict[str, Any]], str]] = [
    ([{"role": "assistant", "content": [{"type": "tool-use", "text": "a"}]}], "tool-use"),
    ([{"role": "assistant", "content": [{"functionCall": {"name": "refund"}}]}], "functionCall"),
    ([{"role": "assistant", "content": [{"name": "refund", "args": {}}]}], "without a `type`"),
    ([{"role": "assistant", "content": "a", "toolInvocations": [{}]}], "toolInvocations"),
    ([{"role": "assistant", "parts": [{"type": "tool-refund"}]}], "parts"),
    ([{"role": "assistant", "content": {"parts": [{"functionCall": {}}]}}], "parts"),
    ([{"role": "assistant", "contents": [{"type": "invocation"}]}], "contents"),
    (
        [{"role": "tool", "tool_call_id": "7", "content": "Refunded 9999."}],
        "a result of a tool without its call",
    ),
    ([{"role": "assistant", "items": [{"content_type": "function_call"}]}], "items"),
    (
        [{"role": "assistant", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}],
        "tool_calls",
    ),
    *(
        ([{"role": "assistant", **fields}], name)
        for name, fields in (
            ("toolUse", {"content": [{"type": "text", "text": "", "toolUse": REFUND}]}),
            ("functionCall", {"content": [{"text": "ok", "functionCall": REFUND}]}),
            ("toolUse", {"content": [{"type": "text", "value": "ok", "toolUse": REFUND}]}),
            ("tool_calls", {"content": [{"text": "ok", "metadata": {"tool_calls": [REFUND]}}]}),
            ("function", {"content": [{"type": "thinking", "function": "refund"}]}),
            ("tool-use", {"content": {"type": "tool-use", **REFUND}}),
            ("tool", {"content": {"tool": "refund", "args": {"amount": 9999}}}),
            ("tool_calls", {"content": "a", "metadata": {"tool_calls": [REFUND]}}),
            ("tool", {"content": "a", "metadata": {"tool": "refund"}}),
            ("function_call", {"tool_calls": [LOOK_UP], "metadata": {"function_call": REFUND}}),
            ("tool_calls", {"tool_calls": [LOOK_UP], "additional_kwargs": {"tool_calls": [{}]}}),
            ("tools", {"tool_calls": [LOOK_UP], "metadata": {"tools": [{**REFUND, "id": "1"}]}}),
            ("tool_call_chunks", {"content": "a", "tool_call_chunks": [REFUND]}),
            ("tool", {"content": "a", "metadata": {"events": [{"tool": "refund"}]}}),
            ("tool_calls", {"content": "a", "choices": [{"message": {"tool_calls": [REFUND]}}]}),
            ("tool_calls", {"content": [{"text": "ok", "extra": [{"tool_calls": [REFUND]}]}]}),
            (
                "tool_use",
                {"content": "a", "message": {"content": [{"type": "tool_use", **REFUND}]}},
            ),
        )
    ),
    (
        [
            {
                "type": "ai",
                "content": "",
                "tool_calls": [LOOK_UP],
                "additional_kwargs": {"function_call": REFUND},
            }
        ],
        "function_call",
    ),
    (
        [
            {"role": "user", "content": "And order 7?"},
            {"type": "approval", "name": "rm"},
            {"type": "reasoning"},
            {"role": "assistant", "content": "a"},
        ],
        "approval",
    ),
    ([{"type": "function_call_output", "call_id": "1"}, {"type": "compaction"}], "compaction"),
    ([{"kind": "response", "parts": [{"part_kind": "new-call"}]}], "new-call"),
    ([{"type": "ai", "content": [{"type": "tool_call_chunk", "name": "a"}]}], "tool_call_chunk"),
]


@pytest.mark.parametrize(("items", "name"), UNREAD, ids=[name for _, name in UNREAD])
def test_read_reply__a_part_of_an_unknown_kind_leaves_the_calls_unknown(
    items: list[dict[str, Any]], name: str
) -> None:
    """Attack: an agent whose messages are in an unknown dialect refunds 9999, and passes a test
    that permits no call."""
    end = {"role": "assistant", "content": "done", "type": "message"}
    items = [*items, end] if "role" in items[0] else items
    for data in (items, {"messages": items, "extra": 1}):
        trace = read(data)
        assert trace.tool_calls is None
        assert f'parts of an unknown kind ("{name}"), which may be tool calls' in trace.warnings[-1]


def test_read_reply__a_content_that_is_one_block_is_read_as_a_block() -> None:
    call = {"type": "tool_use", "id": "1", "name": "refund", "input": {"amount": 9999}}
    trace = read([{"role": "assistant", "content": call}])
    assert trace.tool_calls == (ToolCall("refund", {"amount": 9999}, id="1"),)
    text = read([{"role": "assistant", "content": {"type": "text", "text": "Shipped."}}])
    assert (text.output, text.tool_calls) == ("Shipped.", ())


@pytest.mark.parametrize(
    "fields",
    [
        {"content": [{"type": "text", "text": "a", "annotations": [], "index": 0}]},
        {"content": [{"type": "json", "value": {"tools": ["drill"]}}]},
        {"metadata": {"team": "core", "finish_reason": "tool_calls", "tool_calls": []}},
        {"usage": {"input_tokens": 1, "server_tool_use": {"web_search_requests": 0}}},
        {"response_metadata": {"usage": {"server_tool_use": {"web_search_requests": 0}}}},
    ],
)
def test_read_reply__ordinary_fields_are_no_calls(fields: dict[str, Any]) -> None:
    trace = read([{"role": "assistant", "content": "a", **fields}])
    assert (trace.tool_calls, trace.warnings) == ((), ())


@pytest.mark.parametrize(
    "more",
    [
        {"function_call": {"name": "look_up", "arguments": '{"order": "7"}'}},
        {"tool_calls": [{"id": "1", "function": {"name": "look_up", "arguments": "{}"}}]},
        {"__gemini_function_call_thought_signatures__": {"1": "signature"}},
        {"tool_plan": "I look it up."},
        {
            "message": {
                "tool_calls": [{"function": {"name": "look_up", "arguments": {"order": "7"}}}]
            }
        },
        {"message": {"content": [{**LOOK_UP, "type": "tool_use"}]}},
    ],
)
def test_read_reply__copies_of_a_call_are_no_other_calls(more: dict[str, Any]) -> None:
    item = {"type": "ai", "content": "", "tool_calls": [LOOK_UP], "additional_kwargs": more}
    trace = read([item])
    assert trace.tool_calls == (ToolCall("look_up", {"order": "7"}, id="1"),)
    assert trace.warnings == ()


def test_read_reply__a_structured_answer_has_lists_of_any_name() -> None:
    trace = read([{"role": "assistant", "content": {"items": [1], "steps": [2]}}])
    assert trace.tool_calls == ()
    assert "items" in trace.output


@pytest.mark.parametrize(
    "before",
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "new", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        {"role": "assistant", "content": "I look.", "annotations": [], "tool_calls": None},
    ],
)
def test_read_reply__blocks_of_two_dialects_may_stand_in_one_list(before: dict[str, Any]) -> None:
    call = {"type": "tool_use", "id": "1", "name": "refund", "input": {"amount": 9999}}
    trace = read([before, {"role": "assistant", "content": [call]}])
    assert trace.tool_calls == (ToolCall("refund", {"amount": 9999}, id="1"),)
    assert trace.warnings == ()


def test_read_reply__messages_of_one_reply_are_one_call_of_the_model() -> None:
    items = [
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "web_search_call", "id": "w1"},
        {"type": "message", "role": "assistant", "content": "Shipped."},
    ]
    trace = read(items)
    assert (trace.output, trace.llm_call_count) == ("Shipped.", 1)
    assert [call.name for call in trace.tool_calls or ()] == ["web_search"]


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        "[]",
        '["a", {"role": "assistant", "content": "x"}]',
        '[{"role": "user", "content": "x"}]',
        '[{"name": "x", "type": "human"}]',
        '[{"type": ["human"], "content": "x"}]',
        '[{"id": 1, "content": "x"}]',
        "[1] see the notes",
    ],
)
def test_read_reply__any_other_list_is_a_text(text: str) -> None:
    trace = read_reply(text)
    assert trace.messages == (Message("assistant", text),)
    assert trace.tool_calls is None


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            [{"type": "ai", "content": "x", "tool_calls": [{"args": {}}]}],
            "a tool call of the reply has no name",
        ),
        (
            [{"type": "function_call", "call_id": "1", "arguments": "{}"}],
            "a tool call of the reply has no name",
        ),
        (
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {}}]}],
            "a tool call of the reply has no name",
        ),
    ],
)
def test_read_reply__an_item_that_is_not_valid_is_an_error(
    items: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(ValueError, match=r"^") as caught:
        read(items)
    assert str(caught.value) == problem


def test_read_reply__a_call_with_name_and_args_in_a_list_of_roles() -> None:
    call = {"name": "refund", "args": {"amount": 9999}, "id": "c1"}
    trace = read([{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert trace.tool_calls == (ToolCall("refund", {"amount": 9999}, id="c1"),)


def test_read_reply__an_unknown_item_of_a_response_is_part_of_the_reply_around_it() -> None:
    items = [
        {"role": "user", "content": "q"},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
        {"type": "new_kind", "id": "n1"},
        {"role": "assistant", "content": "done"},
    ]
    trace = read(items)
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == ("done", None, 2)
    assert '"new_kind"' in trace.warnings[0]
