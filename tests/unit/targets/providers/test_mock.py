import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.targets.providers.mock import Mock
from tests.support import targets


def answer(responses: list[dict[str, Any]], *messages: Message | str, **fields: Any) -> Trace:
    provider = targets.options({"provider": "mock", "responses": responses}).connect(
        targets.context({})
    )
    return asyncio.run(provider.complete(targets.request(Path("/"), *messages, **fields)))


def test_complete__the_first_pattern_found_in_the_last_user_message() -> None:
    responses = [
        {"pattern": "refund", "response": "no"},
        {"pattern": "(?i)hello|first", "response": "hi"},
        {"pattern": "", "response": "any"},
    ]
    said = [
        Message("user", "refund"),
        Message("assistant", "refund"),
        Message("user", "HELLO, refund later"),
        Message("tool", "x"),
    ]
    assert answer(responses, *said).output == "no"
    assert answer(responses, "say HELLO").output == "hi"
    assert answer(responses, "else").output == "any"
    assert answer(responses, Message("system", "refund")).output == "any"


def test_complete__a_block_is_searched_as_text() -> None:
    assert (
        answer(
            [{"pattern": '"k": 1', "response": "found"}],
            Message("user", (Block("json", {"k": 1}),)),
        ).output
        == "found"
    )


def test_complete__messages_are_a_whole_trace() -> None:
    messages = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"tool": "search", "input": {"q": "x"}}],
        },
        {"role": "tool", "content": "found"},
        {"role": "assistant", "content": "done"},
    ]
    trace = answer([{"pattern": "", "response": messages}], "x")
    assert (trace.output, trace.llm_call_count, trace.tool_calls) == (
        "done",
        2,
        (ToolCall("search", {"q": "x"}),),
    )
    assert (trace.usage.input_tokens, trace.usage.cost_usd) == (None, None)


def test_complete__a_string_shows_that_no_tool_was_called() -> None:
    assert answer([{"pattern": "", "response": "x"}], "x").tool_calls == ()


@pytest.mark.parametrize(("attempt", "said"), [(0, "a"), (1, "b"), (2, "c"), (3, "a")])
def test_complete__a_list_is_used_in_turn_by_sample(attempt: int, said: str) -> None:
    turns = ["a", [{"role": "assistant", "content": "b"}], {"role": "assistant", "content": "c"}]
    assert answer([{"pattern": "", "response": turns}], "x", attempt=attempt).output == said


def test_complete__nothing_matching_is_an_error() -> None:
    with pytest.raises(AttemptError, match=r'none of the 1 mock responses matches "x+…"') as caught:
        answer([{"pattern": "never", "response": "y"}], "x" * 500)
    assert caught.value.kind == "target"


def test_complete__a_delay_beyond_the_limit_is_a_time_out() -> None:
    provider = targets.options(
        {"provider": "mock", "responses": [{"pattern": "", "response": "x"}], "delay_ms": 60_000}
    )
    with pytest.raises(AttemptError) as caught:
        asyncio.run(
            provider.connect(targets.context({})).complete(
                targets.request(Path("/"), "x", timeout=0.01)
            )
        )
    assert caught.value.kind == "timeout"


@pytest.mark.slow
def test_complete__a_pattern_that_runs_away_is_an_error() -> None:
    with pytest.raises(AttemptError, match=r"ran for over 2 s"):
        answer([{"pattern": r"(x+x+)+y", "response": "z"}], "x" * 5000)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ({"pattern": "(", "response": "x"}, "not a valid regular expression"),
        ({"response": "x"}, "it is missing"),
        ({"pattern": ""}, "it is missing"),
        ({"pattern": "", "response": 5}, "a response is a string"),
        ({"pattern": "", "response": None}, "a response is a string"),
        ({"pattern": "", "response": []}, "a response is a string"),
        ({"pattern": "", "response": ["a", 5]}, "a response is a string"),
        ({"pattern": "", "response": [{"role": "robot"}]}, "`role`: write `system`"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(
    response: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(Mock, {"responses": [response]})


def test_options__no_responses_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one item"):
        targets.read_options(Mock, {"responses": []})


def test_options__a_fixed_response_and_responses_are_refused() -> None:
    with pytest.raises(ValueError, match="`responses` answers already"):
        targets.read_options(
            Mock, {"response": "a", "responses": [{"pattern": "", "response": "b"}]}
        )


def test_complete__without_responses_answers_with_the_question() -> None:
    options = targets.read_options(Mock, {})
    trace = asyncio.run(
        options.connect(targets.context({})).complete(targets.request(Path("/"), "the question"))
    )

    assert trace.output == "the question"
    assert [problem for _, problem, _ in options.warnings()] == [
        "this `mock` target has no `responses`, and answers with the question itself"
    ]


def test_complete__one_fixed_response() -> None:
    options = targets.read_options(Mock, {"response": "always"})
    trace = asyncio.run(
        options.connect(targets.context({})).complete(targets.request(Path("/"), "the question"))
    )

    assert (trace.output, options.warnings()) == ("always", ())
