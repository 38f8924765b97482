"""Comparison of the agent's tool calls with those expected, by mode."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from agentevals_action.evaluators.metric_checks import amount, within
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score
from agentevals_action.model.suite import ToolCall
from agentevals_action.model.validation.file_model import FileModel, ListOf, NonEmpty
from agentevals_action.model.validation.json_values import MISSING, equal, look_up, shown

#: For each expected call the index of the call that satisfies it, or None.
Pairs = list[int | None]
Mode = Literal["any_order", "in_order", "exact", "superset", "subset"]
_Names = Annotated[ListOf[NonEmpty], Field(json_schema_extra={"minItems": 1})]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"] | _Names


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
    compared = _compared(expected, call, default)
    return compared is not None and all(_same(*values) for values in compared.values())


def _compared(
    expected: Expectation, call: ToolCall, default: ArgsMatch | None
) -> Mapping[str, tuple[Any, Any]] | None:
    """The arguments that are compared by name, as given and as expected (MISSING: on one side
    only); None if the call's arguments have no names."""
    how = expected.args_match or default or "superset"
    args, given = expected.args, {} if call.arguments is None else call.arguments
    if args == "any" or how == "ignore":
        return {}
    if not isinstance(given, Mapping):
        return None
    if isinstance(how, tuple):
        paired = {name: (argument(given, name), argument(args, name)) for name in how}
        return {name: values for name, values in paired.items() if values[1] is not MISSING}
    names = {"exact": {**given, **args}, "subset": given}.get(how, args)
    return {name: (given.get(name, MISSING), args.get(name, MISSING)) for name in names}


def _same(left: Any, right: Any) -> bool:
    return left is not MISSING and right is not MISSING and equal(left, right)


@dataclass(frozen=True)
class ExpectedCalls:
    """The expected calls, the least counts of calls by tool, and how arguments are compared."""

    mode: Mode
    expected: tuple[Expectation, ...] = ()
    minimums: Mapping[str, int] = field(default_factory=dict)
    args_match: ArgsMatch | None = None

    def fits(self, expected: Expectation, call: ToolCall) -> bool:
        """Whether a call is the expected one, and was made."""
        return not call.refused and fits(expected, call, self.args_match)

    def difference(self, expected: Expectation, calls: Iterable[ToolCall]) -> str:
        """How the arguments of the most similar call of the expected tool differ: those given, and
        those expected, without what is the same. Empty if the tool was not called."""
        found = [
            _difference(expected, _compared(expected, call, self.args_match), call)
            for call in calls
            if call.name == expected.tool and not call.refused
        ]
        return min(found, default=(0, ""))[1]


def _difference(
    expected: Expectation, compared: Mapping[str, tuple[Any, Any]] | None, call: ToolCall
) -> tuple[float, str]:
    different = {name: both for name, both in (compared or {}).items() if not _same(*both)}
    given, wanted = (
        {name: both[side] for name, both in different.items() if both[side] is not MISSING}
        for side in (0, 1)
    )
    text = f"with {shown(given or call.arguments or {})}, expected {shown(wanted or expected.args)}"
    return math.inf if compared is None else len(different), text


def _in_time(item: Expectation, call: ToolCall) -> bool | None:
    """Whether a call keeps the duration limit of an item; None if its duration is unknown."""
    if item.max_duration_ms is None:
        return True
    return None if call.duration_ms is None else within(call.duration_ms, item.max_duration_ms)


