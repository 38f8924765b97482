"""Comparison of the agent's tool calls with those expected, by mode."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.metric_checks import amount, within
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score
from agentevals_action.validation.file_model import FileModel, ListOf, NonEmpty
from agentevals_action.validation.json_values import MISSING, equal, look_up, shown

#: For each expected call the index of the call that satisfies it, or None.
Pairs = list[int | None]
Mode = Literal["any_order", "in_order", "exact", "superset", "subset"]
_Names = Annotated[ListOf[NonEmpty], Field(json_schema_extra={"minItems": 1})]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"] | _Names
#: Pairs of an expected call and a call that are compared for one answer.
MAX_PAIRS = 1_000_000
_NOT_SHOWN = "the agent does not show calls of this tool"


def check_argument_names(
    args_match: ArgsMatch | None, expected_args: Sequence[Mapping[str, Any]]
) -> None:
    """ValueError if a list of arguments is empty or names one that no expected call has."""
    if not isinstance(args_match, tuple):
        return
    if not args_match:
        raise ValueError("the list is empty; write the arguments to compare, or `ignore`")
    for name in args_match:
        if all(argument(args, name) is MISSING for args in expected_args):
            raise ValueError(
                f"{quoted(name)} is not an argument of an expected call; write it in `args` as well"
            )


class Expectation(FileModel):
    """One expected tool call."""

    tool: NonEmpty = Field(description="Name of the tool.")
    args: Literal["any"] | dict[str, Any] = Field(
        default="any", description="The expected arguments; `any` compares none."
    )
    args_match: ArgsMatch | None = Field(
        default=None,
        description="How the arguments are compared: `superset` (the call has all of "
        "`args`, and may have more; the default), `exact`, `subset` (the call "
        "has no others), `ignore`, or a list of the arguments that must be "
        "equal, as dotted paths.",
    )
    max_duration_ms: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="The longest duration of the call, in milliseconds: one more requirement.",
    )

    @field_validator("args_match")
    @classmethod
    def _check_names(cls, value: ArgsMatch | None, info: ValidationInfo) -> ArgsMatch | None:
        args = info.data.get("args")
        check_argument_names(value, [args] if isinstance(args, dict) else [])
        return value

    def describe(self) -> str:
        """The tool, with the arguments that are compared."""
        if self.args == "any" or self.args_match == "ignore":
            return quoted(self.tool)
        return f"{quoted(self.tool)} with {shown(self.args)}"


def argument(arguments: Mapping[str, Any], name: str) -> Any:
    """An argument by its name, or by a dotted path into one; MISSING if there is none."""
    return arguments[name] if name in arguments else look_up(arguments, name.split("."))


def fits(expected: Expectation, call: ToolCall, default: ArgsMatch | None = None) -> bool:
    """Whether a call is the expected one, by tool and arguments.

    `default` is the comparison for an item that has none. Of a list of arguments, those are
    compared that the item has. A call without arguments has `{}`."""
    if call.name != expected.tool:
        return False
    return _different(expected, call, default) == {}


def _different(
    expected: Expectation, call: ToolCall, default: ArgsMatch | None
) -> Mapping[str, tuple[Any, Any]] | None:
    """The compared arguments that differ, by name, as given and as expected (MISSING: on one side
    only); None if the call's arguments have no names."""
    how = expected.args_match or default or "superset"
    args, given = expected.args, {} if call.arguments is None else call.arguments
    if args == "any" or how == "ignore":
        return {}
    if not isinstance(given, Mapping):
        return None
    if isinstance(how, tuple):
        paired = {name: (argument(given, name), argument(args, name)) for name in how}
        paired = {name: both for name, both in paired.items() if both[1] is not MISSING}
    else:
        names = {"exact": {**given, **args}, "subset": given}.get(how, args)
        paired = {name: (given.get(name, MISSING), args.get(name, MISSING)) for name in names}
    return {name: both for name, both in paired.items() if not _same(*both)}


def _same(left: Any, right: Any) -> bool:
    return left is not MISSING and right is not MISSING and equal(left, right)


@dataclass(frozen=True)
class ExpectedCalls:
    """The expected calls, the least counts of calls by tool, and how arguments are compared."""

    mode: Mode
    expected: tuple[Expectation, ...] = ()
    minimums: Mapping[str, int] = field(default_factory=dict)
    args_match: ArgsMatch | None = None


