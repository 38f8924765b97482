"""Trajectories: many calls, and the best way to give calls to what is expected. The score and the
words of each mode are in `data/evaluator_scores.yaml`."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.tool_trajectory import expectations, matching
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score

MODES = ("any_order", "in_order", "exact", "superset", "subset")
every_mode = pytest.mark.parametrize("mode", MODES)


def item(tool: str, **fields: Any) -> expectations.Expectation:
    return expectations.Expectation(tool=tool, **fields)


def call(tool: str, duration: float | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments, duration_ms=duration)


def named(tools: str) -> tuple[ToolCall, ...]:
    return tuple(call(tool) for tool in tools)


def score(
    mode: Any,
    expected: str | Sequence[expectations.Expectation],
    calls: str | Sequence[ToolCall],
    **more: Any,
) -> Score:
    items = tuple(item(tool) for tool in expected) if isinstance(expected, str) else tuple(expected)
    plan = expectations.ExpectedCalls(mode, items, **more)
    return matching.score_calls(plan, named(calls) if isinstance(calls, str) else calls)


@every_mode
def test_mode__of_too_many_calls_is_an_error(mode: str) -> None:
    with pytest.raises(AttemptError, match="20,001 tool calls cannot be compared with 50 that"):
        score(mode, "a" * 50, "a" * 20_001)


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "value"),
    [
        ("any_order", 951, 949, 949 / 951),
        ("in_order", 202, 200, 200 / 202),
        ("exact", 202, 2_000, 202 / 2_000),
        ("subset", 10, 20_000, 1),
    ],
)
def test_mode__of_many_calls_scores(mode: str, expected: int, calls: int, value: float) -> None:
    assert score(mode, "a" * expected, "a" * calls).value == pytest.approx(value)


items = st.builds(
    expectations.Expectation,
    tool=st.sampled_from("ab"),
    args=st.sampled_from(["any", {"n": 1}, {"n": 1, "m": 1}]),
    max_duration_ms=st.sampled_from([None, None, 5.0]),
)
calls = st.builds(
    ToolCall,
    name=st.sampled_from("abx"),
    arguments=st.sampled_from([{}, {"n": 1}, {"n": 1, "m": 1}, {"n": 2}]),
    duration_ms=st.sampled_from([None, 1.0, 9.0]),
)


def ways(
    expected: Sequence[expectations.Expectation], made: Sequence[ToolCall], *, ordered: bool
) -> list[tuple[int, int, int, int]]:
    """Of every way to give calls to items: items that have one, limits kept, durations unknown,
    limits asked."""
    found = []
    for places in itertools.product([None, *range(len(made))], repeat=len(expected)):
        taken = [place for place in places if place is not None]
        fitting = all(
            place is None or item.fits(made[place])
            for item, place in zip(expected, places, strict=True)
        )
        if len(set(taken)) < len(taken) or not fitting or (ordered and taken != sorted(taken)):
            continue
        timed = [
            (item.max_duration_ms, made[place].duration_ms)
            for item, place in zip(expected, places, strict=True)
            if place is not None
        ]
        kept = sum(most is not None and took is not None and took <= most for most, took in timed)
        unknown = sum(most is not None and took is None for most, took in timed)
        found.append(
            (len(taken), kept, unknown, sum(item.max_duration_ms is not None for item in expected))
        )
    return found


def share(way: tuple[int, int, int, int], count: int) -> float:
    paired, kept, unknown, limits = way
    return (paired + kept) / (count + limits - unknown)


@given(st.lists(items, min_size=1, max_size=4), st.lists(calls, max_size=4))
def test_any_order__is_the_best_way_of_all_without_limits(
    expected: list[expectations.Expectation], made: list[ToolCall]
) -> None:
    expected = [item.model_copy(update={"max_duration_ms": None}) for item in expected]
    scored = score("any_order", expected, made)
    assert scored.value == pytest.approx(
        share(max(ways(expected, made, ordered=False)), len(expected))
    )
    assert score("superset", expected, made) == scored


@given(st.lists(items, min_size=1, max_size=4), st.lists(calls, max_size=4))
def test_in_order__is_the_longest_subsequence_without_limits_or_0(
    expected: list[expectations.Expectation], made: list[ToolCall]
) -> None:
    expected = [item.model_copy(update={"max_duration_ms": None}) for item in expected]
    best, anyhow = max(ways(expected, made, ordered=True)), max(ways(expected, made, ordered=False))
    wrong_order = best[0] < anyhow[0] == len(expected)
    assert score("in_order", expected, made).value == pytest.approx(
        0 if wrong_order else share(best, len(expected))
    )


@given(st.lists(items, max_size=4), st.lists(calls, max_size=4))
def test_exact__is_1_for_the_same_calls_alone(
    expected: list[expectations.Expectation], made: list[ToolCall]
) -> None:
    same = len(expected) == len(made) and all(map(expectations.Expectation.fits, expected, made))
    kept = same and all(
        item.max_duration_ms is None
        or done.duration_ms is None
        or done.duration_ms <= item.max_duration_ms
        for item, done in zip(expected, made, strict=True)
    )
    assert (score("exact", expected, made).value == 1) is kept


@given(
    st.sampled_from(MODES),
    st.lists(items, max_size=4),
    st.lists(calls, max_size=6),
)
def test_score__is_1_exactly_when_nothing_is_missed(
    mode: str, expected: list[expectations.Expectation], made: list[ToolCall]
) -> None:
    scored = score(mode, expected, made)
    assert 0 <= scored.value <= 1  # type: ignore[operator]  # there is always a value
    assert (scored.value == 1) is (not scored.misses)
