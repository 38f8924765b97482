"""Pure: the tool calls of an agent against those that were expected of it (specification, section
3)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from agentevals_action.entries.entry import Entry, NonEmpty, Seen, checks
from agentevals_action.evaluators.metrics import amount
from agentevals_action.evaluators.tool_trajectory.assignment import (
    Pairs,
    best_assignment,
    best_subsequence,
)
from agentevals_action.formatting import quoted
from agentevals_action.model.json_values import MISSING, equal, look_up, shown
from agentevals_action.model.result import Score
from agentevals_action.model.suite import ToolCall

Mode = Literal["any_order", "in_order", "exact", "superset", "subset"]
_Names = Annotated[tuple[NonEmpty, ...], Meta(extra_json_schema={"minItems": 1})]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"] | _Names


def check_names(args_match: ArgsMatch | None, known: Sequence[Mapping[str, Any]]) -> None:
    """ValueError when a list of arguments to look at names one that no expected call has."""
    if not isinstance(args_match, tuple):
        return
    if not args_match:
        raise ValueError(
            "the list is empty, so no argument is looked at; write the arguments to look at, or `ignore`"
        )
    for name in args_match:
        if all(argument(args, name) is MISSING for args in known):
            raise ValueError(
                f"{quoted(name)} is no argument of an expected call; write it in `args` as well"
            )


class Expectation(Entry):
    """One call that is expected of the agent."""

    tool: Annotated[NonEmpty, Meta(description="Name of the tool.")]
    args: Annotated[
        Literal["any"] | dict[str, Any],
        Meta(description="The arguments that it must be called with; `any` looks at none."),
    ] = "any"
    args_match: Annotated[
        ArgsMatch | None,
        Meta(
            description="How the arguments are compared: `superset` (the call has all of `args`, and may have more; the default), `exact`, "
            "`subset` (it has none but those of `args`), `ignore`, or the list of those that must be equal, as dotted paths."
        ),
    ] = None
    max_duration_ms: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="The longest that the call may take, in milliseconds: one more thing that is asked."
        ),
    ] = None

    @checks("args_match")
    @classmethod
    def _names_arguments(cls, value: ArgsMatch | None, seen: Seen) -> ArgsMatch | None:
        args = seen.fields.get("args")
        check_names(value, [args] if isinstance(args, dict) else [])
        return value

    def wanted(self) -> str:
        """The call in words, with the arguments that are asked for."""
        return (
            quoted(self.tool)
            if self.args == "any" or self.args_match == "ignore"
            else f"{quoted(self.tool)} with {shown(self.args)}"
        )


def argument(arguments: Mapping[str, Any], name: str) -> Any:
    """An argument by its name, or by a dotted path into one; MISSING when there is none."""
    return arguments[name] if name in arguments else look_up(arguments, name.split("."))


def fits(expected: Expectation, call: ToolCall, default: ArgsMatch | None = None) -> bool:
    """Whether a call is the expected one, by tool and arguments; `default` is the comparison where
    the item names none.

    Of a list of arguments those are compared that the item has. A call without arguments has none:
    `{}`."""
    if call.name != expected.tool:
        return False
    how = expected.args_match or default or "superset"
    args, given = expected.args, {} if call.arguments is None else call.arguments
    if args == "any" or how == "ignore":
        return True
    if not isinstance(given, Mapping):
        return False
    if isinstance(how, tuple):
        asked = [name for name in how if argument(args, name) is not MISSING]
        return all(_same(argument(args, name), argument(given, name)) for name in asked)
    if how == "exact" and given.keys() != args.keys():
        return False
    looked_at = given if how == "subset" else args
    return all(_same(args.get(name, MISSING), given.get(name, MISSING)) for name in looked_at)


def _same(left: Any, right: Any) -> bool:
    return left is not MISSING and right is not MISSING and equal(left, right)


@dataclass
class _Tally:
    """What was asked and what of it was satisfied; each a hit or a miss in words."""

    asked: int = 0
    satisfied: int = 0
    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, holds: bool, hit: str, miss: str, count: int = 1) -> None:
        """Notes one thing asked (or `count` that are told as one)."""
        self.asked += count
        self.satisfied += count if holds else 0
        (self.hits if holds else self.misses).append(hit if holds else miss)

    def time(self, expected: Expectation, call: ToolCall | None) -> None:
        """Notes the limit of time of an item, where it has one and the duration of its call can be
        told."""
        limit = expected.max_duration_ms
        if limit is None:
            return
        tool, most = quoted(expected.tool), amount(limit, "ms")
        if call is None:
            self.add(False, "", f"no such call of {tool} took at most {most}")
        elif call.duration_ms is None:
            self.warnings.append(
                f"how long {tool} took is unknown, so its limit of {most} is not checked"
            )
        else:
            took = f"{tool} took {amount(call.duration_ms, 'ms')}"
            self.add(
                _in_time(call.duration_ms, limit),
                f"{took}, at most {most} asked",
                f"{took}, more than the {most} asked",
            )

    def score(self, value: float | None = None) -> Score:
        """The share that was satisfied (1 when nothing was asked), or `value` instead."""
        share = self.satisfied / self.asked if self.asked else 1.0
        return Score(
            value=share if value is None else value,
            hits=tuple(self.hits),
            misses=tuple(self.misses),
            reasoning="; ".join(self.warnings),
            details={"warnings": self.warnings} if self.warnings else {},
        )


@dataclass(frozen=True)
class Plan:
    """What is expected: calls in an order that may matter, counts of calls by tool, and how
    arguments are compared."""

    mode: Mode
    expected: tuple[Expectation, ...] = ()
    minimums: Mapping[str, int] = field(default_factory=dict)
    args_match: ArgsMatch | None = None

    def fits(self, expected: Expectation, call: ToolCall) -> bool:
        """Whether a call is the expected one."""
        return fits(expected, call, self.args_match)


def score_calls(plan: Plan, calls: Sequence[ToolCall] | None) -> Score:
    """The score of a trajectory by its mode; unknown tool calls (None) are misses that say so."""
    if calls is None:
        asked = [
            f"{item.wanted()}: unknown whether it was called, the reply shows no tool calls"
            for item in plan.expected
        ]
        asked += [
            f"{quoted(tool)}: unknown how often it was called, the reply shows no tool calls"
            for tool in plan.minimums
        ]
        return Score(
            0.0,
            misses=tuple(asked)
            or ("unknown which tools were called, the reply shows no tool calls",),
            known=False,
        )
    return _MODES[plan.mode](plan, calls)


def _values(plan: Plan, calls: Sequence[ToolCall]) -> list[list[int]]:
    """What each call is worth to each item: as many items as possible come first, then as many
    limits of time, then unknown times."""
    base = len(plan.expected) + 1
    return [[_worth(plan, item, call, base) for call in calls] for item in plan.expected]


def _worth(plan: Plan, item: Expectation, call: ToolCall, base: int) -> int:
    if not plan.fits(item, call):
        return 0
    limit = item.max_duration_ms
    if limit is None:
        return base * base
    return base * base + (
        1 if call.duration_ms is None else base if _in_time(call.duration_ms, limit) else 0
    )


def _in_time(duration: float, limit: float) -> bool:
    return round(duration, 9) <= round(limit, 9)


def _tally_items(
    plan: Plan, calls: Sequence[ToolCall], pairs: Pairs, why: Callable[[Expectation], str]
) -> _Tally:
    tally = _Tally()
    for item, place in zip(plan.expected, pairs, strict=True):
        tally.add(
            place is not None,
            f"called {item.wanted()}",
            f"did not call {item.wanted()}{why(item) if place is None else ''}",
        )
        tally.time(item, None if place is None else calls[place])
    return tally


def _any_order(plan: Plan, calls: Sequence[ToolCall]) -> Score:
    def why(item: Expectation) -> str:
        if any(plan.fits(item, call) for call in calls):
            return " often enough"
        return (
            " (only with other arguments)" if any(call.name == item.tool for call in calls) else ""
        )

    tally = _tally_items(plan, calls, best_assignment(_values(plan, calls)), why)
    counts = Counter(call.name for call in calls)
    for tool, least in plan.minimums.items():
        called = f"called {quoted(tool)} {_times(counts[tool])}"
        tally.add(
            counts[tool] >= least,
            f"{called}, at least {least} asked",
            f"{called}, fewer than the {least} asked",
        )
    return tally.score()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _in_order(plan: Plan, calls: Sequence[ToolCall]) -> Score:
    values = _values(plan, calls)
    pairs = best_subsequence(values)
    if None in pairs and None not in best_assignment(values):
        order = ", ".join(quoted(item.tool) for item in plan.expected)
        return Score(
            0.0, misses=(f"all the expected tools were called, but not in the order {order}",)
        )

    def why(item: Expectation) -> str:
        return " in its place" if any(plan.fits(item, call) for call in calls) else ""

    return _tally_items(plan, calls, pairs, why).score()


def _exact(plan: Plan, calls: Sequence[ToolCall]) -> Score:
    tally = _Tally()
    for number, (item, call) in enumerate(zip(plan.expected, calls, strict=False), 1):
        same = plan.fits(item, call)
        is_what = (
            f"is {quoted(call.name)}"
            if call.name != item.tool
            else f"is {quoted(call.name)} with {shown(call.arguments or {})}"
        )
        tally.add(
            same,
            f"call {number} is {item.wanted()}",
            f"call {number} {is_what}, expected {item.wanted()}",
        )
        tally.time(item, call if same else None)
    for number, item in enumerate(plan.expected[len(calls) :], len(calls) + 1):
        tally.add(False, "", f"call {number} is missing, expected {item.wanted()}")
        tally.time(item, None)
    more = calls[len(plan.expected) :]
    if more:
        names = ", ".join(dict.fromkeys(call.name for call in more))
        tally.add(False, "", f"{len(more)} more calls than expected: {quoted(names)}", len(more))
    if not plan.expected and not calls:
        tally.hits.append("called no tool, as expected")
    return tally.score()


def _subset(plan: Plan, calls: Sequence[ToolCall]) -> Score:
    tally, allowed, other = _Tally(), Counter[str](), Counter[str]()
    for call in calls:
        items = [item for item in plan.expected if plan.fits(item, call)]
        (allowed if items else other)[call.name] += 1
        if items:
            # Where several items allow a call, the limit that it keeps is the one that is told of.
            tally.time(min(items, key=lambda item: _strictness(item, call)), call)
    names = {item.tool for item in plan.expected}
    for tool, count in allowed.items():
        tally.add(True, f"{quoted(tool)} is allowed (called {_times(count)})", "", count)
    for tool, count in other.items():
        why = "is allowed with other arguments only" if tool in names else "is not allowed"
        tally.add(False, "", f"{quoted(tool)} {why} (called {_times(count)})", count)
    if not calls:
        tally.hits.append("called no tool, so none that is not allowed")
    return tally.score()


def _strictness(item: Expectation, call: ToolCall) -> int:
    if item.max_duration_ms is None:
        return 1
    if call.duration_ms is None:
        return 2
    return 0 if _in_time(call.duration_ms, item.max_duration_ms) else 3


_MODES: Mapping[Mode, Callable[[Plan, Sequence[ToolCall]], Score]] = {
    "any_order": _any_order,
    "superset": _any_order,
    "in_order": _in_order,
    "exact": _exact,
    "subset": _subset,
}