def score_calls(
    plan: ExpectedCalls,
    calls: Sequence[ToolCall] | None,
    hidden: Collection[str] = (),
    seen: Sequence[ToolCall] = (),
) -> Score:
    """The score of the calls by the plan's mode. A refused call is none of those expected. Unknown
    calls are misses: all (None), unless those that are `seen` are all that is asked for, or those
    of tools in `hidden`, if they are asked for, or if `subset` may not allow them. They are part of
    the calls that are shown."""
    asked = {item.tool for item in plan.expected} | plan.minimums.keys()
    if calls is None:
        found = _Trajectory(plan, seen)
        if plan.mode not in _CHANGED_BY_MORE:
            _MODES[plan.mode](found)
        if found.hits and not found.misses:
            return found.score()
        return _unknown(plan, asked, "the reply does not show all tool calls", found.hits)
    if plan.mode != "subset" and not asked.isdisjoint(hidden):
        return _unknown(plan, hidden, _NOT_SHOWN)
    trajectory = _Trajectory(plan, calls)
    _MODES[plan.mode](trajectory)
    score = trajectory.score()
    allowed = {item.tool for item in plan.expected if item.args == "any"}
    others = [quoted(tool) for tool in hidden if tool not in allowed]
    if plan.mode != "subset" or not calls or score.misses or not others:
        return score
    text = f"unknown whether it was called, {_NOT_SHOWN}; allow it, too"
    return Score(0.0, misses=tuple(f"{tool}: {text}" for tool in others), is_unknown=True)


def _unknown(
    plan: ExpectedCalls, hidden: Collection[str], reason: str, hits: Sequence[str] = ()
) -> Score:
    asked = (item for item in plan.expected if item.tool in hidden)
    items = [name for item in asked if f"called {(name := item.describe())}" not in hits]
    unknown = [f"{item}: unknown whether it was called" for item in items]
    counted = [quoted(tool) for tool in plan.minimums if tool in hidden]
    unknown += [f"{tool}: unknown how often it was called" for tool in counted]
    unknown = unknown or ["unknown which tools were called"]
    misses = tuple(f"{text}, {reason}" for text in unknown)
    return Score(0.0, hits=tuple(hits), misses=misses, is_unknown=True)


