"""The plan of the shards of a review."""

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from agentevals_action.baselines.base import Baseline, split_selections
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted, list_paths
from agentevals_action.model.baseline import BaseRun
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Selection
from agentevals_action.model.shards import Origin, Shard, ShardPlan
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.shard_files import digest_of, encode_base_results, write_plan
from agentevals_action.review.change.workspace import HEAD_RESULTS, SHARDS, ReviewWorkspace
from agentevals_action.review.pipeline import OpenChange, open_change
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.sharding.assignment import Assignment, Item, ShardLimits, assign
from agentevals_action.review.sharding.durations import Durations, collect_durations
from agentevals_action.review.sharding.items import PlannedSuite, group_tests
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import distinct_errors
from agentevals_action.system.git import GitRepository

#: The inputs that decide which tests run and how: all shards must have them in common.
_COMMON = (
    *("suites", "select", "watch", "untouched", "targets", "target", "judge_target", "samples"),
    *("timeout", "setup", "prepare", "env", "strict", "working_directory", "baseline"),
    *("baseline_branch", "baseline_file", "baseline_max_age", "cache", "cache_dir"),
)


@dataclass(frozen=True)
class RunIdentity:
    """The run of a workflow and its attempt; outside GitHub there is no repository and no run."""

    repository: str = ""
    run_id: int = 0
    attempt: int = 1


async def plan_shards(request: ReviewRequest, run: RunIdentity) -> ShardPlan:
    """Plans the shards of a review and writes the plan into the report folder. No program of the
    change runs. Raises AgentEvalsError when nothing can be planned."""
    workspace = request.workspace
    await refuse_committed(workspace, request.repository)
    earlier = await asyncio.to_thread(_earlier_results, workspace)
    # The plan calls no target: the variables of targets may be unset.
    job = replace(request.job, without_secrets="a plan of shards needs no secrets")
    async with open_change(replace(request, job=job)) as change:
        sources = _Sources()
        plan, settings = change.decisive.plan, change.request.settings
        baseline = await change.find_baseline(sources.around)
        found = await change.run(baseline.results(plan.selections))
        stored = [result for suite in found.suites.values() for result in suite.results]
        durations = collect_durations((*stored, *earlier))
        suites = [
            PlannedSuite(
                one.path,
                one.base_path or one.path,
                tuple(plan.head[one.path].tests),
                tuple(plan.base[one.path].tests) if one.path in sources.reruns else (),
            )
            for one in plan.selections
        ]
        assignment = _assign(suites, settings, durations, plan.head.values())
        keys = [suite.keys_of(test.id) for suite in suites for test in suite.head]
        note = durations.note(keys)
        base_results = encode_base_results(sources.recorded)
        shard_plan = ShardPlan(
            version=1,
            origin=origin_of(change, run),
            run_attempt=run.attempt,
            inputs=digest_inputs(settings),
            reruns=tuple(sources.reruns),
            base_results=digest_of(base_results),
            shards=tuple(map(_tests_by_suite, assignment.shards)),
            notes=(*_errors(change), *assignment.notes, *filter(None, [note])),
        )
        await asyncio.to_thread(write_plan, workspace.shards, shard_plan, base_results)
        return shard_plan


def _errors(change: OpenChange) -> Iterator[str]:
    """What the merge will find invalid, in sentences."""
    for error in distinct_errors(change.decisive.selected.broken):
        yield f"{error}: no shard runs this suite, and the outcome is invalid"


def origin_of(change: OpenChange, run: RunIdentity) -> Origin:
    """What the files of all shards of this review have in common."""
    return Origin(
        repository=run.repository,
        run_id=run.run_id,
        head_sha=change.decisive.head_sha,
        base_sha=change.decisive.base.sha,
    )


def digest_inputs(settings: Settings) -> dict[str, str]:
    """A digest of each input that all shards must have in common; they may contain secrets."""
    values = {name.replace("_", "-"): repr(getattr(settings, name)) for name in _COMMON}
    return {
        name: hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:16]
        for name, value in values.items()
    }


def check_plan(plan: ShardPlan, change: OpenChange, run: RunIdentity) -> None:
    """Raises InvalidInput for a plan of another commit or run, or with other inputs."""
    origin = origin_of(change, run)
    if origin != plan.origin:
        raise InvalidInput(
            f"the plan of the shards is of {_describe(plan.origin)}, and this job of "
            f"{_describe(origin)}",
            "make the plan on the same commit and base, in the same run",
        )
    inputs = digest_inputs(change.request.settings)
    if different := [f"`{name}`" for name in inputs if inputs[name] != plan.inputs.get(name)]:
        raise InvalidInput(
            f"the inputs of this job differ from those of the plan: {', '.join(different)}",
            "give the same inputs to the jobs that plan, run and merge shards",
        )


