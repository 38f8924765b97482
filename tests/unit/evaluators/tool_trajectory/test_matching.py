"""Trajectories: each mode's score, arguments, durations, and the best way to give calls to what is
expected."""

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


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "value"),
    [
        ("any_order", "abc", "xab", 2 / 3),
        ("any_order", "aa", "a", 1 / 2),
        ("superset", "ab", "xbya", 1),
        ("in_order", "ab", "xaxbx", 1),
        ("in_order", "ab", "ba", 0),
        ("in_order", "abc", "ab", 2 / 3),
        ("in_order", "abc", "ba", 1 / 3),
        ("exact", "ab", "abc", 2 / 3),
        ("exact", "abc", "ab", 2 / 3),
        ("exact", "ab", "ba", 0),
        ("exact", "", "", 1),
        ("exact", "", "a", 0),
        ("subset", "ab", "aab", 1),
        ("subset", "ab", "", 1),
        ("subset", "ab", "axb", 2 / 3),
        ("subset", "", "a", 0),
    ],
)
def test_mode__scores(mode: str, expected: str, calls: str, value: float) -> None:
    assert score(mode, expected, calls).value == pytest.approx(value)


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


@every_mode
def test_unknown_trace__is_misses_that_say_so(mode: str) -> None:
    scored = matching.score_calls(expectations.ExpectedCalls(mode, (item("a"), item("b"))), None)  # type: ignore[arg-type]  # each of the words
    assert (scored.value, scored.hits, len(scored.misses), scored.is_unknown) == (0, (), 2, True)
    assert all(
        "unknown whether it was called, the reply does not show all tool calls" in miss
        for miss in scored.misses
    )


@pytest.mark.parametrize(
    ("mode", "expected", "seen", "value", "unknown"),
    [
        ("any_order", "ab", "xba", 1, ""),
        ("superset", "ab", "ab", 1, ""),
        ("in_order", "ab", "axb", 1, ""),
        ("any_order", "ab", "xa", 0, "b"),
        ("in_order", "ab", "ba", 0, "ab"),
        # One more call that is not shown may be wrong.
        ("exact", "ab", "ab", 0, "ab"),
        ("subset", "ab", "a", 0, "ab"),
    ],
)
def test_unknown_trace__a_call_that_is_seen_satisfies_what_expects_it(
    mode: Any, expected: str, seen: str, value: float, unknown: str
) -> None:
    plan = expectations.ExpectedCalls(mode, tuple(map(item, expected)))
    scored = matching.score_calls(plan, None, seen=named(seen))
    assert (scored.value, scored.is_unknown) == (value, value == 0)
    assert [miss.partition(":")[0] for miss in scored.misses] == [f'"{tool}"' for tool in unknown]


def test_unknown_trace__where_no_call_is_expected_is_a_miss() -> None:
    scored = matching.score_calls(expectations.ExpectedCalls("exact"), None)
    assert (scored.value, scored.misses) == (
        0,
        ("unknown which tools were called, the reply does not show all tool calls",),
    )


def test_minimums__count_every_call_of_the_tool() -> None:
    scored = score("any_order", "a", "aab", minimums={"a": 2, "b": 2, "c": 1})
    assert scored.value == 1 / 2
    assert scored.hits == ('called "a"', 'called "a" 2 times, at least 2 asked')
    assert scored.misses == (
        'called "b" once, fewer than the 2 asked',
        'called "c" 0 times, fewer than the 1 asked',
    )


def test_misses__say_why() -> None:
    expected = [item("a", args={"n": 1}), item("b"), item("b"), item("c")]
    scored = score("any_order", expected, [call("a", n=2), call("b")])
    assert scored.hits == ('called "b"',)
    assert scored.misses == (
        'called "a" with {"n": 2}, expected {"n": 1}',
        'did not call "b"; called "a, b"',
        'did not call "c"; called "a, b"',
    )
    assert score("in_order", "ab", "ba").misses == (
        'all the expected tools were called, but not in the order "a", "b"; called "b, a"',
    )
    assert score("exact", "ab", "ba").misses == (
        'call 1 is "b", expected "a"',
        'call 2 is "a", expected "b"',
    )
    assert score("exact", "a", "abb").misses == ('2 more calls than expected: "b"',)
    assert score("exact", "ab", "a").misses == ('call 2 is missing, expected "b"',)
    assert score("exact", [item("a", args={"n": 1})], [call("a", n=2)]).misses == (
        'call 1 is "a" with {"n": 2}, expected {"n": 1}',
    )
    assert score(
        "subset", [item("a", args={"n": 1})], [call("a", n=2), call("x"), call("x"), call("y", n=3)]
    ).misses == (
        '"a" is allowed with other arguments only (called once, with {"n": 2}, expected {"n": 1})',
        '"x" is not allowed (called 2 times)',
        '"y" is not allowed (called once, with {"n": 3})',
    )