class _Trajectory:
    """The calls beside those expected, and the requirements that were counted so far: each is a hit
    or a miss. `fitting` are the calls that are the expected one, by index, for each of them.
    AttemptError for more than `MAX_PAIRS`."""

    def __init__(self, plan: ExpectedCalls, calls: Sequence[ToolCall]) -> None:
        self.plan, self.expected, self.calls = plan, plan.expected, calls
        if len(plan.expected) * len(calls) > MAX_PAIRS:
            raise AttemptError(
                "evaluator",
                f"{len(calls):,} tool calls cannot be compared with {len(plan.expected):,} that "
                f"are expected: these are over {MAX_PAIRS:,} pairs",
                "Expect fewer calls, or limit the calls of the agent.",
            )
        self.refused = Counter(call.name for call in calls if call.refused)
        self.fitting = [
            {
                index
                for index, call in enumerate(calls)
                if not call.refused and fits(item, call, plan.args_match)
            }
            for item in plan.expected
        ]
        self.asked = self.satisfied = 0
        self.hits: list[str] = []
        self.misses: list[str] = []
        self.warnings: list[str] = []

    def add(self, holds: bool, text: str, count: int = 1) -> None:
        """Counts one requirement, or `count` that share one text."""
        self.asked += count
        self.satisfied += count if holds else 0
        (self.hits if holds else self.misses).append(text)

    def add_duration(self, item: Expectation, call: ToolCall | None) -> None:
        """Counts the duration limit of an item, unless the duration of its call is unknown."""
        if item.max_duration_ms is None:
            return
        tool, most = quoted(item.tool), amount(item.max_duration_ms, "ms")
        if call is None:
            self.add(False, f"no such call of {tool} took at most {most}")
        elif call.duration_ms is None:
            unknown = f"how long {tool} took is unknown, so its limit of {most} is not checked"
            self.warnings.append(unknown)
        else:
            holds, took = not _is_late(item, call), amount(call.duration_ms, "ms")
            relation = "within" if holds else "which exceeds"
            self.add(holds, f"{tool} took {took}, {relation} the limit of {most}")

    def add_items(self, pairs: Pairs) -> None:
        """Counts the expected calls with the calls that satisfy them."""
        left = sorted(set(range(len(self.calls))).difference(pairs))
        for row, index in enumerate(pairs):
            item, call = self.expected[row], None if index is None else self.calls[index]
            wrong = (self.calls[column] for column in left if column not in self.fitting[row])
            if call is not None:
                text = f"called {item.describe()}"
            elif difference := self.difference(item, wrong):
                text = f"called {quoted(item.tool)} {difference}"
            else:
                text = f"did not call {item.describe()}; {self.called}"
            self.add(call is not None, text)
            self.add_duration(item, call)

    def difference(self, item: Expectation, calls: Iterable[ToolCall]) -> str:
        """How the arguments of the most similar call of the expected tool differ: those given, and
        those expected, without what is the same. Empty if the tool was not called."""
        found = [
            (_different(item, call, self.plan.args_match), call)
            for call in calls
            if call.name == item.tool and not call.refused
        ]
        if not found:
            return ""
        values, call = min(found, key=lambda pair: math.inf if pair[0] is None else len(pair[0]))
        pairs = (values or {}).items()
        given, wanted = (
            {name: both[side] for name, both in pairs if both[side] is not MISSING}
            for side in (0, 1)
        )
        return f"with {shown(given or call.arguments or {})}, expected {shown(wanted or item.args)}"

    @cached_property
    def called(self) -> str:
        """The names of the tools that were called, in order, repeated calls counted."""
        groups = (
            (name, len(list(same))) for name, same in itertools.groupby(map(_name, self.calls))
        )
        words = [f"{name} ({_times(count)})" if count > 1 else name for name, count in groups]
        return f"called {quoted(', '.join(words))}" if words else "called no tool"

    def assign(self) -> Pairs:
        """Calls for as many expected calls as possible, by augmenting paths: a call that is taken
        is free if its owner finds another. Those with a limit come last and choose calls in time
        first."""
        owners: dict[int, int] = {}
        lost = set[int]()  # calls that no search frees any more

        def candidates(row: int) -> Iterator[int]:
            def order(index: int) -> tuple[bool, bool, int]:
                return _is_late(self.expected[row], self.calls[index]), index in owners, index

            return iter(sorted(self.fitting[row] - tried, key=order))

        rows = range(len(self.expected))
        for row in sorted(rows, key=lambda row: self.expected[row].max_duration_ms is not None):
            tried = set(lost)
            path, taken = [(row, candidates(row))], list[int]()
            while path:
                index = next((each for each in path[-1][1] if each not in tried), None)
                if index is None:
                    path.pop()
                    del taken[-1:]
                    continue
                tried.add(index)
                taken.append(index)
                if index not in owners:
                    break
                path.append((owners[index], candidates(owners[index])))
            else:
                lost = tried
            owners.update(zip(taken, (row for row, _ in path), strict=True))
        by_row = {row: index for index, row in owners.items()}
        return [by_row.get(row) for row in rows]

    def align(self) -> Pairs:
        """Calls for as many expected calls as possible in their order (a longest common
        subsequence), and among these ways the one with the most calls in time."""
        rows, columns = range(len(self.expected)), range(len(self.calls))
        # For the items and calls from each on: their pairs, those in time, and a chain of them.
        none: tuple[int, int, Any] = (0, 0, None)
        best = [none] * (len(columns) + 1)
        for row in reversed(rows):
            later, best = best, [none] * (len(columns) + 1)
            for column in reversed(columns):
                ways = [later[column], best[column + 1]]
                if column in self.fitting[row]:
                    count, in_time, chain = later[column + 1]
                    kept = not _is_late(self.expected[row], self.calls[column])
                    ways.append((count + 1, in_time + kept, (row, column, chain)))
                best[column] = max(ways, key=lambda way: way[:2])
        pairs: Pairs = [None for _ in rows]
        chain = best[0][2]
        while chain:
            row, column, chain = chain
            pairs[row] = column
        return pairs

    def score(self) -> Score:
        """The satisfied share; 1 if nothing was required."""
        return Score(
            value=self.satisfied / self.asked if self.asked else 1.0,
            hits=tuple(self.hits),
            misses=tuple(self.misses),
            reasoning="; ".join(self.warnings),
            details={"warnings": self.warnings} if self.warnings else {},
        )


