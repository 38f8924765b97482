"""The evaluators of a trace and of fields: what they ask, what they refuse, and that what is
unknown never passes."""

from typing import Any

import pytest

from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from tests.support import cases

UNKNOWN = Trace(())


def run(
    kind: str, fields: dict[str, Any], trace: Trace = UNKNOWN, **common: Any
) -> EvaluatorResult:
    return cases.run(kind, fields, cases.case(trace=trace), **common)


def calling(*calls: ToolCall) -> Trace:
    return Trace((), tool_calls=calls)


@pytest.mark.parametrize(
    ("kind", "fields", "miss"),
    [
        ("latency", {"threshold": 100}, "duration: unknown, the limit is 100 ms"),
        ("cost", {"budget": 0.5}, "cost: unknown, the limit is 0.5 USD"),
        ("token_usage", {"max_total": 5}, "tokens: unknown, the limit is 5"),
        ("token_usage", {"max_input": 5}, "input tokens: unknown, the limit is 5"),
        ("token_usage", {"max_output": 5}, "output tokens: unknown, the limit is 5"),
        ("execution_metrics", {"max_tool_calls": 5}, "tool calls: unknown, the limit is 5"),
        ("execution_metrics", {"max_llm_calls": 5}, "model calls: unknown, the limit is 5"),
        ("execution_metrics", {"max_tokens": 5}, "tokens: unknown, the limit is 5"),
        ("execution_metrics", {"max_input_tokens": 5}, "input tokens: unknown, the limit is 5"),
        ("execution_metrics", {"max_output_tokens": 5}, "output tokens: unknown, the limit is 5"),
        ("execution_metrics", {"max_cost_usd": 0.5}, "cost: unknown, the limit is 0.5 USD"),
        ("execution_metrics", {"max_duration_ms": 5}, "duration: unknown, the limit is 5 ms"),
        (
            "execution_metrics",
            {"target_exploration_ratio": 0.5},
            "exploration ratio: unknown, 0.5 ± 0.2 asked",
        ),
        (
            "skill_trigger",
            {"skill": "x"},
            'whether the skill "x" came first is unknown: the reply does not show all tool calls',
        ),
        (
            "skill_trigger",
            {"skill": "x", "should_trigger": False},
            'whether the skill "x" came first is unknown: the reply does not show all tool calls',
        ),
    ],
)
def test_unknown__is_a_miss_even_when_negated(kind: str, fields: dict[str, Any], miss: str) -> None:
    for negate in (False, True):
        result = run(kind, fields, negate=negate, threshold=0.5)
        assert (result.score, result.passed, result.gates_failed) == (0, False, ("e",))
        assert (result.hits, result.misses) == ((), (miss,))


@pytest.mark.parametrize("should", [True, False])
@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (
            Trace((), (ToolCall("Skill", {"skill": "x"}, refused=True),)),
            'the skill "x" came first, but the call was refused',
        ),
        (
            Trace((), (ToolCall("Bash"),), hidden_tools=("Read", "Skill")),
            'whether the skill "x" came first is unknown: the agent reads files through its shell',
        ),
    ],
)
def test_skill_trigger__refused_or_hidden_is_a_miss_either_way(
    trace: Trace, why: str, should: bool
) -> None:
    for negate in (False, True):
        fields = {"skill": "x", "should_trigger": should}
        result = run("skill_trigger", fields, trace, negate=negate)
        assert (result.score, result.misses) == (0, (why,))


def test_execution_metrics__refused_calls_were_not_made() -> None:
    calls = calling(ToolCall("Read", refused=True), ToolCall("Edit"))
    limits = {"max_tool_calls": 1, "target_exploration_ratio": 0, "exploration_tolerance": 0}
    assert run("execution_metrics", limits, calls).score == 1


@pytest.mark.parametrize(
    ("tools", "target", "score"),
    [
        ("Read grep WebSearch Edit", 0.75, 1),
        ("read_file list-files Bash", 0.6, 0),
        ("Write", 0, 1),
        # Float noise decides nothing: the distance from 0.8 is 0.2.
        ("Read Read Read Bash Read", 0.6, 1),
    ],
)
def test_execution_metrics__exploration_is_the_share_of_calls_that_look(
    tools: str, target: float, score: float
) -> None:
    tolerance = 0.2 if target == 0.6 and score else 0
    limits = {"target_exploration_ratio": target, "exploration_tolerance": tolerance}
    assert run("execution_metrics", limits, calling(*map(ToolCall, tools.split()))).score == score


@pytest.mark.parametrize(
    ("usage", "is_unknown"), [(Usage(6, None), True), (Usage(7, None), False), (Usage(6, 9), False)]
)
def test_token_usage__a_limit_that_is_exceeded_decides_whatever_is_unknown(
    usage: Usage, is_unknown: bool
) -> None:
    result = run("token_usage", {"max_input": 6, "max_output": 5}, Trace((), usage=usage))
    assert (result.score, result.is_unknown) == (0, is_unknown)