@pytest.mark.parametrize(
    ("args", "how", "arguments", "same"),
    [
        ("any", None, {"n": 1}, True),
        ("any", "exact", {"n": 1}, True),
        ({"n": 1}, None, {"n": 1.0, "more": True}, True),
        ({"n": 1}, None, {"n": True}, False),
        ({"n": 1}, None, {}, False),
        ({"n": None}, None, {}, False),
        ({"n": {"a": [1]}}, None, {"n": {"a": [1], "b": 2}}, False),
        ({"n": 1}, "exact", {"n": 1, "more": True}, False),
        ({"n": 1, "m": 2}, "exact", {"m": 2, "n": 1}, True),
        ({}, "exact", {"n": 1}, False),
        ({}, "exact", None, True),
        ({"n": 1}, "superset", {"n": 1, "more": True}, True),
        ({"n": 1, "m": 2}, "subset", {"n": 1}, True),
        ({"n": 1}, "subset", {"n": 1, "more": True}, False),
        ({"n": 1}, "subset", {}, True),
        ({"n": 1}, "ignore", {"n": 2}, True),
        ({"n": 1, "m": 2}, ("n",), {"n": 1, "m": 3}, True),
        ({"n": 1, "m": 2}, ("n", "m"), {"n": 1, "m": 3}, False),
        ({"deep": {"a": 1, "b": 2}}, ("deep.a",), {"deep": {"a": 1, "b": 3}}, True),
        ({"deep": {"a": 1}}, ("deep.a",), {"deep": 1}, False),
        ({"n": 1}, None, "n=1", False),
        ("any", None, "n=1", True),
    ],
)
def test_arguments__are_compared(args: Any, how: Any, arguments: Any, same: bool) -> None:
    called = ToolCall("a", arguments)
    assert item("a", args=args, args_match=how).fits(called) is same
    assert item("a", args=args).or_else(how).fits(called) is same
    assert not item("b", args=args, args_match=how).fits(called)


def test_arguments__by_the_item_before_the_default() -> None:
    own = item("a", args={"n": 1}, args_match="superset")
    assert own.or_else("exact").fits(call("a", n=1, m=2))


def test_one_call__satisfies_one_item_and_the_best_way_is_found() -> None:
    # The first item would take the only call that fits the second.
    expected = [item("a"), item("a", args={"n": 1})]
    assert score("any_order", expected, [call("a", n=1), call("a", n=2)]).value == 1
    assert score("superset", expected, [call("a", n=1)]).value == 1 / 2
    assert score("in_order", expected, [call("a", n=1), call("a", n=1)]).value == 1


@every_mode
@pytest.mark.parametrize(("duration", "value"), [(100, 1), (100.5, 1 / 2)])
def test_duration__is_one_more_thing_asked(mode: str, duration: float, value: float) -> None:
    scored = score(mode, [item("a", max_duration_ms=100)], [call("a", duration)])
    assert scored.value == value
    relation = "within" if value == 1 else "which exceeds"
    assert f'"a" took {duration:g} ms, {relation} the limit of 100 ms' in (
        *scored.hits,
        *scored.misses,
    )


@every_mode
def test_duration__unknown_is_a_warning_and_no_miss(mode: str) -> None:
    scored = score(mode, [item("a", max_duration_ms=100)], [call("a")])
    warning = 'how long "a" took is unknown, so its limit of 100 ms is not checked'
    assert (scored.value, scored.misses, scored.reasoning, scored.details) == (
        1,
        (),
        warning,
        {"warnings": [warning]},
    )


def test_duration__of_a_call_that_was_not_made_is_a_miss() -> None:
    scored = score("any_order", [item("a", max_duration_ms=100), item("b")], "b")
    assert scored.value == 1 / 3
    assert scored.misses == (
        'did not call "a"; called "b"',
        'no such call of "a" took at most 100 ms',
    )


def test_duration__goes_to_the_item_that_asks_for_it() -> None:
    expected = [item("a"), item("a", max_duration_ms=100)]
    assert score("any_order", expected, [call("a", 10), call("a", 500)]).value == 1
    assert score("in_order", expected, [call("a", 500), call("a", 500), call("a", 10)]).value == 1
    assert score("subset", expected, [call("a", 500)]).value == 1


def test_out_of_order__is_0_whatever_the_durations() -> None:
    assert (
        score(
            "in_order", [item("a", max_duration_ms=9), item("b")], [call("b"), call("a", 1)]
        ).value
        == 0
    )


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


def refused(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments, refused=True)


@pytest.mark.parametrize(
    ("mode", "value", "miss"),
    [
        ("any_order", 0, 'did not call "a"; called "a (refused)"'),
        ("superset", 0, 'did not call "a"; called "a (refused)"'),
        ("in_order", 0, 'did not call "a"; called "a (refused)"'),
        ("exact", 0, 'call 1 is "a" (refused), expected "a"'),
        ("subset", 0, '"a" was refused (once)'),
    ],
)
def test_refused__matches_nothing_and_is_named(mode: Any, value: float, miss: str) -> None:
    result = score(mode, "a", [refused("a")])
    assert (result.value, result.misses) == (value, (miss,))


