from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.suite import Message, ToolCall
from tests.support.agent_programs import claude_refused, claude_said, lines
from tests.support.agent_runs import AgentRun

Event = dict[str, Any]

USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 4000,
    "output_tokens": 250,
}


def said(own_id: str, *content: Event, at: str | None = None, parent: str | None = None) -> Event:
    message = {
        "id": own_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(content),
        "usage": {},
    }
    return {
        "type": "assistant",
        "message": message,
        "parent_tool_use_id": parent,
        "session_id": "s",
    } | ({"timestamp": at} if at else {})


def text(words: str) -> Event:
    return {"type": "text", "text": words}


def use(own_id: str, name: str, **given: Any) -> Event:
    return {"type": "tool_use", "id": own_id, "name": name, "input": given}


def result_of(own_id: str, content: Any, at: str | None = None, **beside: Any) -> Event:
    block = {"type": "tool_result", "tool_use_id": own_id, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}, **beside} | (
        {"timestamp": at} if at else {}
    )


def ended(answer: str | None = "done", **fields: Any) -> Event:
    whole = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 5400,
        "duration_api_ms": 5000,
        "num_turns": 3,
    }
    return {**whole, "result": answer, "total_cost_usd": 0.25, "usage": USAGE, **fields}


def claude(tmp_path: Path, *events: Event, code: int = 0) -> AgentRun:
    return AgentRun("claude", tmp_path).printing(lines(*events), code)


def test_command__claudes_own_words(tmp_path: Path) -> None:
    plain = AgentRun("claude", tmp_path).seen()["words"]
    assert plain == ["-p", "--output-format", "stream-json", "--verbose"]
    more = AgentRun("claude", tmp_path).seen(
        system_prompt="be brief", append_system_prompt="and kind", max_turns=3
    )["words"]
    assert more[4:] == [
        "--max-turns",
        "3",
        "--system-prompt",
        "be brief",
        "--append-system-prompt",
        "and kind",
    ]


def test_stream__tool_calls_with_arguments_results_and_durations(tmp_path: Path) -> None:
    trace = claude(
        tmp_path,
        {"type": "system", "subtype": "init", "tools": ["Bash"]},
        said("m1", {"type": "thinking", "thinking": "hm", "signature": "x"}),
        said("m1", text("I look."), at="2026-07-28T16:53:50.000Z"),
        said("m1", use("t1", "Bash", command="ls"), at="2026-07-28T16:53:51.000Z"),
        said("m1", use("t2", "Read", file_path="/a"), at="2026-07-28T16:53:51.000Z"),
        result_of("t1", "a\nb", at="2026-07-28T16:53:51.250Z"),
        result_of(
            "t2",
            [text("one"), text("two")],
            at="2026-07-28T16:53:59.000Z",
            tool_use_result={"durationMs": 40},
        ),
        said("m2", use("t3", "mcp__files__find", q="*")),
        result_of("t3", [{"type": "image", "source": {}}]),
        said("m3", text("done")),
        ended(),
    ).answer()
    calls = (
        ToolCall("Bash", {"command": "ls"}, "a\nb", "t1", 250),
        ToolCall("Read", {"file_path": "/a"}, "one\ntwo", "t2", 40),
        ToolCall("mcp__files__find", {"q": "*"}, [{"type": "image", "source": {}}], "t3", None),
    )
    *others, last = trace.tool_calls or ()
    assert last.duration_ms is not None  # by arrival: the stream has none
    calls = (*calls[:2], replace(calls[2], duration_ms=last.duration_ms))
    assert (*others, last) == calls
    assert trace.messages == (
        Message("assistant", "I look.", tool_calls=calls[:2]),
        Message("assistant", "", tool_calls=calls[2:]),
        Message("assistant", "done"),
    )
    assert (
        trace.llm_call_count,
        trace.usage.input_tokens,
        trace.usage.cached_tokens,
        trace.usage.output_tokens,
    ) == (
        None,
        4312,
        4000,
        250,
    )


def test_stream__the_reported_answer_counts(tmp_path: Path) -> None:
    reported = claude(tmp_path, said("m1", text("first"), text("done")), ended("done")).answer()
    assert [message.content for message in reported.messages] == ["first\ndone"]
    other = claude(tmp_path, said("m1", text("working")), ended("the answer")).answer()
    assert (other.output, other.llm_call_count) == ("the answer", None)


