"""A part of the tests of suites without a plan: every machine makes the same parts by itself."""

from collections.abc import Sequence

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.shards import Shard
from agentevals_action.model.suite import Suite
from agentevals_action.review.sharding.assignment import distribute
from agentevals_action.review.sharding.durations import collect_durations
from agentevals_action.review.sharding.items import PlannedSuite, group_tests
from agentevals_action.review.sharding.shard import reduce_suite


def part_of(suites: Sequence[Suite], shard: Shard, samples: int) -> tuple[Suite, ...]:
    """The suites of this part, with its tests alone, whose targets get a share of their requests
    per minute. All tests count as equally long. InvalidInput for a part without tests."""
    durations = collect_durations((), ())
    items = [
        item
        for suite in suites
        for item in group_tests(
            PlannedSuite(suite.path, suite.path, tuple(suite.tests), ()), samples, durations
        )
    ]
    if len(items) < shard.total:
        parts = counted(len(items), "part")
        problem = f"the tests can be divided into {parts}, and `--shard` is {shard}"
        raise InvalidInput(problem, "use fewer shards")
    names: dict[str, set[str]] = {}
    for item in distribute(items, shard.total)[shard.number - 1]:
        for path, test in item.tests:
            names.setdefault(path, set()).add(test)
    return tuple(
        reduce_suite(suite, frozenset(names[suite.path]), shard.total)
        for suite in suites
        if suite.path in names
    )
