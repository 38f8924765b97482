"""The formats of conversations, with data as the real libraries wrote it (openai-agents 0.24,
langchain-core 1.7, pydantic-ai 2.68, anthropic 2.12), shortened."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.replies.envelope import read_reply
from agentevals_action.targets.replies.formats import FORMATS

QUESTION = (
    Message("user", "Hi"),
    Message("assistant", "", tool_calls=(ToolCall("look_up", {"order": "6"}, id="call_0"),)),
    Message("tool", "6: lost", tool_call_id="call_0"),
    Message("assistant", "Order 6 is lost."),
    Message("user", "And order 7?"),
)
#: What each format's agent returns: the whole conversation, with a call and an answer of its own.
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {
        "type": "function_call",
        "call_id": "call_0",
        "name": "look_up",
        "arguments": '{"order": "6"}',
    },
    {"type": "function_call_output", "call_id": "call_0", "output": "6: lost"},
    {"role": "assistant", "content": "Order 6 is lost."},
    {"role": "user", "content": "And order 7?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]},
    {
        "arguments": '{"order":"7"}',
        "call_id": "call_1",
        "name": "look_up",
        "type": "function_call",
        "id": "fc_1",
        "status": "completed",
    },
    {"call_id": "call_1", "output": "7: shipped", "type": "function_call_output"},
    {
        "id": "msg_1",
        "content": [
            {"annotations": [], "text": "It was shipped.", "type": "output_text", "logprobs": []}
        ],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    },
]


def _langchain_ai(content: str, calls: Sequence[Mapping[str, Any]], usage: Any) -> dict[str, Any]:
    return {
        "content": content,
        "additional_kwargs": {"refusal": None},
        "response_metadata": {"model_provider": "openai", "model_name": "gpt-5-mini"},
        "type": "ai",
        "name": None,
        "id": "lc_run--1",
        "tool_calls": list(calls),
        "invalid_tool_calls": [],
        "usage_metadata": usage,
    }


def _langchain_call(order: str, id: str) -> dict[str, Any]:
    return {"name": "look_up", "args": {"order": order}, "id": id, "type": "tool_call"}


LANGCHAIN_USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "input_token_details": {"cache_read": 3},
    "output_token_details": {},
}
LANGCHAIN: list[dict[str, Any]] = [
    {"content": "Answer briefly.", "type": "system"},
    {"content": "Hi", "type": "human", "name": None},
    _langchain_ai("", [_langchain_call("6", "call_0")], None),
    {"content": "6: lost", "type": "tool", "name": "look_up", "tool_call_id": "call_0"},
    _langchain_ai("Order 6 is lost.", [], None),
    {"content": "And order 7?", "type": "human", "name": None},
    _langchain_ai("", [_langchain_call("7", "call_1")], LANGCHAIN_USAGE),
    {"content": "7: shipped", "type": "tool", "name": "look_up", "tool_call_id": "call_1"},
    _langchain_ai("It was shipped.", [], LANGCHAIN_USAGE),
]
PYDANTIC_USAGE = {"input_tokens": 11, "cache_read_tokens": 3, "output_tokens": 7, "details": {}}


def _pydantic(kind: str, *parts: Mapping[str, Any], usage: Any = None) -> dict[str, Any]:
    usage = {"usage": usage, "model_name": "gpt-5-mini"} if kind == "response" else {}
    return {"kind": kind, "parts": list(parts), "run_id": "1", "state": "complete", **usage}


def _pydantic_call(order: str, id: str) -> dict[str, Any]:
    return {
        "part_kind": "tool-call",
        "tool_name": "look_up",
        "args": json.dumps({"order": order}),
        "tool_call_id": id,
        "tool_kind": None,
    }


def _pydantic_return(content: Any, id: str) -> dict[str, Any]:
    return {
        "part_kind": "tool-return",
        "tool_name": "look_up",
        "content": content,
        "tool_call_id": id,
    }


PYDANTIC_AI: list[dict[str, Any]] = [
    _pydantic(
        "request",
        {"part_kind": "system-prompt", "content": "Answer briefly."},
        {"part_kind": "user-prompt", "content": "Hi"},
    ),
    _pydantic("response", _pydantic_call("6", "call_0"), usage={"input_tokens": 0}),
    _pydantic("request", _pydantic_return("6: lost", "call_0")),
    _pydantic("response", {"part_kind": "text", "content": "Order 6 is lost."}),
    _pydantic("request", {"part_kind": "user-prompt", "content": "And order 7?"}),
    _pydantic(
        "response",
        {"part_kind": "thinking", "content": "Look."},
        _pydantic_call("7", "call_1"),
        usage=PYDANTIC_USAGE,
    ),
    _pydantic("request", _pydantic_return("7: shipped", "call_1")),
    _pydantic(
        "response", {"part_kind": "text", "content": "It was shipped."}, usage=PYDANTIC_USAGE
    ),
]


def _anthropic_use(order: str, id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "look_up", "input": {"order": order}}


def _anthropic_result(text: str, id: str) -> dict[str, Any]:
    block = {"type": "text", "text": text}
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": [block]}],
    }


def _anthropic_reply(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": list(blocks),
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 8, "cache_read_input_tokens": 3, "output_tokens": 7},
    }


ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [_anthropic_use("6", "call_0")]},
    _anthropic_result("6: lost", "call_0"),
    {"role": "assistant", "content": "Order 6 is lost."},
    {"role": "user", "content": [{"type": "text", "text": "And order 7?"}]},
    _anthropic_reply(
        {"type": "thinking", "thinking": "Look.", "signature": "s"}, _anthropic_use("7", "call_1")
    ),
    _anthropic_result("7: shipped", "call_1"),
    _anthropic_reply({"type": "text", "text": "It was shipped."}),
]


def _chat_call(order: str, id: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": json.dumps({"order": order})}
    call = {"id": id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}


OPENAI_CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Answer briefly."},
    {"role": "user", "content": "Hi"},
    _chat_call("6", "call_0"),
    {"role": "tool", "tool_call_id": "call_0", "content": "6: lost"},
    {"role": "assistant", "content": "Order 6 is lost."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "And order 7?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ],
    },
    _chat_call("7", "call_1"),
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "7: shipped"}]},
    {"role": "assistant", "content": "It was shipped.", "refusal": None},
]
CONVERSATIONS: Mapping[str, list[dict[str, Any]]] = {
    "anthropic": ANTHROPIC,
    "langchain": LANGCHAIN,
    "openai_chat": OPENAI_CHAT,
    "openai_responses": RESPONSES,
    "pydantic_ai": PYDANTIC_AI,
}
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


def test_formats__all_have_a_sample() -> None:
    assert CONVERSATIONS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__a_conversation_is_recognized_by_its_structure(name: str) -> None:
    items = CONVERSATIONS[name]
    reading = [other for other, read in FORMATS.items() if read(items) is not None]
    assert reading[0] == name


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
    ("question", "said", "own"),
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
    question: list[str], said: list[str], own: int
) -> None:
    messages = [Message("user", text) for text in question]
    items = [{"role": "user", "content": text} for text in said]
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
    items = [
        {"type": "human", "content": "Where is it?"},
        _langchain_ai("", [_langchain_call("7", "call_1")], LANGCHAIN_USAGE),
        {"type": "tool", "content": "shipped", "tool_call_id": "call_1"},
        {"type": "human", "content": "The worker says: shipped", "name": "worker"},
        _langchain_ai("It was shipped.", [], LANGCHAIN_USAGE),
    ]
    trace = read(items, [Message("user", "Where is it?")])
    assert [call.name for call in trace.tool_calls or ()] == ["look_up"]
    assert trace.llm_call_count == 2
    alone = read(items[1:], [Message("user", "Where is it?")])
    assert alone == trace


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
    trace = read(RESPONSES[:4], question)
    assert trace.messages == (Message("assistant", "Order 6 is lost."),)
    assert trace.tool_calls == ()


def test_read_reply__structured_output_of_pydantic_ai_is_the_answer() -> None:
    call = {
        "part_kind": "tool-call",
        "tool_name": "final_result",
        "args": '{"status": "shipped"}',
        "tool_call_id": "c",
        "tool_kind": "output",
    }
    trace = read([_pydantic("response", call, usage=PYDANTIC_USAGE)])
    assert (trace.output, trace.tool_calls) == ('{"status": "shipped"}', ())


@pytest.mark.parametrize(("outcome", "refused"), [("denied", True), ("failed", False), (3, False)])
@pytest.mark.parametrize("builtin", [False, True])
def test_read_reply__a_denied_call_of_pydantic_ai_is_not_made(
    outcome: Any, refused: bool, builtin: bool
) -> None:
    """Attack: a call that a person did not approve passes the gate that requires it."""
    call = _pydantic_call("7", "call_1")
    end = {**_pydantic_return("The tool call was denied.", "call_1"), "outcome": outcome}
    made = _pydantic_call("8", "call_2"), _pydantic_return("8: shipped", "call_2")
    if builtin:
        call, end = ({**part, "part_kind": f"builtin-{part['part_kind']}"} for part in (call, end))
        items = [_pydantic("response", call, end, made[0]), _pydantic("request", made[1])]
    else:
        items = [_pydantic("response", call, made[0]), _pydantic("request", end, made[1])]
    calls = read(items).tool_calls or ()
    assert [(call.id, call.output, call.refused) for call in calls] == [
        ("call_1", "The tool call was denied.", refused),
        ("call_2", "8: shipped", False),
    ]


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        ([{"type": "int_parsing", "loc": ["order"], "msg": "Input should be a number"}], True),
        ("Unknown tool name: 'look_up'. Available tools: 'find'", True),
        ("Ask again with the year of the order.", False),
    ],
)
def test_read_reply__a_call_of_pydantic_ai_with_invalid_arguments_is_not_made(
    content: Any, refused: bool
) -> None:
    """Attack: a call that failed validation, so that no tool ran, passes the gate for it. A text is
    what the tool itself asks for: it ran."""
    retry = {**_pydantic_return(content, "call_1"), "part_kind": "retry-prompt"}
    items = [
        _pydantic("response", _pydantic_call("seven", "call_1"), _pydantic_call("8", "call_2")),
        _pydantic("request", retry, _pydantic_return("8: shipped", "call_2")),
    ]
    calls = read(items).tool_calls or ()
    assert [(call.id, call.refused) for call in calls] == [("call_1", refused), ("call_2", False)]


def test_read_reply__broken_arguments_of_a_call_stay_a_text() -> None:
    message = _langchain_ai("", [], LANGCHAIN_USAGE)
    message["invalid_tool_calls"] = [{"name": "look_up", "args": "{order", "id": "1"}]
    assert read([message]).tool_calls == (ToolCall("look_up", "{order", id="1"),)


def test_read_reply__tools_of_the_vendor_have_their_outputs() -> None:
    blocks = (
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": "found"},
        {"type": "text", "text": "Found."},
    )
    trace = read([_anthropic_reply(*blocks)])
    assert trace.tool_calls == (ToolCall("web_search", {"query": "x"}, "found", "s1"),)


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
            "the reply is not a list of valid messages of LangChain: `tool_calls[0].name` is missing",
        ),
        (
            [{"type": "function_call", "call_id": "1", "arguments": "{}"}],
            "a function_call of the reply has no name",
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
