import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.targets.formats.envelope import read_object, read_reply

CALL = {"tool": "search", "input": {"q": "x"}, "duration_ms": 5}


def reply(**fields: Any) -> Trace:
    return read_reply(json.dumps(fields))


def test_read_reply__plain_text_tells_nothing_but_the_answer() -> None:
    assert read_reply("  hello\nthere\n\n") == Trace(
        messages=(Message("assistant", "  hello\nthere"),)
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "x"}',
        '{"cost_usd": 1}',
        '["x"]',
        '"x"',
        "{not json}",
        '{"output": "x"} and more',
        '{"output": "x", "cost_usd": NaN}',
        "{" * 100_000,
        '{"text":' + "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_read_reply__anything_else_is_the_answers_text(text: str) -> None:
    assert read_reply(text).messages == (Message("assistant", text),)
    assert read_reply(text).tool_calls is None


def test_read_reply__figures_are_read_and_a_text_proves_no_calls() -> None:
    trace = reply(
        text="done",
        token_usage={"input": 900, "output": 200, "cached": 10},
        cost_usd=0.12,
        duration_ms=1500,
        llm_call_count=4,
    )
    assert trace == Trace(
        (Message("assistant", "done"),), None, 4, Usage(900, 200, 10, cost_usd=0.12), 1500
    )


@pytest.mark.parametrize("calls", [[], [CALL]])
def test_read_reply__the_tool_calls_of_an_envelope(calls: list[dict[str, Any]]) -> None:
    trace = reply(text="done", tool_calls=calls)
    wanted = tuple(ToolCall("search", {"q": "x"}, duration_ms=5) for _ in calls)
    assert (trace.output, trace.tool_calls) == ("done", wanted)
    assert trace.messages[-1].tool_calls == wanted


def test_read_reply__other_tool_calls_than_those_of_the_messages_are_an_error() -> None:
    messages = [{"role": "assistant", "content": "done", "tool_calls": [CALL]}]
    assert len(reply(messages=messages, tool_calls=[CALL]).tool_calls or ()) == 1
    with pytest.raises(ValueError, match="two different lists of tool calls"):
        reply(messages=messages, tool_calls=[])
    with pytest.raises(ValueError, match=r"`tool_calls\[0\]` is not valid"):
        reply(text="done", tool_calls=[{"name": "x"}])


QUESTION = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({"output": "done", "token_usage": {"input": 1}}, False),
        ({"output": "done", "messages": []}, False),
        ({"output": "done", "messages": [QUESTION]}, False),
        ({"output": "done", "messages": [QUESTION, {"role": "assistant", "content": "b"}]}, True),
        ({"output": "done", "messages": [], "tool_calls": []}, True),
    ],
)
def test_read_reply__only_messages_of_the_agent_or_a_list_prove_its_calls(
    fields: dict[str, Any], known: bool
) -> None:
    assert (reply(**fields).tool_calls is not None) is known


@pytest.mark.parametrize(
    ("tokens", "usage"),
    [
        ({"input_tokens": 9, "output_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, Usage(9, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4}, Usage(13, 2, 4)),
        ({"inputTokens": 9, "outputTokens": 2}, Usage(9, 2)),
        ({"input": 9, "output_tokens": 2}, Usage(9, 2)),
        ({"total": 11}, Usage()),
    ],
)
def test_read_reply__token_usage_may_be_that_of_a_vendor(
    tokens: dict[str, int], usage: Usage
) -> None:
    assert reply(text="done", token_usage=tokens).usage == usage


def test_read_reply__what_is_not_reported_is_unknown() -> None:
    trace = reply(output="done", token_usage={"input": 3}, cost_usd=None)
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cost_usd,
        trace.duration_ms,
        trace.llm_call_count,
    ) == (3, None, None, None, None)


@pytest.mark.parametrize("field", ["output", "messages"])
def test_read_reply__messages_with_tool_calls(field: str) -> None:
    openai_call = {
        "id": "1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a"}'},
    }
    trace = reply(
        **{
            field: [
                {"role": "assistant", "content": "", "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "1", "content": "found"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "value": "the"},
                        {"type": "text", "text": "answer"},
                    ],
                    "tool_calls": [openai_call],
                },
            ]
        }
    )
    assert trace.tool_calls == (
        ToolCall("search", {"q": "x"}, duration_ms=5),
        ToolCall("read", {"path": "a"}, id="1"),
    )
    assert (trace.output, trace.llm_call_count) == ("the\nanswer", 2)


def test_read_reply__an_answer_beside_the_messages_comes_last() -> None:
    trace = reply(
        output="final",
        messages=[{"role": "assistant", "content": "thinking", "tool_calls": [CALL]}],
    )
    assert (trace.output, trace.llm_call_count, len(trace.messages)) == ("final", 1, 2)
    assert len(trace.tool_calls or ()) == 1
    assert (
        len(reply(output="same", messages=[{"role": "assistant", "content": "same"}]).messages) == 1
    )