def test_refused__a_call_that_was_made_later_matches() -> None:
    calls = [refused("a"), call("a")]
    assert [score(mode, "a", calls).value for mode in ("any_order", "superset", "in_order")] == [
        1,
        1,
        1,
    ]
    assert score("exact", "a", calls).value == 0
    assert score("subset", "a", calls).value == 1 / 2


def test_refused__does_not_count_for_minimums() -> None:
    result = score("any_order", "", [refused("a"), call("a")], minimums={"a": 2})
    assert result.misses == ('called "a" once, fewer than the 2 asked (refused once)',)


@pytest.mark.parametrize("mode", ["any_order", "superset", "in_order", "exact"])
def test_hidden__an_expected_call_of_a_hidden_tool_is_unknown(mode: Any) -> None:
    plan = expectations.ExpectedCalls(mode, (item("Bash"), item("Read")))
    result = matching.score_calls(plan, (call("Bash"),), ("Read", "Skill"))
    reason = "unknown whether it was called, the agent does not show calls of this tool"
    assert (result.value, result.is_unknown, result.misses) == (0, True, (f'"Read": {reason}',))
    others = expectations.ExpectedCalls(mode, (item("Bash"),))
    assert matching.score_calls(others, (call("Bash"),), ("Read",)).value == 1


def test_hidden__minimums_are_unknown() -> None:
    plan = expectations.ExpectedCalls("any_order", minimums={"Read": 1})
    assert matching.score_calls(plan, (), ("Read",)).is_unknown


@pytest.mark.parametrize(
    ("allowed", "calls", "value", "is_unknown"),
    [
        ((item("Bash"), item("Read"), item("Skill")), (call("Bash"),), 1, False),
        ((item("Bash"), item("Read")), (call("Bash"),), 0, True),
        ((item("Bash"), item("Skill"), item("Read", args={"a": 1})), (call("Bash"),), 0, True),
        ((item("Bash"),), (call("Bash"), call("Edit")), 0.5, False),
        ((item("Bash"),), (), 1, False),
    ],
)
def test_hidden__a_tool_that_is_not_allowed_may_have_been_called(
    allowed: tuple[expectations.Expectation, ...], calls: Any, value: float, is_unknown: bool
) -> None:
    """An agent that reads skills through its shell must not pass a test that allows none."""
    plan = expectations.ExpectedCalls("subset", allowed)
    scored = matching.score_calls(plan, calls, ("Read", "Skill"))
    assert (scored.value, scored.is_unknown) == (value, is_unknown)


@pytest.mark.parametrize("mode", ["any_order", "in_order", "superset"])
def test_misses__show_what_was_called_and_what_differs(mode: str) -> None:
    expected = item("refund", args={"order": 7, "amount": 9.5})
    made = [call("refund", order=8, amount=1), call("refund", order=7, amount=100, note="x" * 200)]
    scored = score(mode, [expected], [call("look_up"), *made])
    assert scored.misses == ('called "refund" with {"amount": 100}, expected {"amount": 9.5}',)


@pytest.mark.parametrize(
    ("how", "arguments", "miss"),
    [
        ("exact", {"a": 1, "b": 2}, '{"b": 2}, expected {"a": 1}'),
        ("exact", {}, '{}, expected {"a": 1}'),
        ("superset", {"b": 2}, '{"b": 2}, expected {"a": 1}'),
        ("subset", {"a": 1, "b": 2}, '{"b": 2}, expected {"a": 1}'),
        (["a"], {"a": 2, "b": 2}, '{"a": 2}, expected {"a": 1}'),
    ],
)
def test_misses__show_the_arguments_that_were_compared(
    how: Any, arguments: dict[str, Any], miss: str
) -> None:
    scored = score(
        "any_order", [item("t", args={"a": 1}, args_match=how)], [call("t", **arguments)]
    )
    assert scored.misses == (f'called "t" with {miss}',)


def test_misses__show_arguments_that_have_no_names() -> None:
    scored = score("any_order", [item("t", args={"a": 1})], [ToolCall("t", "raw")])
    assert scored.misses == ('called "t" with "raw", expected {"a": 1}',)


def test_misses__a_call_that_is_another_expected_one_is_not_shown() -> None:
    expected = [item("t", args={"a": 1}), item("t", args={"a": 2})]
    scored = score("any_order", expected, [call("t", a=1)])
    assert scored.misses == ('did not call "t" with {"a": 2}; called "t"',)


def test_misses__name_the_calls_in_order_and_count_repeated_ones() -> None:
    scored = score("any_order", "x", "aaba")
    assert scored.misses == ('did not call "x"; called "a (2 times), b, a"',)
    assert score("any_order", "x", "").misses == ('did not call "x"; called no tool',)