def _assign(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Pairs:
    """Calls for as many expected calls as possible, by augmenting paths: a call that is taken is
    free if its owner finds another. Those with a limit come last and choose calls in time first."""
    owners: dict[int, int] = {}

    def find_call(row: int, tried: set[int]) -> bool:
        item = plan.expected[row]
        fitting = [index for index, call in enumerate(calls) if plan.fits(item, call)]
        late = {index: _in_time(item, calls[index]) is False for index in fitting}
        for index in sorted(fitting, key=lambda index: (late[index], index in owners)):
            if index not in tried:
                tried.add(index)
                if index not in owners or find_call(owners[index], tried):
                    owners[index] = row
                    return True
        return False

    rows = range(len(plan.expected))
    for row in sorted(rows, key=lambda row: plan.expected[row].max_duration_ms is not None):
        find_call(row, set())
    by_row = {row: index for index, row in owners.items()}
    return [by_row.get(row) for row in rows]


def _align(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Pairs:
    """Calls for as many expected calls as possible in their order (a longest common subsequence),
    and among these ways the one with the most calls in time."""
    rows, columns = len(plan.expected), len(calls)
    worth = [
        [
            (rows + 1 + (_in_time(item, call) is not False)) if plan.fits(item, call) else 0
            for call in calls
        ]
        for item in plan.expected
    ]
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            value = worth[row][column]
            paired = value + best[row + 1][column + 1] if value else 0
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs: Pairs = [None] * rows
    row = column = 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs[row] = column
            row, column = row + 1, column + 1
    return pairs


def score_calls(
    plan: ExpectedCalls, calls: Sequence[ToolCall] | None, hidden: Collection[str] = ()
) -> Score:
    """The score of the calls by the plan's mode. A refused call is none of those expected. Unknown
    calls are misses: all (None), or if calls are asked for whose tools are in `hidden`."""
    asked = {item.tool for item in plan.expected} | plan.minimums.keys()
    if calls is not None and (plan.mode == "subset" or asked.isdisjoint(hidden)):
        return _MODES[plan.mode](plan, calls)
    reason = "the agent does not show calls of this tool"
    if calls is None:
        reason, hidden = "the reply shows no tool calls", asked
    unknown = (
        *(
            f"{item.describe()}: unknown whether it was called"
            for item in plan.expected
            if item.tool in hidden
        ),
        *(
            f"{quoted(tool)}: unknown how often it was called"
            for tool in plan.minimums
            if tool in hidden
        ),
    ) or ("unknown which tools were called",)
    return Score(0.0, misses=tuple(f"{text}, {reason}" for text in unknown), is_unknown=True)


@dataclass
class _Tally:
    """The requirements that were counted and those satisfied; each is a hit or a miss."""

    asked: int = 0
    satisfied: int = 0
    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, holds: bool, text: str, count: int = 1) -> None:
        """Counts one requirement, or `count` that share one text."""
        self.asked += count
        self.satisfied += count if holds else 0
        (self.hits if holds else self.misses).append(text)

    def add_duration(self, expected: Expectation, call: ToolCall | None) -> None:
        """Counts the duration limit of an item, unless the duration of its call is unknown."""
        if expected.max_duration_ms is None:
            return
        tool, most = quoted(expected.tool), amount(expected.max_duration_ms, "ms")
        if call is None:
            self.add(False, f"no such call of {tool} took at most {most}")
        elif call.duration_ms is None:
            self.warnings.append(
                f"how long {tool} took is unknown, so its limit of {most} is not checked"
            )
        else:
            holds = within(call.duration_ms, expected.max_duration_ms)
            relation = "at most" if holds else "more than the"
            took = amount(call.duration_ms, "ms")
            self.add(holds, f"{tool} took {took}, {relation} {most} asked")

    def score(self) -> Score:
        """The satisfied share; 1 if nothing was required."""
        return Score(
            value=self.satisfied / self.asked if self.asked else 1.0,
            hits=tuple(self.hits),
            misses=tuple(self.misses),
            reasoning="; ".join(self.warnings),
            details={"warnings": self.warnings} if self.warnings else {},
        )


def _tally_items(plan: ExpectedCalls, calls: Sequence[ToolCall], pairs: Pairs) -> _Tally:
    """Counts the expected calls with the calls that satisfy them."""
    tally = _Tally()
    others = [call for index, call in enumerate(calls) if index not in pairs]
    for item, index in zip(plan.expected, pairs, strict=True):
        call = None if index is None else calls[index]
        wrong = [other for other in others if not plan.fits(item, other)]
        if call is not None:
            text = f"called {item.describe()}"
        elif difference := plan.difference(item, wrong):
            text = f"called {quoted(item.tool)} {difference}"
        else:
            text = f"did not call {item.describe()}; {_called(calls)}"
        tally.add(call is not None, text)
        tally.add_duration(item, call)
    return tally


def _called(calls: Iterable[ToolCall]) -> str:
    """The names of the tools that were called, in order, repeated calls counted."""
    names = (f"{call.name} (refused)" if call.refused else call.name for call in calls)
    groups = ((name, len(list(same))) for name, same in itertools.groupby(names))
    words = [f"{name} ({_times(count)})" if count > 1 else name for name, count in groups]
    return f"called {quoted(', '.join(words))}" if words else "called no tool"


def _any_order(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Score:
    counts = Counter(call.name for call in calls if not call.refused)
    refused = Counter(call.name for call in calls if call.refused)
    tally = _tally_items(plan, calls, _assign(plan, calls))
    for tool, least in plan.minimums.items():
        holds = counts[tool] >= least
        relation = "at least" if holds else "fewer than the"
        called = f"called {quoted(tool)} {_times(counts[tool])}"
        more = f" (refused {_times(refused[tool])})" if refused[tool] else ""
        tally.add(holds, f"{called}, {relation} {least} asked{more}")
    return tally.score()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _in_order(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Score:
    pairs = _align(plan, calls)
    if None in pairs and None not in _assign(plan, calls):
        order = ", ".join(quoted(item.tool) for item in plan.expected)
        miss = f"all the expected tools were called, but not in the order {order}; {_called(calls)}"
        return Score(0.0, misses=(miss,))
    return _tally_items(plan, calls, pairs).score()


def _exact(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Score:
    tally = _Tally()
    pairs = itertools.zip_longest(plan.expected, calls[: len(plan.expected)])
    for number, (item, call) in enumerate(pairs, 1):
        wanted = item.describe()
        same = call is not None and plan.fits(item, call)
        if same:
            text = f"is {wanted}"
        elif call is None:
            text = f"is missing, expected {wanted}"
        else:
            refused = " (refused)" if call.refused else ""
            text = f"is {quoted(call.name)}{refused}, expected {wanted}"
            if difference := plan.difference(item, [call]):
                text = f"is {quoted(item.tool)} {difference}"
        tally.add(same, f"call {number} {text}")
        tally.add_duration(item, call if same else None)
    if more := calls[len(plan.expected) :]:
        names = ", ".join(
            dict.fromkeys(f"{call.name} (refused)" if call.refused else call.name for call in more)
        )
        tally.add(False, f"{len(more)} more calls than expected: {quoted(names)}", len(more))
    if not plan.expected and not calls:
        tally.hits.append("called no tool, as expected")
    return tally.score()


def _subset(plan: ExpectedCalls, calls: Sequence[ToolCall]) -> Score:
    tally, allowed, other = _Tally(), Counter[str](), dict[str, list[ToolCall]]()
    refused = Counter(call.name for call in calls if call.refused)
    for call in calls:
        if call.refused:
            continue
        items = [item for item in plan.expected if plan.fits(item, call)]
        if not items:
            other.setdefault(call.name, []).append(call)
        else:
            allowed[call.name] += 1
            # If several items allow a call, a limit that it keeps counts.
            tally.add_duration(min(items, key=lambda item: _in_time(item, call) is False), call)
    for tool, count in allowed.items():
        tally.add(True, f"{quoted(tool)} is allowed (called {_times(count)})", count)
    for tool, made in other.items():
        found = (plan.difference(item, made) for item in plan.expected)
        difference = next(filter(None, found), "")
        why = "is allowed with other arguments only" if difference else "is not allowed"
        given = f"with {shown(made[0].arguments)}" if made[0].arguments else ""
        details = ", ".join(filter(None, [f"called {_times(len(made))}", difference or given]))
        text = f"{quoted(tool)} {why} ({details})"
        tally.add(False, text, len(made))
    for tool, count in refused.items():
        tally.add(False, f"{quoted(tool)} was refused ({_times(count)})", count)
    if not calls:
        tally.hits.append("called no tool, so none that is not allowed")
    return tally.score()


_MODES: Mapping[Mode, Callable[[ExpectedCalls, Sequence[ToolCall]], Score]] = {
    "any_order": _any_order,
    "superset": _any_order,
    "in_order": _in_order,
    "exact": _exact,
    "subset": _subset,
}
