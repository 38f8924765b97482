"""A shard's part of the tests of suites, with its share of the limits of cost and of requests."""

from collections.abc import Sequence
from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.shards import Shard
from agentevals_action.model.suite import Suite
from agentevals_action.review.sharding.assignment import distribute
from agentevals_action.review.sharding.durations import collect_durations
from agentevals_action.review.sharding.items import PlannedSuite, group_tests
from agentevals_action.settings import Settings


def part_of(suites: Sequence[Suite], shard: Shard, samples: int) -> tuple[Suite, ...]:
    """The suites of this part of a run without a plan: every machine makes the same parts by
    itself, and all tests count as equally long. InvalidInput for a part without tests."""
    durations = collect_durations(())
    items = [
        item
        for suite in suites
        for item in group_tests(
            PlannedSuite(suite.path, suite.path, suite.tests, ()), samples, durations
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


def reduce_suite(suite: Suite, names: frozenset[str], total: int) -> Suite:
    """A suite with these tests alone, whose targets get a share of their requests per minute."""
    tests = tuple(test for test in suite.tests if test.id in names)
    targets = {
        name: replace(target, requests_per_minute=max(target.requests_per_minute // total, 1))
        if target.requests_per_minute
        else target
        for name, target in suite.targets.targets.items()
    }
    table = replace(suite.targets, targets=targets)
    return replace(suite, tests=tests, targets=table)


def divide_budget(settings: Settings, total: int) -> Settings:
    """The settings with the shard's share of the budget."""
    if settings.max_cost_usd is None:
        return settings
    return settings.model_copy(update={"max_cost_usd": settings.max_cost_usd / total})
