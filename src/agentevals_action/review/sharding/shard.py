"""One shard of a review: runs its part of the plan, and writes the results as a fragment."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from agentevals_action.errors import AgentEvalsError, ExitCode, InvalidInput
from agentevals_action.formatting import counted
from agentevals_action.model.result import TestResult
from agentevals_action.model.shards import (
    Fragment,
    FragmentEnd,
    FragmentHeader,
    Shard,
    ShardPlan,
    Side,
    TestKey,
)
from agentevals_action.model.suite import Suite
from agentevals_action.results.shard_files import read_plan, write_fragment
from agentevals_action.results.shard_sources import ShardFolder
from agentevals_action.review.change.workspace import BASE_RESULTS, HEAD_RESULTS, SHARDS
from agentevals_action.review.pipeline import OpenChange, open_change
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.sharding.part import divide_budget, reduce_suite
from agentevals_action.review.sharding.plan import (
    RunIdentity,
    check_plan,
    check_tests,
    refuse_committed,
)

_Results = Mapping[Side, Mapping[TestKey, TestResult]]


@dataclass(frozen=True)
class ShardResult:
    """What a shard ran: its file, relative to the workspace, and the numbers of tests of head and
    of those that ended in an error."""

    path: str
    shard: Shard
    tests: int
    errors: int

    @property
    def exit_code(self) -> ExitCode:
        """Inconclusive if a test ended in an error, so that "re-run failed jobs" runs this shard
        again. Whether tests fail is for the merge to decide."""
        return ExitCode.INCONCLUSIVE if self.errors else ExitCode.PASSED

    def describe(self) -> str:
        """A sentence about the shard."""
        errors = f", {self.errors:,} of which ended in an error" if self.errors else ""
        return f"shard {self.shard}: {counted(self.tests, 'test')} ran{errors}; {self.path}"


@dataclass(frozen=True)
class _Part:
    """A shard's part of the suites, by their path on head."""

    head: Mapping[str, Suite]
    base: Mapping[str, Suite]


async def run_shard(request: ReviewRequest, run: RunIdentity) -> ShardResult:
    """Runs the part of the input `shard` on head and base, and writes the fragment. If the shard
    cannot run, or a signal ends it, the fragment states the reason. Nothing is compared or
    confirmed: the merge does that over all shards. Raises AgentEvalsError."""
    workspace = request.workspace
    shard = workspace.settings.shard
    if shard is None:
        raise ValueError("the settings name no shard")
    await refuse_committed(workspace, request.repository)
    folder = ShardFolder(workspace.report.resolve() / SHARDS)
    plan, digest = await asyncio.to_thread(read_plan, folder)
    total = len(plan.shards)
    if shard.total != total:
        raise InvalidInput(
            f"`shard` is {shard}, and the plan has {counted(total, 'shard')}",
            "use the matrix of the plan",
        )
    header = FragmentHeader(
        version=1,
        plan=digest,
        origin=plan.origin,
        run_attempt=run.attempt,
        shard=shard.number,
        shards=total,
    )
    workspace = replace(workspace, settings=divide_budget(workspace.settings, total))

    def write(results: _Results = MappingProxyType({}), **ending: str | tuple[str, ...]) -> str:
        rows = sum(map(len, results.values()))
        end = FragmentEnd.model_validate({"rows": rows, **ending})
        name = write_fragment(workspace.shards, Fragment(header, results, end))
        return f"{workspace.shards.path}/{name}"

    try:
        async with open_change(replace(request, workspace=workspace)) as change:
            check_plan(plan, change, run)
            if missing := change.decisive.plan.missing:
                raise InvalidInput("; ".join(map(str, missing)))
            check_tests(plan.shards[shard.number - 1], change, plan.reruns)
            part = _part_of(plan, plan.shards[shard.number - 1], change)
            try:
                base_problem = await change.run(_run(change, part))
            except asyncio.CancelledError:
                write(_results(change, part), problem="it was interrupted by a signal")
                raise
            results = _results(change, part)
            redact = change.sides.redactor.redact
            notices = tuple(map(redact, change.notices()))
            path = write(results, base_problem=redact(base_problem), notices=notices)
    except AgentEvalsError as error:
        write(problem=workspace.redactor.redact(error.sentence))
        raise
    head = results["head"].values()
    return ShardResult(path, shard, len(head), sum(one.verdict is None for one in head))


def _part_of(plan: ShardPlan, tests: Mapping[str, Sequence[str]], change: OpenChange) -> _Part:
    head, base = change.decisive.plan.head, change.decisive.plan.base
    total = len(plan.shards)
    names = {path: frozenset(found) for path, found in tests.items()}
    parts = {path: reduce_suite(head[path], names[path], total) for path in names if path in head}
    on_base = {
        path: reduce_suite(base[path], names[path], total)
        for path in names
        if path in base and path in plan.reruns
    }
    return _Part(
        {path: suite for path, suite in parts.items() if suite.tests},
        {path: suite for path, suite in on_base.items() if suite.tests},
    )


async def _run(change: OpenChange, part: _Part) -> str:
    """Runs both sides; the reason if base cannot run."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change.sides.run_head(part.head))
        base = tasks.create_task(_run_base(change, part))
    return base.result()


async def _run_base(change: OpenChange, part: _Part) -> str:
    if not part.base or change.decisive.base.root is None:
        return ""
    try:
        await change.sides.prepare_base(change.decisive.base.root)
    except AgentEvalsError as error:
        return error.sentence
    await change.sides.run_base(tuple(part.base.values()))
    return ""


def _results(change: OpenChange, part: _Part) -> _Results:
    """The results so far."""
    on_head = {suite.path: path for path, suite in part.base.items()}
    sides = change.sides
    return {
        "head": {(one.eval_path, one.eval_id): one for one in sides.finished(HEAD_RESULTS)},
        "base": {
            (on_head[one.eval_path], one.eval_id): one for one in sides.finished(BASE_RESULTS)
        },
    }
