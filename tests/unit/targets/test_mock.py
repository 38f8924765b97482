from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.mock import Mock
from tests.support import targets


def ask(fields: dict[str, Any], *messages: Message | str, **request: Any) -> Trace:
    return targets.ask({"provider": "mock", **fields}, Path("/"), *messages, **request)


def answer(response: Any, **request: Any) -> Trace:
    return ask({"responses": [{"pattern": "", "response": response}]}, "x", **request)


def test_complete__the_first_pattern_found_in_the_last_user_message() -> None:
    patterns = {"refund": "no", "(?i)hello|first": "hi", '"k": 1': "json", "": "any"}
    fields = {"responses": [{"pattern": key, "response": text} for key, text in patterns.items()]}
    conversation = [
        Message("user", "refund"),
        Message("assistant", "refund"),
        Message("user", "HELLO, refund later"),
        Message("tool", "x"),
    ]
    assert ask(fields, *conversation).output == "no"
    assert ask(fields, "say HELLO").output == "hi"
    assert ask(fields, Message("user", (Block("json", {"k": 1}),))).output == "json"
    assert ask(fields, Message("system", "refund")).output == "any"


def test_complete__messages_are_a_whole_trace_and_a_text_shows_that_no_tool_was_called() -> None:
    call = {"tool": "search", "input": {"q": "x"}}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "found"},
        {"role": "assistant", "content": "done"},
    ]
    trace = answer(messages)
    assert (trace.output, trace.llm_call_count) == ("done", 2)
    assert trace.tool_calls == (ToolCall("search", {"q": "x"}),)
    assert (trace.usage.input_tokens, trace.usage.cost_usd) == (None, None)
    assert answer("x").tool_calls == ()


def test_complete__a_list_is_used_in_turn_by_sample() -> None:
    answers = ["a", [{"role": "assistant", "content": "b"}], {"role": "assistant", "content": "c"}]
    found = [answer(answers, attempt=attempt).output for attempt in range(4)]
    assert found == ["a", "b", "c", "a"]


def test_complete__nothing_matching_is_an_error() -> None:
    fields = {"responses": [{"pattern": "never", "response": "y"}]}
    with pytest.raises(AttemptError, match=r'none of the 1 mock responses matches "x+…"') as caught:
        ask(fields, "x" * 500)
    assert caught.value.kind == "target"


def test_complete__a_delay_beyond_the_limit_is_a_time_out() -> None:
    with pytest.raises(AttemptError) as caught:
        ask({"response": "x", "delay_ms": 60_000}, "x", timeout=0.01)
    assert caught.value.kind == "timeout"


@pytest.mark.slow
def test_complete__a_pattern_that_runs_away_is_an_error() -> None:
    with pytest.raises(AttemptError, match=r"ran for over 2 s"):
        ask({"responses": [{"pattern": r"(x+x+)+y", "response": "z"}]}, "x" * 5000)


def test_complete__one_answer_to_every_question_or_the_question_itself() -> None:
    assert ask({"response": "always"}, "the question").output == "always"
    assert ask({}, "the question").output == "the question"
    ((_, problem, _),) = targets.read(Mock, {}).warnings()
    assert problem.endswith("has no `responses`, and answers with the question itself")
    assert targets.read(Mock, {"response": "always"}).warnings() == ()