def _is_late(item: Expectation, call: ToolCall) -> bool:
    """Whether a call is known to exceed the duration limit of an item."""
    limit, took = item.max_duration_ms, call.duration_ms
    return limit is not None and took is not None and not within(took, limit)


def _name(call: ToolCall) -> str:
    return f"{call.name} (refused)" if call.refused else call.name


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _any_order(trajectory: _Trajectory) -> None:
    trajectory.add_items(trajectory.assign())
    counts = Counter(call.name for call in trajectory.calls if not call.refused)
    for tool, least in trajectory.plan.minimums.items():
        holds, refused = counts[tool] >= least, trajectory.refused[tool]
        relation = "at least" if holds else "fewer than the"
        called = f"called {quoted(tool)} {_times(counts[tool])}"
        more = f" (refused {_times(refused)})" if refused else ""
        trajectory.add(holds, f"{called}, {relation} {least} asked{more}")


def _in_order(trajectory: _Trajectory) -> None:
    pairs = trajectory.align()
    if None not in pairs or None in trajectory.assign():
        trajectory.add_items(pairs)
        return
    order = ", ".join(quoted(item.tool) for item in trajectory.expected)
    miss = f"all the expected tools were called, but not in the order {order}"
    trajectory.add(False, f"{miss}; {trajectory.called}")


def _exact(trajectory: _Trajectory) -> None:
    expected, calls = trajectory.expected, trajectory.calls
    for index, item in enumerate(expected):
        call = calls[index] if index < len(calls) else None
        wanted, same = item.describe(), index in trajectory.fitting[index]
        if same:
            text = f"is {wanted}"
        elif call is None:
            text = f"is missing, expected {wanted}"
        elif difference := trajectory.difference(item, [call]):
            text = f"is {quoted(item.tool)} {difference}"
        else:
            text = f"is {quoted(call.name)}{' (refused)' * call.refused}, expected {wanted}"
        trajectory.add(same, f"call {index + 1} {text}")
        trajectory.add_duration(item, call if same else None)
    if more := calls[len(expected) :]:
        names = quoted(", ".join(dict.fromkeys(map(_name, more))))
        trajectory.add(False, f"{len(more)} more calls than expected: {names}", len(more))
    if not expected and not calls:
        trajectory.hits.append("called no tool, as expected")


def _subset(trajectory: _Trajectory) -> None:
    allowed, other = Counter[str](), dict[str, list[ToolCall]]()
    for index, call in enumerate(trajectory.calls):
        pairs = zip(trajectory.expected, trajectory.fitting, strict=True)
        items = [item for item, fitting in pairs if index in fitting]
        if items:
            allowed[call.name] += 1
            # If several items allow a call, a limit that it keeps counts.
            in_time = [item for item in items if not _is_late(item, call)]
            trajectory.add_duration((in_time or items)[0], call)
        elif not call.refused:
            other.setdefault(call.name, []).append(call)
    for tool, count in allowed.items():
        trajectory.add(True, f"{quoted(tool)} is allowed (called {_times(count)})", count)
    for tool, made in other.items():
        found = (trajectory.difference(item, made) for item in trajectory.expected)
        difference = next(filter(None, found), "")
        why = "is allowed with other arguments only" if difference else "is not allowed"
        given = f"with {shown(made[0].arguments)}" if made[0].arguments else ""
        details = ", ".join(filter(None, [f"called {_times(len(made))}", difference or given]))
        trajectory.add(False, f"{quoted(tool)} {why} ({details})", len(made))
    for tool, count in trajectory.refused.items():
        trajectory.add(False, f"{quoted(tool)} was refused ({_times(count)})", count)
    if not trajectory.calls:
        trajectory.hits.append("called no tool, so none that is not allowed")


#: The modes in which one more call may be wrong.
_CHANGED_BY_MORE = ("exact", "subset")
_MODES: Mapping[Mode, Callable[[_Trajectory], None]] = {
    "any_order": _any_order,
    "superset": _any_order,
    "in_order": _in_order,
    "exact": _exact,
    "subset": _subset,
}