def test_read_reply__text_stands_in_where_the_messages_have_none() -> None:
    assert (
        reply(
            text="final", output=[{"role": "assistant", "content": "", "tool_calls": [CALL]}]
        ).output
        == "final"
    )
    assert (
        reply(text="ignored", output=[{"role": "assistant", "content": "messages"}]).output
        == "messages"
    )


def test_read_reply__an_envelope_with_unknown_fields_has_a_warning() -> None:
    trace = reply(output="done", cost_usd=0.5, **{f"field{number}": 1 for number in range(9)})
    assert (trace.output, trace.usage.cost_usd) == ("done", 0.5)
    (warning,) = trace.warnings
    assert warning.startswith("its reply is read as an envelope with the answer in `output`; ")
    assert '"field4" and 4 more are not read' in warning


MESSAGE = {"role": "assistant", "content": "shipped"}
#: Objects of SDKs and frameworks as JSON: the last reply of a model, from which nothing follows for
#: the calls before it.
LAST_REPLIES: dict[str, dict[str, Any]] = {
    "openai.types.chat.ChatCompletion": {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    },
    "openai.types.chat.ChatCompletionMessage": {**MESSAGE, "tool_calls": None},
    "openai.types.responses.Response": {
        "object": "response",
        "output": [{"type": "message", **MESSAGE, "id": "m"}],
        "text": {"format": {"type": "text"}},
    },
    "anthropic.types.Message": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "shipped", "citations": None}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
    "langchain_core.messages.AIMessage": {"type": "ai", "content": "shipped", "tool_calls": []},
    "strands.agent.agent_result.AgentResult": {
        "stop_reason": "end_turn",
        "message": {"role": "assistant", "content": [{"text": "shipped"}]},
        "metrics": {"accumulated_usage": {"inputTokens": 3}},
    },
    "google.genai.types.GenerateContentResponse": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "shipped"}]}}],
        "usageMetadata": {"promptTokenCount": 3},
    },
    "google.genai.types.Contents": {
        "contents": [
            {"role": "user", "parts": [{"text": "where?"}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "shipped"}]},
        ]
    },
}


@pytest.mark.parametrize("name", LAST_REPLIES)
def test_read_object__the_last_reply_of_a_model_is_the_answer(name: str) -> None:
    data = LAST_REPLIES[name]
    for trace in (read_object(data, name, ()), read_object(data, "", ()), reply(**data)):
        assert (trace.output, trace.tool_calls, trace.usage) == ("shipped", None, Usage())
        assert trace.llm_call_count is None
        (warning,) = trace.warnings
        assert "return the list of all messages" in warning


def test_read_object__a_call_in_the_last_reply_is_an_answer_without_a_text() -> None:
    data = {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {}, "id": "1"}]}
    trace = read_object(data, "AIMessage", ())
    assert trace.has_answer
    assert [call.name for call in trace.messages[-1].tool_calls] == ["look"]


def test_read_object__an_envelope_or_a_list_of_messages() -> None:
    assert read_object({"output": "done", "cost_usd": 0.5}, "Reply", ()).usage.cost_usd == 0.5
    assert read_object([MESSAGE], "list of Message", ()).tool_calls == ()


#: Objects without a known message: AutoGen's, LlamaIndex's, Haystack's, ADK's, and data.
OTHERS: dict[str, Any] = {
    "autogen_agentchat.base.TaskResult": {
        "messages": [{"source": "agent", "content": "shipped", "type": "TextMessage"}],
        "stop_reason": None,
    },
    "llama_index.core.agent.AgentOutput": {
        "response": {"role": "assistant", "blocks": [{"block_type": "text", "text": "shipped"}]},
        "tool_calls": [],
    },
    "haystack.dataclasses.ChatMessage": {"_role": "assistant", "_content": [{"text": "shipped"}]},
    "google.adk.events.Event": {"content": {"parts": [{"text": "shipped"}], "role": "model"}},
    "list of google.adk.events.Event": [{"content": {"parts": []}, "author": "agent"}],
    "shop.Order": {"id": 3},
    "shop.Names": "a",
}


@pytest.mark.parametrize("name", OTHERS)
def test_read_object__any_other_object_is_an_error_that_says_what_to_return(name: str) -> None:
    with pytest.raises(ValueError, match=r"^the reply is an object of ") as caught:
        read_object(OTHERS[name], name, ())
    assert f"an object of {name}, which cannot be read" in str(caught.value)
    assert 'return its text, an envelope as {"output": …, "messages": …}' in str(caught.value)