def test_stream__what_is_not_told_is_unknown(tmp_path: Path) -> None:
    trace = claude(
        tmp_path,
        said("", text("done")),
        {"type": "result", "subtype": "success", "is_error": False},
    ).answer()
    assert (trace.usage.input_tokens, trace.usage.output_tokens, trace.usage.cached_tokens) == (
        None,
        None,
        None,
    )
    assert (trace.usage.cost_usd, trace.duration_ms, trace.llm_call_count) == (None, None, None)


def test_stream__figures_of_the_wrong_type_are_unknown(tmp_path: Path) -> None:
    usage = {"input_tokens": "12", "output_tokens": -1, "cache_read_input_tokens": True}
    trace = claude(
        tmp_path, said("m", text("done")), ended(usage=usage, total_cost_usd="free", duration_ms=-3)
    ).answer()
    assert (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
        trace.usage.cached_tokens,
        trace.usage.cost_usd,
        trace.duration_ms,
    ) == (None,) * 5


def test_stream__odd_shapes_are_passed_over(tmp_path: Path) -> None:
    odd: list[Event] = [
        {"type": "assistant", "message": "text"},
        {
            "type": "assistant",
            "message": {
                "content": [5, {"type": "tool_use"}, {"type": "tool_use", "name": 5}, {"type": 5}]
            },
        },
        {"type": "user", "message": {"content": [{"type": "tool_result"}]}, "timestamp": 5},
        {"type": "result", "usage": [], "errors": "x"},
    ]
    assert claude(tmp_path, *odd, said("m", text("done")), ended()).answer().output == "done"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"result": "API Error: 401 Invalid authentication credentials"}, TargetDead),
        ({"result": "Invalid API key · Please run /login"}, TargetDead),
        ({"result": "it broke", "api_error_status": 503}, TransientError),
        ({"result": "API Error: 529 Overloaded"}, TransientError),
        ({"result": "it broke"}, AttemptError),
    ],
    ids=str,
)
def test_refusal__without_a_message_of_its_own(
    tmp_path: Path, fields: dict[str, Any], kind: type[AttemptError]
) -> None:
    assert type(claude(tmp_path, ended(is_error=True, **fields), code=1).refused()) is kind


def test_refusal__before_there_is_a_result(tmp_path: Path) -> None:
    first_two = "".join(
        claude_refused("Not logged in", "authentication_failed", None).splitlines(keepends=True)[:2]
    )
    assert isinstance(
        AgentRun("claude", tmp_path).printing(first_two, code=1).refused(), TargetDead
    )


def test_end__too_many_turns_is_an_error_of_the_test(tmp_path: Path) -> None:
    stopped = ended(None, subtype="error_max_turns", is_error=False)
    assert (
        str(claude(tmp_path, said("m", text("still at it")), stopped).refused())
        == "Claude Code: it stopped with `error_max_turns`"
    )
    told = ended(None, subtype="error_during_execution", is_error=True, errors=["boom", 5])
    assert str(claude(tmp_path, told, code=1).refused()) == "Claude Code: boom"


def test_end__the_last_result_counts(tmp_path: Path) -> None:
    trace = claude(
        tmp_path,
        said("m1", text("one")),
        ended("one"),
        said("m2", text("two")),
        ended("two", total_cost_usd=0.5),
    ).answer()
    assert (trace.output, trace.usage.cost_usd) == ("two", 0.5)


def test_end__an_answer_that_speaks_of_errors_is_an_answer(tmp_path: Path) -> None:
    words = "API Error: 401 means: please run /login"
    assert AgentRun("claude", tmp_path).printing(claude_said(words)).answer().output == words


def test_stream__a_tool_that_the_agent_does_not_have_is_refused(tmp_path: Path) -> None:
    unknown = "<tool_use_error>Error: No such tool available: Write</tool_use_error>"
    trace = claude(
        tmp_path,
        said("m1", use("t1", "Write", file_path="/a")),
        result_of("t1", unknown),
        said("m2", text("done")),
        ended(),
    ).answer()
    (call,) = trace.tool_calls or ()
    assert call.refused
