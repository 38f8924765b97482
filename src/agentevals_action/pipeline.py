"""The order of things and nothing else: from a job to a review."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Protocol

from agentevals_action import compare, discover, gate, interrupts, trees
from agentevals_action.activity import Job
from agentevals_action.baselines.base import Baseline
from agentevals_action.discover import Change, Discovery
from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.git import GitRepository
from agentevals_action.hosts.base import Host
from agentevals_action.model.comparison import BaseRun, ChangedFile, Review, Selection, SuiteComparison
from agentevals_action.model.fault import Fault
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.settings import Settings
from agentevals_action.summary import summarise


class Bench(Protocol):
    """Where suites are read and run, head's and base's in one pool."""

    @property
    def suites(self) -> Sequence[Suite | BrokenSuite]:
        """Every suite of head's tree."""
        ...

    def refusals(self, suite: Suite) -> Sequence[Fault]:
        """What makes running a suite pointless: a variable that a target of its tests needs and that is not set."""
        ...

    def base_suites(self, root: Path) -> Sequence[Suite | BrokenSuite]:
        """Every suite of the base's tree; InvalidInput when they cannot be told."""
        ...

    def baseline(self, base: trees.Base, root: Path | None, suites: Sequence[Suite | BrokenSuite]) -> Baseline:
        """Where the base's results come from."""
        ...

    async def announce(self, suites: Sequence[Suite], sides: int) -> None:
        """Says what is about to be run, on so many sides."""
        ...

    async def run(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        """Runs suites of head."""
        ...

    async def regrade(self, suite: Suite, base: Mapping[str, TestResult]) -> Mapping[str, TestResult]:
        """The base's answers, by test id, graded by head's evaluators."""
        ...

    def question_files(self, suite: Suite, changed: Sequence[ChangedFile]) -> Mapping[str, Sequence[str]]:
        """Changed files that the tests' questions hold, by test id."""
        ...

    async def close(self) -> None:
        """Frees connections."""
        ...


@dataclass(frozen=True)
class _Sides:
    """The base (`root` is its tree, None when there is none), what suites it has, and the change from it to head."""

    base: trees.Base
    root: Path | None
    suites: Sequence[Suite | BrokenSuite]
    change: Change


@dataclass(frozen=True)
class _Runs:
    """What was run: head's suites, the base's, and the tests whose base was graded again, by suite."""

    head: Mapping[str, SuiteRun]
    base: BaseRun
    regraded: Mapping[str, Mapping[str, TestResult]]


def review(job: Job, settings: Settings, repository: GitRepository, host: Host, bench: Bench) -> Review:
    """Finds what the change touches, runs it on both sides, compares and decides; raises when there is nothing sound to review."""
    started = monotonic()
    head = trees.check_head(repository, job)
    everything = bench.suites
    with _base_tree(repository, trees.resolve_base(repository, job, head, host.merge_base)) as (base, root):
        try:
            there = bench.base_suites(root) if root else ()
        except InvalidInput as error:  # what base's suites are cannot be told: taken for none, every regression would be a new test
            base, root, there = replace(base, problem="; ".join((*error.faults, str(error)))), None, ()
        if not everything:
            raise InvalidInput("there is no suite in this repository", "write an EVAL.yaml, or mend `suites` and `working-directory`")
        change = _change(job, _files(job, repository, host, base, head), (repository.root, *((root,) if root else ())), there)
        return _review(job, settings, bench, _Sides(base, root, there, change), started)


def _review(job: Job, settings: Settings, bench: Bench, sides: _Sides, started: float) -> Review:
    everything, base, change = bench.suites, sides.base, sides.change
    found = discover.select_suites(everything, change, settings.watch)
    suites, refusals = _ready(found, everything, bench, job)
    selections = tuple(selection for selection in found.selections if selection.path in suites)
    baseline = bench.baseline(base, sides.root, sides.suites)
    runs = interrupts.run(_run(bench, baseline, selections, suites))
    compared = tuple(_compare(suites[selection.path], selection, runs, change, bench) for selection in selections)
    invalid = (*(fault for suite in found.touched_broken for fault in suite.faults), *refusals)
    policy = gate.Policy(settings.fail_on or job.fail_on, settings.min_pass_rate, settings.on_inconclusive)
    return Review(
        head_sha=job.head_sha,
        base_sha=base.sha,
        decision=gate.decide(policy, compared, runs.base.info, invalid),
        selections=selections,
        suites=compared,
        baseline=runs.base.info,
        invalid=invalid,
        warnings=_warnings(found, suites),
        gone_suites=found.gone,
        suites_in_repository=len(everything),
        samples=settings.samples,
        duration_ms=(monotonic() - started) * 1000,
    )


def refused(job: Job, reasons: Sequence[str]) -> Review:
    """The review of a job that could not begin."""
    return Review(head_sha=job.head_sha, base_sha=None, decision=gate.invalid(reasons))


@contextmanager
def _base_tree(repository: GitRepository, base: trees.Base) -> Iterator[tuple[trees.Base, Path | None]]:
    """The base with its tree; a tree that cannot be had is the base's problem, no end of the review."""
    with ExitStack() as opened:
        root = None
        if base.sha is not None:
            try:
                root = opened.enter_context(trees.base_worktree(repository, base.sha))
            except GitError as error:
                base = replace(base, problem=error.sentence)
        yield base, root


def _files(job: Job, repository: GitRepository, host: Host, base: trees.Base, head: str) -> Sequence[ChangedFile] | None:
    files = host.changed_files()
    if files is None and base.sha is not None:
        return repository.changed_files(base.sha, None if job.event == "local" else head)
    return files


def _change(job: Job, files: Sequence[ChangedFile] | None, roots: Sequence[Path], there: Sequence[Suite | BrokenSuite]) -> Change:
    """The change with what base knows of it: what only base's suites name, or were, would be touched unseen."""
    now = {file.previous_path: file.path for file in files or () if file.previous_path and file.status == "renamed"}
    paths = [path for file in files or () for path in (file.path, file.previous_path) if path]
    return Change(
        files,
        everything=job.select == "all",
        base_suites=tuple(suite.path for suite in there),
        base_files={now.get(suite.path, suite.path): suite.files for suite in there},
        links=trees.links_among(paths, roots),
    )


def _ready(found: Discovery, everything: Sequence[Suite | BrokenSuite], bench: Bench, job: Job) -> tuple[dict[str, Suite], list[Fault]]:
    """The selected suites that can run, and why others cannot. Without secrets they run all the same: their tests say what is missing."""
    by_path = {suite.path: suite for suite in everything if isinstance(suite, Suite)}
    ready: dict[str, Suite] = {}
    faults: list[Fault] = []
    for selection in found.selections:
        refusals = () if job.without_secrets else bench.refusals(by_path[selection.path])
        faults.extend(refusals)
        if not refusals:
            ready[selection.path] = by_path[selection.path]
    return ready, list(dict.fromkeys(faults))


async def _run(bench: Bench, baseline: Baseline, selections: Sequence[Selection], suites: Mapping[str, Suite]) -> _Runs:
    try:
        await bench.announce(tuple(suites.values()), 2 if baseline.reruns else 1)
        async with asyncio.TaskGroup() as tasks:
            on_head = tasks.create_task(_of_head(bench, suites))
            on_base = tasks.create_task(baseline.results(selections))
        head, base = on_head.result(), on_base.result()
        regraded = {}
        for path, run in base.suites.items():
            if again := _to_regrade(head[path], run):
                regraded[path] = await bench.regrade(suites[path], again)
        return _Runs(head, base, regraded)
    finally:
        await bench.close()


async def _of_head(bench: Bench, suites: Mapping[str, Suite]) -> dict[str, SuiteRun]:
    return {run.path: run for run in await bench.run(tuple(suites.values()))}


def _to_regrade(head: SuiteRun, base: SuiteRun) -> dict[str, TestResult]:
    there = {result.eval_id: result for result in base.results}
    pairs = ((result, there.get(result.eval_id)) for result in head.results)
    return {other.eval_id: other for result, other in pairs if other and compare.needs_regrading(result, other)}


def _compare(suite: Suite, selection: Selection, runs: _Runs, change: Change, bench: Bench) -> SuiteComparison:
    path, info = selection.path, runs.base.info
    regraded = runs.regraded.get(path, {})
    run = runs.base.suites.get(path)
    if run and regraded:  # the totals are those that are compared
        results = (regraded.get(result.eval_id, result) for result in run.results)
        run = replace(run, summary=summarise(run.path, run.name, results))
    problem = runs.base.problems.get(path) or (info.problem if info.wanted else "")
    side = compare.Side(run, selection.base_path, problem, runs.base.missing.get(path, ""))
    knowledge = compare.Knowledge(regraded, bench.question_files(suite, change.files or ()))
    return compare.compare_suite(path, suite.name, runs.head[path], side, knowledge)


def _warnings(found: Discovery, suites: Mapping[str, Suite]) -> tuple[Fault, ...]:
    broken = (fault for suite in found.untouched_broken for fault in suite.faults)
    return (*broken, *(warning for suite in suites.values() for warning in suite.warnings))
