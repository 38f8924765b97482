"""What is read from the replies of agents: a table of replies with their traces, and the
conversations as the real libraries write them (openai-agents 0.24, langchain-core 1.7, pydantic-ai
2.68, anthropic 2.12, `ai` of npm 6.0)."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.trace import Trace, Usage, list_calls
from agentevals_action.targets.dialects.envelope import read_object, read_reply
from tests.support import data

REPLIES = data.read("formats/agent_replies.yaml")
#: What each framework's agent returns: the whole conversation, with a call and an answer of its own.
CONVERSATIONS: dict[str, list[dict[str, Any]]] = data.read("formats/histories.json")
QUESTION = (
    Message("user", "Hi"),
    Message("assistant", "", tool_calls=(ToolCall("look_up", {"order": "6"}, id="call_0"),)),
    Message("tool", "6: lost", tool_call_id="call_0"),
    Message("assistant", "Order 6 is lost."),
    Message("user", "And order 7?"),
)
#: The input, output and cached tokens of both calls, and the model, where they contain them.
FIGURES = {
    "anthropic": (Usage(22, 14, 6), "claude-sonnet-5"),
    "langchain": (Usage(22, 14, 6), "gpt-5-mini"),
    "pydantic_ai": (Usage(22, 14, 6), "gpt-5-mini"),
}


def read(data: Any, question: Sequence[Message] = QUESTION) -> Trace:
    return read_reply(json.dumps(data), question)


def make_calls(calls: Sequence[dict[str, Any]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(**call) for call in calls)


def unread_warning(name: str) -> str:
    return f'parts of an unknown kind ("{name}"), which may be tool calls'


#: What a row names, and its value in a trace.
FIELDS: dict[str, Callable[[Trace], Any]] = {
    "output": lambda trace: trace.output,
    "llm_calls": lambda trace: trace.llm_call_count,
    "cost": lambda trace: trace.usage.cost_usd,
    "duration_ms": lambda trace: trace.duration_ms,
    "model": lambda trace: trace.model,
    "has_answer": lambda trace: trace.has_answer,
    "roles": lambda trace: [message.role for message in trace.messages],
}


@pytest.mark.parametrize("row", REPLIES, ids=[row["case"] for row in REPLIES])
def test_read_reply__the_trace_of_a_reply(row: dict[str, Any]) -> None:
    reply, question = row["reply"], [Message("user", text) for text in row.get("question", ())]
    text = reply if isinstance(reply, str) else json.dumps(reply)
    reads: list[Callable[[], Trace]] = [lambda: read_reply(text, question)]
    if not isinstance(reply, str):
        reads.append(lambda: read_object(reply, row.get("class", ""), question))
    if problem := row.get("function_error"):
        with pytest.raises(ValueError, match=r"^the reply is an object ") as caught:
            read_object(reply, row.get("class", ""), question)
        assert problem in str(caught.value)
        reads = reads[:1] if "output" in row else []
    for find_trace in reads:
        if problem := row.get("error"):
            with pytest.raises(ValueError, match=r"^(the reply|a tool call)") as caught:
                find_trace()
            assert problem in str(caught.value)
        else:
            check(find_trace(), row)


def check(trace: Trace, row: dict[str, Any]) -> None:
    """The trace has what the row names, and no other warning."""
    for name in FIELDS.keys() & row.keys():
        assert (name, FIELDS[name](trace)) == (name, row[name])
    if "calls" in row or "unread" in row:
        calls = row.get("calls")
        assert trace.tool_calls == (None if calls is None else make_calls(calls))
    if "shown" in row:
        assert list_calls(trace.messages) == make_calls(row["shown"])
    if "usage" in row:
        usage = trace.usage
        counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens]
        assert counts == [*row["usage"], *[None] * (3 - len(row["usage"]))]
    expected = unread_warning(row["unread"]) if "unread" in row else row.get("warning")
    assert len(trace.warnings) == (expected is not None)
    assert (expected or "") in "".join(trace.warnings)


@pytest.mark.parametrize("text", ["{" * 100_000, '{"text":' + "[" * 100_000], ids=["{", "["])
def test_read_reply__what_is_nested_too_deep_is_a_text(text: str) -> None:
    assert read_reply(text) == Trace((Message("assistant", text),))


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


# Whole conversations


@pytest.mark.parametrize("form", ["list", "envelope", "output"])
@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__the_agent_s_own_part_of_a_conversation(name: str, form: str) -> None:
    """Attack: the call in the question would pass a test that expects it of the agent."""
    items: Any = CONVERSATIONS[name]
    trace = read(
        {"list": items, "envelope": {"messages": items}, "output": {"output": items}}[form]
    )
    call = ToolCall("look_up", {"order": "7"}, output="7: shipped", id="call_1")
    assert (trace.output, trace.tool_calls) == ("It was shipped.", (call,))
    assert [message.role for message in trace.messages] == ["assistant", "tool", "assistant"]
    assert trace.llm_call_count == 2
    assert (trace.usage, trace.model) == FIGURES.get(name, (Usage(), None))


@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_read_reply__an_agent_may_return_its_own_part_alone(name: str) -> None:
    items = CONVERSATIONS[name]
    start = next(index for index, item in enumerate(items) if "call_1" in json.dumps(item))
    assert read(items[start:]) == read(items)


@pytest.mark.parametrize("name", ["openai_chat", "vercel"])
def test_read_reply__the_question_alone_does_not_prove_that_the_agent_made_no_call(
    name: str,
) -> None:
    trace = read({"output": "done", "messages": CONVERSATIONS[name][:6]})
    assert (trace.output, trace.tool_calls) == ("done", None)


def test_read_reply__messages_to_dict_of_langchain() -> None:
    items = CONVERSATIONS["langchain"]
    assert read([{"type": item["type"], "data": item} for item in items]) == read(items)


def test_read_reply__a_question_with_a_file_is_recognized_by_its_text() -> None:
    question = Message("user", (Block("text", "Summarize."), Block("file", "notes.txt")))
    items = [
        {"role": "user", "content": "Summarize.\n<file>…</file>"},
        {"role": "assistant", "content": "Notes."},
    ]
    assert read(items, [question]).messages == (Message("assistant", "Notes."),)


def test_read_reply__a_question_may_end_with_the_agent_s_own_messages() -> None:
    """A test that continues after a call."""
    trace = read(CONVERSATIONS["openai_responses"][:4], QUESTION[:3])
    assert trace.messages == (Message("assistant", "Order 6 is lost."),)
    assert trace.tool_calls == ()
