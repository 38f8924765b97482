"""The rule of each mode: which calls satisfy what is expected, and the score."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.tool_trajectory import explanation
from agentevals_action.evaluators.tool_trajectory.expectations import (
    Expectation,
    ExpectedCalls,
    Mode,
)
from agentevals_action.evaluators.tool_trajectory.explanation import times
from agentevals_action.formatting import quoted
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import Score

#: For each expected call the index of the call that satisfies it, or None.
Pairs = list[int | None]
Calls = Sequence[ToolCall]
#: For each expected call the indices of the calls that satisfy it.
Fitting = Sequence[set[int]]
#: Pairs of an expected call and a call that are compared for one answer.
MAX_PAIRS = 1_000_000
_NOT_SHOWN = "the agent does not show calls of this tool"


def score_calls(
    plan: ExpectedCalls,
    calls: Calls | None,
    hidden: Collection[str] = (),
    seen: Calls = (),
) -> Score:
    """The score of the calls by the plan's mode; a refused call satisfies nothing. `calls` is None
    if not all are known: then the calls in `seen` count. The calls of tools in `hidden` are
    unknown. A requirement is a miss if an unknown call may decide it. AttemptError for more than
    `MAX_PAIRS`."""
    asked = {wanted.tool for wanted in plan.expected} | plan.minimums.keys()
    unknown = asked if calls is None else asked.intersection(hidden)
    score = _score(plan, seen if calls is None else calls)
    if calls is None or (unknown and plan.mode != "subset"):
        reason = "the reply does not show all tool calls" if calls is None else _NOT_SHOWN
        if plan.mode in _CHANGED_BY_MORE:
            return _unknown(plan, unknown, reason)
        return _unknown(plan, unknown, reason, score.hits) if score.misses else score
    allowed = {wanted.tool for wanted in plan.expected if wanted.args == "any"}
    others = [tool for tool in hidden if tool not in allowed]
    if plan.mode == "subset" and calls and others and not score.misses:
        text = f"unknown whether it was called, {_NOT_SHOWN}; allow it, too"
        misses = tuple(f"{quoted(tool)}: {text}" for tool in others)
        return Score(0.0, misses=misses, is_unknown=True)
    return score


def _unknown(
    plan: ExpectedCalls, tools: Collection[str], reason: str, hits: tuple[str, ...] = ()
) -> Score:
    """0 with a miss for each requirement on these tools, except those that are hits."""
    items = Counter(wanted.describe() for wanted in plan.expected if wanted.tool in tools)
    items -= Counter(hit.removeprefix("called ") for hit in hits)
    texts = [f"{wanted}: unknown whether it was called" for wanted in items.elements()]
    counted = [quoted(tool) for tool in plan.minimums if tool in tools]
    texts += [f"{tool}: unknown how often it was called" for tool in counted]
    misses = tuple(f"{text}, {reason}" for text in texts or ["unknown which tools were called"])
    return Score(0.0, hits=hits, misses=misses, is_unknown=True)


@dataclass(frozen=True)
class Requirement:
    """One requirement on the calls, or `count` that share a sentence; `holds` is None if this is
    unknown, which is a warning."""

    holds: bool | None
    text: str
    count: int = 1


def _score(plan: ExpectedCalls, calls: Calls) -> Score:
    """The share of the requirements that hold; 1 if there is none."""
    if len(plan.expected) * len(calls) > MAX_PAIRS:
        raise AttemptError(
            "evaluator",
            f"{len(calls):,} tool calls cannot be compared with {len(plan.expected):,} that "
            f"are expected: these are over {MAX_PAIRS:,} pairs",
            "Expect fewer calls, or limit the calls of the agent.",
        )
    requirements = [*_MODES[plan.mode](plan, calls)]
    hits, misses, warnings = (
        tuple(requirement.text for requirement in requirements if requirement.holds is holds)
        for holds in (True, False, None)
    )
    asked = sum(requirement.count for requirement in requirements if requirement.holds is not None)
    satisfied = sum(requirement.count for requirement in requirements if requirement.holds)
    return Score(
        value=satisfied / asked if asked else 1.0,
        hits=hits,
        misses=misses,
        reasoning="; ".join(warnings),
        details={"warnings": [*warnings]} if warnings else {},
    )


def _any_order(plan: ExpectedCalls, calls: Calls) -> Iterator[Requirement]:
    fitting = find_fitting(plan.expected, calls)
    yield from _each_called(plan.expected, calls, assign(plan.expected, calls, fitting))
    counts = Counter(call.name for call in calls if not call.refused)
    refused = Counter(call.name for call in calls if call.refused)
    for tool, least in plan.minimums.items():
        text = explanation.counted(tool, counts[tool], least, refused[tool])
        yield Requirement(counts[tool] >= least, text)


def _in_order(plan: ExpectedCalls, calls: Calls) -> Iterator[Requirement]:
    fitting = find_fitting(plan.expected, calls)
    pairs = align(plan.expected, calls, fitting)
    if None in pairs and None not in assign(plan.expected, calls, fitting):
        order = ", ".join(quoted(wanted.tool) for wanted in plan.expected)
        miss = f"all the expected tools were called, but not in the order {order}"
        yield Requirement(False, f"{miss}; {explanation.describe_calls(calls)}")
    else:
        yield from _each_called(plan.expected, calls, pairs)


def _each_called(
    expected: Sequence[Expectation], calls: Calls, pairs: Pairs
) -> Iterator[Requirement]:
    """The requirements of the expected calls, with the calls that satisfy them."""
    summary = explanation.describe_calls(calls)
    left = [calls[index] for index in sorted({*range(len(calls))}.difference(pairs))]
    for wanted, index in zip(expected, pairs, strict=True):
        if index is None:
            yield Requirement(False, explanation.not_called(wanted, left, summary))
        else:
            yield Requirement(True, f"called {wanted.describe()}")
        yield from _in_time(wanted, None if index is None else calls[index])


def _exact(plan: ExpectedCalls, calls: Calls) -> Iterator[Requirement]:
    expected = plan.expected
    for index, wanted in enumerate(expected):
        call = calls[index] if index < len(calls) else None
        fits = call is not None and wanted.fits(call)
        yield Requirement(fits, explanation.at_position(index + 1, wanted, call))
        yield from _in_time(wanted, call if fits else None)
    if more := calls[len(expected) :]:
        names = quoted(", ".join(dict.fromkeys(map(explanation.name_call, more))))
        yield Requirement(False, f"{len(more)} more calls than expected: {names}", len(more))
    if not expected and not calls:
        yield Requirement(True, "called no tool, as expected", 0)


def _subset(plan: ExpectedCalls, calls: Calls) -> Iterator[Requirement]:
    expected = plan.expected
    allowed, others = Counter[str](), dict[str, list[ToolCall]]()
    for call in calls:
        fitting = [wanted for wanted in expected if wanted.fits(call)]
        if fitting:
            allowed[call.name] += 1
            # If several expectations allow a call, a limit that the call keeps counts.
            in_time = [wanted for wanted in fitting if not wanted.is_late(call)]
            yield from _in_time((in_time or fitting)[0], call)
        elif not call.refused:
            others.setdefault(call.name, []).append(call)
    for tool, count in allowed.items():
        yield Requirement(True, f"{quoted(tool)} is allowed (called {times(count)})", count)
    for tool, of_tool in others.items():
        yield Requirement(False, explanation.not_allowed(tool, expected, of_tool), len(of_tool))
    for tool, count in Counter(call.name for call in calls if call.refused).items():
        yield Requirement(False, f"{quoted(tool)} was refused ({times(count)})", count)
    if not calls:
        yield Requirement(True, "called no tool, so none that is not allowed", 0)


def _in_time(wanted: Expectation, call: ToolCall | None) -> Iterator[Requirement]:
    """The requirement of a duration limit, which a call that was not made does not keep."""
    if wanted.max_duration_ms is not None:
        is_unknown = call is not None and call.duration_ms is None
        holds = call is not None and not wanted.is_late(call)
        yield Requirement(None if is_unknown else holds, explanation.duration(wanted, call))


#: The modes in which one more call may be wrong.
_CHANGED_BY_MORE = ("exact", "subset")
_MODES: Mapping[Mode, Callable[[ExpectedCalls, Calls], Iterator[Requirement]]] = {
    "any_order": _any_order,
    "superset": _any_order,
    "in_order": _in_order,
    "exact": _exact,
    "subset": _subset,
}


def find_fitting(expected: Sequence[Expectation], calls: Calls) -> Fitting:
    """For each expected call the indices of the calls that satisfy it."""
    return [{index for index, call in enumerate(calls) if wanted.fits(call)} for wanted in expected]


def assign(expected: Sequence[Expectation], calls: Calls, fitting: Fitting) -> Pairs:
    """Calls for as many expected calls as possible, by augmenting paths: a call that is taken
    is free if its owner finds another. Expected calls with a time limit come last and choose calls
    in time first."""
    owners: dict[int, int] = {}
    lost = set[int]()  # calls that no search frees any more

    def candidates(row: int) -> Iterator[int]:
        def order(index: int) -> tuple[bool, bool, int]:
            return expected[row].is_late(calls[index]), index in owners, index

        return iter(sorted(fitting[row] - tried, key=order))

    rows = range(len(expected))
    for row in sorted(rows, key=lambda row: expected[row].max_duration_ms is not None):
        tried = set(lost)
        path, taken = [(row, candidates(row))], list[int]()
        while path:
            index = next((index for index in path[-1][1] if index not in tried), None)
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


def align(expected: Sequence[Expectation], calls: Calls, fitting: Fitting) -> Pairs:
    """Calls for as many expected calls as possible in their order (a longest common
    subsequence), and among these ways the one with the most calls in time."""
    rows, columns = range(len(expected)), range(len(calls))
    # For the rows and columns from each on: the count of pairs and of those in time, and a chain.
    none: tuple[int, int, Any] = (0, 0, None)
    best = [none] * (len(columns) + 1)
    for row in reversed(rows):
        later, best = best, [none] * (len(columns) + 1)
        for column in reversed(columns):
            ways = [later[column], best[column + 1]]
            if column in fitting[row]:
                count, in_time, chain = later[column + 1]
                kept = not expected[row].is_late(calls[column])
                ways.append((count + 1, in_time + kept, (row, column, chain)))
            best[column] = max(ways, key=lambda way: way[:2])
    pairs: Pairs = [None for _ in rows]
    chain = best[0][2]
    while chain:
        row, column, chain = chain
        pairs[row] = column
    return pairs