def test_execution_metrics__exploration_is_unknown_if_reads_are_hidden() -> None:
    trace = Trace((), (ToolCall("Bash"),), hidden_tools=("Read",))
    result = run("execution_metrics", {"target_exploration_ratio": 0}, trace)
    assert result.misses == ("exploration ratio: unknown, 0 ± 0.2 asked",)


def test_execution_metrics__each_limit_is_a_hit_or_a_miss() -> None:
    trace = Trace((), (ToolCall("Read"), ToolCall("Edit")), 3, Usage(900, 200, cost_usd=0.12), 1500)
    limits = {
        "max_tool_calls": 2,
        "max_llm_calls": 2,
        "max_tokens": 2000,
        "max_cost_usd": 0.1,
        "max_duration_ms": 5000,
    }
    result = run(
        "execution_metrics",
        {**limits, "target_exploration_ratio": 0.6, "exploration_tolerance": 0.1},
        trace,
    )
    assert result.score == 0
    assert result.hits == (
        "tool calls: 2 is within the limit of 2",
        "tokens: 1100 is within the limit of 2000",
        "duration: 1500 ms is within the limit of 5000 ms",
        "exploration ratio: 0.5, 0.6 ± 0.1 asked",
    )
    assert result.misses == (
        "model calls: 3 exceeds the limit of 2",
        "cost: 0.12 USD exceeds the limit of 0.1 USD",
    )


def test_cost__states_where_it_is_from_or_what_to_write() -> None:
    known = Trace((), usage=Usage(cost_usd=0.25), cost_source="price table 2026-01-02")
    assert run("cost", {"budget": 0.5}, known).hits == (
        "cost: 0.25 USD is within the limit of 0.5 USD (source: price table 2026-01-02)",
    )
    unknown = Trace((), cost_hint="write the target's `price`: the model is unknown")
    for kind, limit in (("cost", "budget"), ("execution_metrics", "max_cost_usd")):
        assert run(kind, {limit: 0.5}, unknown).misses == (
            "cost: unknown, the limit is 0.5 USD; write the target's `price`: the model is unknown",
        )


@pytest.mark.parametrize(
    ("calls", "opened"),
    [
        ((ToolCall("Skill", {"skill": "tools:commit"}), ToolCall("Bash")), True),
        ((ToolCall("Read", {"file_path": "/skills/commit/SKILL.md"}),), True),
        ((ToolCall("Bash", {}), ToolCall("Skill", {"skill": "commit"})), False),
        ((ToolCall("Skill", {"skill": "review"}),), False),
        ((ToolCall("Skill", {"name": "commit"}),), False),
        ((ToolCall("Skill", "commit"),), False),
        ((ToolCall("Read", {"file_path": 3}),), False),
        ((ToolCall("Bash", {"command": "commit"}),), False),
        ((), False),
    ],
)
def test_skill_trigger__looks_at_the_first_call_alone(
    calls: tuple[ToolCall, ...], opened: bool
) -> None:
    assert run("skill_trigger", {"skill": "commit"}, calling(*calls)).score == (1 if opened else 0)
    assert run(
        "skill_trigger", {"skill": "commit", "should_trigger": False}, calling(*calls)
    ).score == (0 if opened else 1)


def test_skill_trigger__says_what_came_first() -> None:
    assert run("skill_trigger", {"skill": "x"}, calling(ToolCall("Bash"))).misses == (
        'the skill "x" did not come first: the first tool call is "Bash"',
    )
    assert run("skill_trigger", {"skill": "x"}, calling()).misses == (
        'the skill "x" did not come first: no tool was called',
    )
    assert cases.evaluator("skill_trigger", {"skill": "x"}).label() == "x"


def test_tool_trajectory__asks_in_any_order_by_default() -> None:
    fields = {
        "expected": [{"tool": "a", "args": {"n": 1}}, {"tool": "b"}],
        "minimums": {"b": 1},
        "args_match": "exact",
    }
    result = run("tool_trajectory", fields, calling(ToolCall("b"), ToolCall("a", {"n": 1, "m": 2})))
    assert result.score == pytest.approx(2 / 3)
    assert result.hits == ('called "b"', 'called "b" once, at least 1 asked')


def test_field_accuracy__with_nothing_to_compare_with_is_an_error() -> None:
    result = cases.run(
        "field_accuracy", {"fields": [{"path": "a"}]}, cases.case('{"a": 1}', expected='{"b": 1}')
    )
    assert result.score is None
    assert result.error is not None
    assert (result.error.kind, result.passed) == ("evaluator", None)
    assert (
        result.error.message
        == "the field `a` is not in `expected_output`; write the expected value there"
    )
