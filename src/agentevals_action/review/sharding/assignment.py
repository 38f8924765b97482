"""The assignment of tests to shards, from their expected durations. Pure."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentevals_action.formatting import counted, time
from agentevals_action.model.shards import MAX_SHARDS, TestKey

#: Seconds that a test takes at least: an agent that answers at once still has to be called.
_MIN_SECONDS = 0.05


@dataclass(frozen=True)
class Item:
    """Tests that run on one machine, in suite order: one test, a conversation, or the tests that
    share a workspace (`name` describes them).

    `seconds` is the expected work of all samples on all sides, `longest` the part of it that runs
    one after another."""

    tests: tuple[TestKey, ...]
    seconds: float
    longest: float
    name: str


@dataclass(frozen=True)
class ShardLimits:
    """At most `shards` shards, each of which should end after `target_seconds` and runs
    `concurrency` attempts at once. `requests` is the smallest `requests_per_minute` of a target
    (None: there is none), of which every shard needs at least one."""

    shards: int
    target_seconds: float
    concurrency: int
    requests: int | None = None


@dataclass(frozen=True)
class Assignment:
    """The items of each shard, and sentences about what limits the shards."""

    shards: tuple[tuple[Item, ...], ...]
    notes: tuple[str, ...]


def assign(items: Sequence[Item], limits: ShardLimits) -> Assignment:
    """The shards of these items: the fewest that reach the target, and no more than pay off: no
    shard ends before the longest item does."""
    longest = max(items, key=lambda item: item.longest, default=None)
    longest_seconds = longest.longest if longest else 0.0
    target = max(limits.target_seconds, longest_seconds)
    needed = math.ceil(sum(item.seconds for item in items) / (limits.concurrency * target))
    allowed = min(limits.shards, MAX_SHARDS, limits.requests or MAX_SHARDS)
    number = max(1, min(needed, allowed, len(items)))
    shards = distribute(items, number)
    notes = []
    if longest and longest_seconds > limits.target_seconds:
        notes.append(
            f"{longest.name} takes about {time(longest_seconds * 1000)} on one machine: no number "
            f"of shards reaches the target of {time(limits.target_seconds * 1000)}"
        )
    if needed > number:
        end = max(sum(item.seconds for item in shard) for shard in shards) / limits.concurrency
        reason = f"`max-shards` and GitHub allow {allowed}"
        if limits.requests == allowed:
            reason = f"a target allows {counted(allowed, 'request')} per minute in all"
        notes.append(
            f"the target of {time(target * 1000)} needs {counted(needed, 'shard')}, and {reason}: "
            f"the slowest takes about {time(end * 1000)}"
        )
    return Assignment(shards, tuple(notes))


def distribute(items: Sequence[Item], number: int) -> tuple[tuple[Item, ...], ...]:
    """The items on so many shards: the longest first, each to the shard with the least work
    (Graham's LPT rule: at most 4/3 of the optimum). The same items give the same shards."""
    free = [(0.0, shard) for shard in range(number)]
    shards: list[list[tuple[int, Item]]] = [[] for _ in range(number)]
    order = sorted(enumerate(items), key=lambda one: (-one[1].seconds, one[0]))
    for index, item in order:
        work, shard = heapq.heappop(free)
        shards[shard].append((index, item))
        heapq.heappush(free, (work + max(item.seconds, _MIN_SECONDS), shard))
    return tuple(tuple(item for _, item in sorted(one, key=lambda one: one[0])) for one in shards)