def check_tests(
    tests: Mapping[str, Collection[str]], change: OpenChange, reruns: Collection[str] = ()
) -> None:
    """Raises InvalidInput if a suite of head lacks tests (by its path) in this job, with the errors
    of the suite. Tests of base alone are known for the suites that run on base, `reruns`.

    Accident: a step of this job made a suite invalid, and its tests would be skipped. Attack: an
    install script of the change removes a test in the job that merges."""
    head, base = change.decisive.plan.head, change.decisive.plan.base
    for path, names in tests.items():
        if path in head and path in reruns and path not in base:
            continue  # base could not be read, and the tests that are not on head may be there
        suites = [head[path]] if path in head else []
        suites += [base[path]] if path in head and path in reruns else []
        found = {test.id for suite in suites for test in suite.tests}
        if missing := set(names) - found:
            broken = [one for one in change.decisive.selected.broken if one.path == path]
            reason = "; ".join(map(str, distinct_errors(broken)))
            raise InvalidInput(
                f"{list_paths([path])} has not all tests of the plan in this job: "
                + (reason or f"{counted(len(missing), 'test')} of it cannot be found"),
                "give every job the same files before the action runs",
            )


def _describe(origin: Origin) -> str:
    base = f" with base {origin.base_sha[:12]}" if origin.base_sha else " without a base"
    run = f" in run {origin.run_id} of {origin.repository}" if origin.run_id else ""
    return f"{origin.head_sha[:12]}{base}{run}"


async def refuse_committed(workspace: ReviewWorkspace, repository: GitRepository) -> None:
    """Raises InvalidInput if the repository itself contains the folder of the shards, or a link
    that leads to it.

    Attacks: a change commits a plan or fragments with results that nobody measured. It commits a
    link as the report folder, which leads to a folder that programs of the change may write."""
    folders = (f"{workspace.shards.path}/", f"{workspace.settings.report_dir}/{SHARDS}/")
    for path in (await repository.listing()).tracked:
        name = f"{path}/"
        if any(name.startswith(folder) or folder.startswith(name) for folder in folders):
            raise InvalidInput(
                f"the repository contains {path!r}, where the shards write their results",
                "remove it from the repository, or name another folder in `report-dir`",
            )


def matrix_of(plan: ShardPlan) -> Mapping[str, Sequence[str]]:
    """The matrix of jobs (`strategy.matrix`): one job for each `shard`."""
    total = len(plan.shards)
    return {"shard": [str(Shard(number, total)) for number in range(1, total + 1)]}


def _assign(
    suites: Sequence[PlannedSuite], settings: Settings, durations: Durations, used: Iterable[Suite]
) -> Assignment:
    items = [item for suite in suites for item in group_tests(suite, settings.samples, durations)]
    targets = (suite.targets.targets[name] for suite in used for name in suite.used_targets)
    requests = [target.requests_per_minute for target in targets if target.requests_per_minute]
    limits = ShardLimits(
        settings.max_shards,
        settings.target_seconds,
        settings.max_concurrency,
        min(requests, default=None),
    )
    return assign(items, limits)


def _tests_by_suite(items: Sequence[Item]) -> dict[str, tuple[str, ...]]:
    tests: dict[str, list[str]] = {}
    for path, name in (test for item in items for test in item.tests):
        tests.setdefault(path, []).append(name)
    return {path: tuple(names) for path, names in tests.items()}


def _earlier_results(workspace: ReviewWorkspace) -> Sequence[TestResult]:
    """The results of an earlier run in the report folder, which know how long tests take."""
    path = workspace.report / HEAD_RESULTS
    try:
        return tuple(read_results(path)) if path.is_file() else ()
    except (InvalidInput, OSError):  # used for an estimate only
        return ()


@dataclass
class _Sources:
    """Records the results that each store of base gives, and the suites (paths on head) that must
    run on base because no store has them."""

    recorded: dict[str, BaseRun] = field(default_factory=dict)
    reruns: list[str] = field(default_factory=list)

    def around(self, name: str, source: Baseline) -> Baseline:
        """The source with this name, recorded; `rerun` runs nothing."""
        if isinstance(source, RerunBaseline):
            return _PlannedRerun(source, self.reruns)
        return _RecordedStore(name, source, self.recorded)


@dataclass(frozen=True)
class _RecordedStore:
    name: str
    source: Baseline
    recorded: dict[str, BaseRun]
    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        self.recorded[self.name] = run = await self.source.results(selections)
        return run


@dataclass(frozen=True)
class _PlannedRerun:
    source: RerunBaseline
    suites: list[str]
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """No results: the shards run these suites."""
        found, missing = split_selections(self.source.suites, selections)
        self.suites.extend(found)
        problems = dict.fromkeys(found, "the shards run it")
        return BaseRun(self.source.info, missing=missing, problems=problems)
