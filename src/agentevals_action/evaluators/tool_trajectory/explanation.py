"""The sentences about tool calls that satisfy what is expected, and about those that do not."""

import itertools
import math
from collections.abc import Iterable, Sequence

from agentevals_action.evaluators.tool_trajectory.expectations import Expectation
from agentevals_action.evaluators.trace_checks import amount
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.validation.json_values import MISSING, describe_json

#: Calls of which the most similar to an expected one is found.
_MOST_COMPARED = 100


def not_called(expected: Expectation, left: Iterable[ToolCall], summary: str) -> str:
    """The sentence about an expected call that was not made. `left` are the calls that
    satisfy nothing, `summary` describes all calls."""
    if difference := _difference(expected, left):
        return f"called {quoted(expected.tool)} {difference}"
    return f"did not call {expected.describe()}; {summary}"


def describe_calls(calls: Iterable[ToolCall]) -> str:
    """The names of the tools that were called, in order, repeated calls counted."""
    groups = ((name, len(list(same))) for name, same in itertools.groupby(map(name_call, calls)))
    words = [f"{name} ({times(count)})" if count > 1 else name for name, count in groups]
    return f"called {quoted(', '.join(words))}" if words else "called no tool"


def counted(tool: str, count: int, least: int, refused: int) -> str:
    """The sentence about the number of calls of a tool."""
    relation = "at least" if count >= least else "fewer than the"
    more = f" (refused {times(refused)})" if refused else ""
    return f"called {quoted(tool)} {times(count)}, {relation} {least} asked{more}"


def duration(expected: Expectation, call: ToolCall | None) -> str:
    """The sentence about the duration limit of an expected call, which was made or not."""
    tool, most = quoted(expected.tool), amount(expected.max_duration_ms or 0, "ms")
    if call is None:
        return f"no such call of {tool} took at most {most}"
    if call.duration_ms is None:
        return f"how long {tool} took is unknown, so its limit of {most} is not checked"
    relation = "which exceeds" if expected.is_late(call) else "within"
    return f"{tool} took {amount(call.duration_ms, 'ms')}, {relation} the limit of {most}"


def at_position(number: int, expected: Expectation, call: ToolCall | None) -> str:
    """The sentence about the call at a position, counted from 1."""
    if call is None:
        text = f"is missing, expected {expected.describe()}"
    elif expected.fits(call):
        text = f"is {expected.describe()}"
    elif difference := _difference(expected, [call]):
        text = f"is {quoted(expected.tool)} {difference}"
    else:
        refused = " (refused)" if call.refused else ""
        text = f"is {quoted(call.name)}{refused}, expected {expected.describe()}"
    return f"call {number} {text}"


def not_allowed(tool: str, expected: Iterable[Expectation], calls: Sequence[ToolCall]) -> str:
    """The sentence about calls of a tool that are not allowed."""
    difference = next(filter(None, (_difference(wanted, calls) for wanted in expected)), "")
    why = "is allowed with other arguments only" if difference else "is not allowed"
    given = f"with {describe_json(calls[0].arguments)}" if calls[0].arguments else ""
    details = ", ".join(filter(None, [f"called {times(len(calls))}", difference or given]))
    return f"{quoted(tool)} {why} ({details})"


def _difference(expected: Expectation, calls: Iterable[ToolCall]) -> str:
    """How the arguments of the most similar call of the expected tool differ: the given and the
    expected arguments without equal ones. Empty if no call has other arguments."""
    same_tool = (call for call in calls if call.name == expected.tool and not call.refused)
    near = itertools.islice(same_tool, _MOST_COMPARED)
    found = [(values, call) for call in near if (values := expected.compare(call)) != {}]
    if not found:
        return ""
    values, call = min(found, key=lambda pair: math.inf if pair[0] is None else len(pair[0]))
    pairs = (values or {}).items()
    given, wanted = (
        {name: both[side] for name, both in pairs if both[side] is not MISSING} for side in (0, 1)
    )
    shown = describe_json(given or call.arguments or {})
    return f"with {shown}, expected {describe_json(wanted or expected.args)}"


def name_call(call: ToolCall) -> str:
    """The name of the tool, and whether the call was refused."""
    return f"{call.name} (refused)" if call.refused else call.name


def times(count: int) -> str:
    """How often something happened, in words."""
    return "once" if count == 1 else f"{count} times"
