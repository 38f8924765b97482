"""Samples the suites again whose cost or time rose by more than their limit, on both sides."""

import asyncio
from collections.abc import Sequence

from agentevals_action.model.result import Key
from agentevals_action.reports.terminal.progress import Progress
from agentevals_action.review.comparison.decision_rule import FIRST_SAMPLES, as_head_scores
from agentevals_action.review.comparison.increases import (
    find_increases,
    is_replay,
    is_same_test,
    needs_confirmation,
)
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.review.run.confirmation import Sampler, with_both
from agentevals_action.review.run.head_and_base import Rows, by_suite
from agentevals_action.runners.executor import Executors


async def confirm_increases(
    inputs: ReviewInputs, executors: Executors, head: Rows, base: Rows, progress: Progress
) -> tuple[Rows, Rows]:
    """The results of both sides with fresh samples of all tests that are compared in a suite whose
    cost or time rose by more than its limit."""
    keys, confirm = _find_tests(inputs, head, base), inputs.request.settings.confirm
    if not keys or not confirm:
        return head, base
    subject = "whose suite costs or takes more"
    sampler = Sampler(inputs, executors, head, base, len(keys), progress, subject)
    count = min(FIRST_SAMPLES, confirm)
    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(sampler.both(key, count)) for key in keys}
    on_head, on_base = dict(head), dict(base)
    for key, task in running.items():
        on_head[key], on_base[key] = with_both(head[key], base[key], task.result())
    return on_head, on_base


def _find_tests(inputs: ReviewInputs, head: Rows, base: Rows) -> Sequence[Key]:
    """The tests with results on both sides of the suites whose rise has to be confirmed."""
    suites, policy = inputs.facts.suites, inputs.request.policy
    on_base, found = by_suite(base), list[Key]()
    for path, rows in by_suite(head).items():
        pairs = {
            name: (row, as_head_scores(on_base[path][name]))
            for name, row in rows.items()
            if name in on_base.get(path, {}) and is_same_test(row, on_base[path][name])
        }
        suite = next(each for each in suites if each.path == path)
        increases = find_increases(suite, pairs.values(), policy, len(suites))
        is_part = bool(inputs.request.settings.shard)
        is_suspect = any(needs_confirmation(each, is_part=is_part) for each in increases)
        if is_suspect and not is_replay(suite, pairs.values()):
            found += [(path, name) for name in pairs]
    return found
