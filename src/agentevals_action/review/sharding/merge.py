"""The merge of the results of all shards into one review, as if one machine had run the tests."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from agentevals_action.baselines.base import Baseline, origin_of, split_selections
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.errors import AttemptError
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import joined, plural
from agentevals_action.github.run_artifacts import PLAN_ARTIFACT
from agentevals_action.model.baseline import BaseRun
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.review import Review, Selection
from agentevals_action.model.shards import Fragments, ShardPlan, Side, TestKey
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.usage import Spending
from agentevals_action.results.build import error_result, test_result
from agentevals_action.results.shard_files import read_base_results, read_fragments, read_plan
from agentevals_action.results.shard_sources import ShardArchives, ShardFiles, ShardFolder
from agentevals_action.results.summary import suite_run
from agentevals_action.review.change.workspace import SHARDS
from agentevals_action.review.pipeline import compare_sides, open_change
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.sharding.plan import (
    RunIdentity,
    check_plan,
    check_tests,
    refuse_committed,
)
from agentevals_action.settings import Settings


async def merge_shards(request: ReviewRequest, run: RunIdentity) -> Review:
    """Reviews a change by the results of its shards.

    What needs the results of all tests happens here, in one process with the targets: answers are
    scored again where evaluators changed, and suspects of all shards are confirmed together,
    because `alpha` is the probability for the whole change. Tests without a result are errors, and
    each unusable fragment makes a pass inconclusive. All files are read before the first program of
    the change starts. Raises AgentEvalsError when nothing can be reviewed."""
    workspace = request.workspace
    await refuse_committed(workspace, request.repository)
    files = await asyncio.to_thread(_find_files, request)
    plan, digest = await asyncio.to_thread(read_plan, files)
    recorded = await asyncio.to_thread(read_base_results, files, plan)
    fragments = await asyncio.to_thread(read_fragments, files, plan, digest, run.attempt)
    workspace = replace(workspace, settings=_remaining_budget(workspace.settings, fragments))
    async with open_change(replace(request, workspace=workspace)) as change:
        check_plan(plan, change, run)
        check_tests(_tests_on_head(fragments), change)
        results = _Results(plan, fragments, change.engine.fingerprints)

        def around(name: str, source: Baseline) -> Baseline:
            if isinstance(source, RerunBaseline):
                return _ShardedRerun(source, results)
            return _RecordedStore(recorded[name]) if name in recorded else source

        async def run_head() -> Mapping[str, SuiteRun]:
            suites = change.decisive.plan.head
            return {path: results.suite_run("head", path, one) for path, one in suites.items()}

        baseline = await change.find_baseline(around)
        runs = await change.run(compare_sides(change, baseline, run_head))
        reviewed = await asyncio.to_thread(change.decide, runs, _problems(fragments))
    of_shards = (notice for one in fragments.by_shard.values() for notice in one.end.notices)
    return replace(reviewed, notices=tuple(dict.fromkeys((*reviewed.notices, *of_shards))))


def _find_files(request: ReviewRequest) -> ShardFiles:
    """The folder of the shards, or the artifacts of this run if a job on GitHub has no such folder.
    Raises InvalidInput, HostError."""
    folder = request.workspace.report.resolve() / SHARDS
    if request.github is None or folder.exists():
        return ShardFolder(folder)
    found = request.github.shard_artifacts()
    return ShardArchives(PLAN_ARTIFACT, found.archives, found.problems)


def _tests_on_head(fragments: Fragments) -> Mapping[str, Collection[str]]:
    """The tests that the shards ran on head, by the path of the suite."""
    found: dict[str, set[str]] = {}
    for fragment in fragments.by_shard.values():
        for path, test in fragment.results.get("head", ()):
            found.setdefault(path, set()).add(test)
    return found


def _remaining_budget(settings: Settings, fragments: Fragments) -> Settings:
    """The settings with the part of the budget that the shards did not use. What a shard without a
    usable fragment spent is unknown: its share counts."""
    if settings.max_cost_usd is None:
        return settings
    missing = len(fragments.missing)
    shares = settings.max_cost_usd * missing / (missing + len(fragments.by_shard))
    spent = sum(
        result.spent.cost_usd or 0.0
        for fragment in fragments.by_shard.values()
        for results in fragment.results.values()
        for result in results.values()
    )
    left = max(settings.max_cost_usd - shares - spent, 0.0)
    return settings.model_copy(update={"max_cost_usd": left})


def _problems(fragments: Fragments) -> tuple[str, ...]:
    """A sentence for each reason why shards have no results, and for each unusable fragment."""
    reasons: dict[str, list[int]] = {}
    ended = {n: one.end.problem for n, one in fragments.by_shard.items() if one.end.problem}
    for number, reason in sorted({**fragments.missing, **ended}.items()):
        reasons.setdefault(reason, []).append(number)
    shards = (
        f"{plural(len(numbers), 'shard', 'shards')} {_ranges(numbers)} "
        f"{plural(len(numbers), 'has', 'have')} no complete results: {reason}"
        for reason, numbers in reasons.items()
    )
    return (*shards, *fragments.problems)


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order in words: `1, 3–5 and 9`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return joined(["\N{EN DASH}".join(map(str, part)) for part in parts])


@dataclass(frozen=True)
class _Results:
    """The results of all shards as runs of suites; a test without a result is an error."""

    plan: ShardPlan
    fragments: Fragments
    fingerprints: Fingerprints

    @cached_property
    def _shards(self) -> Mapping[TestKey, int]:
        return {
            (path, name): number
            for number, part in enumerate(self.plan.shards, 1)
            for path, names in part.items()
            for name in names
        }

    @cached_property
    def _found(self) -> Mapping[Side, Mapping[TestKey, TestResult]]:
        found: dict[Side, dict[TestKey, TestResult]] = {"head": {}, "base": {}}
        for fragment in self.fragments.by_shard.values():
            for side, results in fragment.results.items():
                found[side].update(results)
        return found

    def suite_run(self, side: Side, path: str, suite: Suite) -> SuiteRun:
        """The run of a suite on one side; `path` is its path on head."""
        found = self._found[side]
        results = (
            found.get((path, test.id)) or self._error(side, path, suite, test)
            for test in suite.tests
        )
        return suite_run(suite.path, suite.name, results)

    def base_problem(self) -> str:
        """The reason why base could not run on any shard; empty if it ran on one."""
        ends = [fragment.end for fragment in self.fragments.by_shard.values()]
        problems = [end.base_problem for end in ends if end.base_problem]
        return problems[0] if problems and not self._found["base"] else ""

    def _error(self, side: Side, path: str, suite: Suite, test: Test) -> TestResult:
        number = self._shards.get((path, test.id), 0)
        fragment = self.fragments.by_shard.get(number)
        reason = self.fragments.missing.get(number, "")
        if fragment:
            reason = (side == "base" and fragment.end.base_problem) or fragment.end.problem
        error = AttemptError(
            "shard",
            f"shard {number} of {len(self.plan.shards)} has no result of it: "
            f"{reason or 'its fragment is incomplete'}"
            if number
            else "the plan of the shards does not contain it",
        )
        samples = [error_result(error, Spending())]
        return test_result(suite, test, samples, 0.0, self.fingerprints.of(suite, test))


@dataclass(frozen=True)
class _RecordedStore:
    """The results that a store of base gave when the shards were planned: it may have others by
    now."""

    run: BaseRun
    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:  # noqa: ARG002  # as in the protocol
        """Results by the suite's path on head."""
        return self.run


@dataclass(frozen=True)
class _ShardedRerun:
    """Base as the shards ran it; `source` is what runs it on one machine."""

    source: RerunBaseline
    shards: _Results
    reruns: ClassVar[bool] = True

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        info = self.source.info
        suites, missing = split_selections(self.source.suites, selections)
        if suites and (problem := self.shards.base_problem()):
            return BaseRun(replace(info, problem=problem), missing=missing)
        runs = {path: self.shards.suite_run("base", path, one) for path, one in suites.items()}
        origins = {path: origin_of("rerun", run, info.commit) for path, run in runs.items()}
        return BaseRun(info, runs, missing, origins=origins)