@pytest.mark.parametrize("data", [{}, {"answer": "shipped"}, {"choices": ["a"], "contents": [3]}])
def test_read_object__a_dict_without_an_answer_is_an_error(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^the reply is an object without `output`, which cannot"):
        read_object(data, "", ())
    assert reply(**data).output == json.dumps(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"error": "rate limit"}, 'the reply is an error: "rate limit"'),
        ({"error": {"message": "no", "code": 3}}, 'is an error: {"message": "no", "code": 3}'),
        ({"type": "error", "error": {"type": "overloaded"}, "id": None}, "the reply is an error"),
        ({"error": "no", "output": None}, "the reply is an error"),
    ],
)
def test_reply__that_is_nothing_but_an_error(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        reply(**data)
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_object(data, "", ())


@pytest.mark.parametrize("data", [{"error": None}, {"error": "none found", "orders": []}])
def test_reply__that_has_an_error_among_other_data_is_a_text(data: dict[str, Any]) -> None:
    assert reply(**data).output == json.dumps(data)


EMPTY: list[dict[str, Any]] = [
    {"output": ""},
    {"output": " \n"},
    {"text": ""},
    {"messages": []},
    {"output": [], "text": ""},
    {"messages": [{"role": "user", "content": "only a question"}]},
    {"messages": [{"role": "assistant", "content": "early"}, {"role": "assistant", "content": ""}]},
]


@pytest.mark.parametrize("fields", EMPTY, ids=json.dumps)
def test_read_reply__an_empty_reply_is_no_answer_and_keeps_its_cost(fields: dict[str, Any]) -> None:
    trace = reply(**fields, cost_usd=0.5)
    assert (trace.has_answer, trace.output.strip(), trace.usage.cost_usd) == (False, "", 0.5)


def test_read_reply__a_tool_call_or_a_picture_without_text_is_an_answer() -> None:
    picture = [{"type": "image", "value": "data:image/png;base64,iVBORw0KGgo="}]
    assert reply(messages=[{"role": "assistant", "content": "", "tool_calls": [CALL]}]).has_answer
    assert reply(messages=[{"role": "assistant", "content": picture}]).has_answer


def test_read_reply__an_empty_text_does_not_hide_what_the_messages_say() -> None:
    """With the tool call it would be an answer, and its empty text would pass a negated gate."""
    messages = [{"role": "assistant", "content": "the secret", "tool_calls": [CALL]}]
    assert reply(output="", messages=messages).output == "the secret"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"output": 5}, "`output` is not a text or a list"),
    ({"output": {"a": 1}}, "`output` is not a text or a list"),
    ({"text": ["a"]}, "`text` is not a text"),
    ({"messages": "a"}, "`messages` is not a list"),
    ({"output": ["a"]}, r"`output\[0\]` is not valid: write a message"),
    (
        {"output": [{"role": "robot", "content": "a"}]},
        r"`role`: write `system`, `user`, `assistant` or `tool`",
    ),
    (
        {"output": [{"role": "assistant", "content": 5}]},
        "a content is not a text or a list of parts",
    ),
    (
        {"output": [{"role": "assistant", "content": "a", "tool_calls": {"a": 1}}]},
        "`tool_calls` is not a list",
    ),
    (
        {"output": [{"role": "assistant", "content": "a", "tool_calls": ""}]},
        "`tool_calls` is not a list",
    ),
    (
        {"output": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "x"}]}]},
        "a tool call of the reply has no name",
    ),
    (
        {
            "output": [
                {
                    "role": "assistant",
                    "content": "a",
                    "tool_calls": [{"tool": "x", "duration_ms": "5"}],
                }
            ]
        },
        "`duration_ms`: write a number",
    ),
    ({"output": [], "messages": [{"role": "user", "content": "a"}]}, "two different lists"),
    ({"output": None, "text": None}, "has no answer"),
    ({"text": "a", "token_usage": 5}, "`token_usage` is not an object"),
    ({"text": "a", "token_usage": {"input": "5"}}, r"`token_usage\.input` is not a whole number"),
    (
        {"text": "a", "token_usage": {"input": 10**400}},
        r"`token_usage\.input` is not a number less than",
    ),
    ({"text": "a", "token_usage": {"output": 1.5}}, r"`token_usage\.output` is not a whole number"),
    (
        {"text": "a", "token_usage": {"cached": -1}},
        r"`token_usage\.cached` is not a number that is 0",
    ),
    ({"text": "a", "cost_usd": "0.1"}, "`cost_usd` is not a number"),
    ({"text": "a", "cost_usd": True}, "`cost_usd` is not a number"),
    ({"text": "a", "cost_usd": 1e308}, "`cost_usd` is not a number less than"),
    ({"text": "a", "duration_ms": -5}, "`duration_ms` is not a number that is 0"),
    ({"text": "a", "llm_call_count": 1.5}, "`llm_call_count` is not a whole number"),
]


@pytest.mark.parametrize(("data", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_read_reply__a_wrong_type_in_an_envelope_is_an_error(
    data: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        read_reply(json.dumps(data))


def test_read_reply__an_endless_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="`cost_usd` is not a finite number"):
        read_reply('{"text": "a", "cost_usd": 1e999}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
)


@given(
    st.text()
    | st.dictionaries(
        st.sampled_from(["output", "text", "messages", "token_usage", "cost_usd", "x"]), JSON
    ).map(json.dumps)
)
def test_read_reply__any_reply_is_a_trace_or_a_value_error(text: str) -> None:
    problem = ""
    try:
        assert isinstance(read_reply(text).output, str)
    except ValueError as error:
        problem = str(error)
    assert problem == "" or problem.startswith("the reply")
