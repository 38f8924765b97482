"""The calls that arrived at the server, in the trace that the agent shows of itself.

Each command-line agent renames tools, some add an argument or rewrite results. What arrived is
exact; what the agent shows has the order, the calls of its own tools, and those that it refused."""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.tools import DEFAULT_SERVER, Tool, ToolKey
from agentevals_action.model.trace import Trace, list_calls
from agentevals_action.validation.json_values import canonical

#: An argument that gemini-cli adds to each tool of a server.
ADDED_ARGUMENT = "wait_for_previous"
#: Characters from which on an agent cuts the names of tools (copilot and gemini: 64).
_CUT = 60
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Arrival:
    """A call that arrived, and the server and tool that it named; both are empty for a command."""

    call: ToolCall
    key: ToolKey = ("", "")


def merge_calls(
    trace: Trace,
    arrivals: Sequence[Arrival],
    tools: Mapping[ToolKey, Tool],
    accepts: Callable[[Tool, Any], bool],
) -> Trace:
    """The trace with the calls as they arrived, in the agent's order where it shows them, else in
    that of their arrival.

    A call that the agent shows and that did not arrive was refused if it has the prefix of one of
    the servers, or arguments that the tool does not take (`accepts`); any other is a call of the
    agent's own tool."""
    shown = list_calls(trace.messages)
    names = _Names((*tools, *(arrival.key for arrival in arrivals)))
    pairs = _pair(shown, arrivals, names)
    added = _place(arrivals, pairs, len(shown))
    messages, number = list[Message](), 0
    for message in trace.messages:
        calls: list[ToolCall] = []
        for call in message.tool_calls:
            calls += added[number]
            if number in pairs:
                arrived = arrivals[pairs[number]].call
                calls.append(replace(arrived, id=call.id, duration_ms=call.duration_ms))
            else:
                calls.append(_not_arrived(call, names.find(call.name), tools, accepts))
            number += 1
        messages.append(replace(message, tool_calls=tuple(calls)))
    if added[number]:
        answers = [index for index, message in enumerate(messages) if message.role == "assistant"]
        new = Message("assistant", "", tool_calls=tuple(added[number]))
        messages.insert(answers[-1] if answers else len(messages), new)
    is_unknown = trace.tool_calls is None and shown  # its other calls are not shown
    tool_calls = None if is_unknown else list_calls(messages)
    return replace(trace, messages=tuple(messages), tool_calls=tool_calls)


class _Names:
    """Finds a tool by the name under which an agent shows it: with any separators, a prefix, and
    cut."""

    def __init__(self, keys: Iterable[ToolKey]) -> None:
        self._keys: dict[str, ToolKey] = {}
        # A name without a prefix is one of the default server first.
        for server, tool in sorted(keys, key=lambda key: key[0] != DEFAULT_SERVER):
            for name in (f"mcp{server}{tool}", f"{server}{tool}", tool):
                self._keys.setdefault(_letters(name), (server, tool))
        self._keys.pop("", None)
        servers = sorted({server for server, _ in self._keys.values()})
        spelled = "|".join(map(re.escape, servers)) or r"(?!)"
        self._prefix = re.compile(rf"(?:mcp__?({spelled})__?|({spelled})-)(.+)")

    def find(self, name: str) -> ToolKey | None:
        """The tool that a name means; None if no server has it."""
        letters = _letters(name)
        if letters in self._keys:
            return self._keys[letters]
        if len(name) >= _CUT:
            whole = (key for full, key in self._keys.items() if full.startswith(letters))
            return next(whole, None)
        prefixed = self._prefix.fullmatch(name)
        return (prefixed[1] or prefixed[2], prefixed[3]) if prefixed else None


def _letters(text: str) -> str:
    return _SEPARATORS.sub("", text.lower())


def _pair(
    shown: Sequence[ToolCall], arrivals: Sequence[Arrival], names: _Names
) -> Mapping[int, int]:
    """The index of the arrival by the number of the call that shows it: the arrival with equal
    arguments, else the next arrival of the tool."""
    equal, rest = defaultdict[Hashable, deque[int]](deque), defaultdict[ToolKey, deque[int]](deque)
    for index, arrival in enumerate(arrivals):
        equal[arrival.key, _canonical(arrival.call.arguments)].append(index)
    keys, pairs = [names.find(call.name) for call in shown], dict[int, int]()
    for number, call in enumerate(shown):
        if same := equal.get((keys[number], _canonical(call.arguments))):
            pairs[number] = same.popleft()
    paired = set(pairs.values())
    for index, arrival in enumerate(arrivals):
        if index not in paired:
            rest[arrival.key].append(index)
    for number, call in enumerate(shown):
        key = keys[number]
        if number not in pairs and key and not call.refused and rest.get(key):
            pairs[number] = rest[key].popleft()
    return pairs


def _canonical(arguments: Any) -> Hashable:
    given = arguments or {}
    if isinstance(given, Mapping) and ADDED_ARGUMENT in given:
        given = {name: value for name, value in given.items() if name != ADDED_ARGUMENT}
    return canonical(given)


def _place(
    arrivals: Sequence[Arrival], pairs: Mapping[int, int], end: int
) -> Mapping[int, list[ToolCall]]:
    """The calls that the agent does not show, by the number of the shown call that they precede:
    after the shown call that arrived before them, else before the one that arrived after them."""
    numbers = {index: number for number, index in pairs.items()}
    placed, waiting, place = defaultdict[int, list[ToolCall]](list), list[ToolCall](), -1
    for index, arrival in enumerate(arrivals):
        if index in numbers:
            placed[numbers[index]] += waiting
            waiting, place = [], numbers[index] + 1
        elif place < 0:
            waiting.append(arrival.call)
        else:
            placed[place].append(arrival.call)
    placed[end] += waiting
    return placed


def _not_arrived(
    call: ToolCall,
    key: ToolKey | None,
    tools: Mapping[ToolKey, Tool],
    accepts: Callable[[Tool, Any], bool],
) -> ToolCall:
    """A call that the agent shows and that did not arrive, by its name in traces if it is one of
    the servers' tools."""
    if key is None:
        return call
    tool = tools.get(key) or Tool(name=key[1], server_name=key[0])
    is_prefixed = _letters(call.name) != _letters(tool.name)
    if is_prefixed or not accepts(tool, call.arguments):
        return replace(call, name=tool.trace_name, refused=True)
    return call
