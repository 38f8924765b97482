"""The order of things and nothing else: from a job to a review."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Protocol

from agentevals_action.baselines.base import Baseline
from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.execution.resample import Keys
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.model.comparison import ChangedFile, Review, Selection
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantines
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review import base_tree, gate, waivers
from agentevals_action.review import selection as discover
from agentevals_action.review.comparison import compare, compare_runs
from agentevals_action.review.comparison.confirmation import Sampler
from agentevals_action.review.selection import Change, Discovery
from agentevals_action.settings import Settings
from agentevals_action.system import signals
from agentevals_action.system.git import GitRepository


class Bench(Protocol):
    """Where suites are read and run, head's and base's in one pool."""

    @property
    def suites(self) -> Sequence[Suite | BrokenSuite]:
        """Every suite of head's tree."""
        ...

    def refusals(self, suite: Suite) -> Sequence[Diagnostic]:
        """What makes running a suite pointless: a variable that a target of its tests needs and
        that is not set."""
        ...

    def base_suites(self, root: Path) -> Sequence[Suite | BrokenSuite]:
        """Every suite of the base's tree; InvalidInput when they cannot be told."""
        ...

    def baseline(
        self, base: base_tree.Base, root: Path | None, suites: Sequence[Suite | BrokenSuite]
    ) -> Baseline:
        """Where the base's results come from."""
        ...

    async def announce(self, suites: Sequence[Suite], sides: int) -> None:
        """Says what is about to be run, on so many sides."""
        ...

    async def run(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        """Runs suites of head."""
        ...

    async def regrade(
        self, suite: Suite, base: Mapping[str, TestResult]
    ) -> Mapping[str, TestResult]:
        """The base's answers, by test id, graded by head's evaluators."""
        ...

    def certain(self, suite: Suite) -> Set[str]:
        """The tests of which one sample tells all, since nothing in them can come out otherwise."""
        ...

    def sampler(
        self, keys: Keys, heads: Mapping[str, Suite], root: Path | None, bases: Mapping[str, Suite]
    ) -> Sampler:
        """What runs these tests (suite's path on head, test id) again; `root` is the base's tree,
        `bases` its suites by path on head."""
        ...

    def keep(self, head: Sequence[SuiteRun], base: Sequence[SuiteRun], grown: bool) -> None:
        """Leaves what is decided by in the files of results, also where it has `grown` since it was
        run; OutputError when others changed them meanwhile."""
        ...

    def quarantines(self, root: Path | None, by_base: bool) -> Quarantines:
        """What is in quarantine by head's tree and, with `by_base`, the base's (`root`, None where
        it could not be had)."""
        ...

    def question_files(
        self, suite: Suite, changed: Sequence[ChangedFile]
    ) -> Mapping[str, Sequence[str]]:
        """Changed files that the tests' questions hold, by test id."""
        ...

    async def close(self) -> None:
        """Frees connections."""
        ...


@dataclass(frozen=True)
class _Sides:
    """The base (`root` is its tree, None when there is none), what suites it has, and the change
    from it to head."""

    base: base_tree.Base
    root: Path | None
    suites: Sequence[Suite | BrokenSuite]
    change: Change


@dataclass(frozen=True)
class _Asked:
    """The suites that run on head, why, and what there is of them on base."""

    selections: Sequence[Selection]
    suites: Mapping[str, Suite]
    sides: _Sides

    @property
    def root(self) -> Path | None:
        return self.sides.root

    def bases(self) -> dict[str, Suite]:
        """The base's suites, where they are whole, by their path on head."""
        there = {suite.path: suite for suite in self.sides.suites if isinstance(suite, Suite)}
        pairs = (
            (selection.path, there.get(selection.base_path or selection.path))
            for selection in self.selections
        )
        return {path: suite for path, suite in pairs if suite}


def review(
    job: Job, settings: Settings, repository: GitRepository, host: Host, bench: Bench
) -> Review:
    """Finds what the change touches, runs it on both sides, compares and decides; raises when there
    is nothing sound to review."""
    started = monotonic()
    head = base_tree.check_head(repository, job)
    everything = bench.suites
    with _base_tree(repository, base_tree.resolve_base(repository, job, head, host.merge_base)) as (
        base,
        root,
    ):
        try:
            there = bench.base_suites(root) if root else ()
        except InvalidInput as error:  # what base's suites are cannot be told: taken for none, every regression would be a new test
            base, root, there = (
                replace(base, problem="; ".join((*error.errors, str(error)))),
                None,
                (),
            )
        if not everything:
            raise InvalidInput(
                "there is no suite in this repository",
                "write an EVAL.yaml, or mend `suites` and `working-directory`",
            )
        change = _change(
            job,
            _files(job, repository, host, base, head),
            (repository.root, *((root,) if root else ())),
            there,
        )
        return _review(job, settings, host, bench, _Sides(base, root, there, change), started)


def _review(
    job: Job, settings: Settings, host: Host, bench: Bench, sides: _Sides, started: float
) -> Review:
    everything, base, change = bench.suites, sides.base, sides.change
    found = discover.select_suites(everything, change, settings.watch)
    suites, refusals = _ready(found, everything, bench, job)
    selections = tuple(selection for selection in found.selections if selection.path in suites)
    baseline = bench.baseline(base, sides.root, sides.suites)
    caution = compare_runs.Caution(settings.confirm, settings.alpha)
    runs = signals.run(_run(bench, baseline, _Asked(selections, suites, sides), caution))
    names = {path: suite.name for path, suite in suites.items()}
    compared = compare_runs.compared(
        runs, selections, names, lambda path: bench.question_files(suites[path], change.files or ())
    )
    # On a push the change is on its branch already, and what stands there holds.
    quarantines = bench.quarantines(
        sides.root, by_base=job.event != "push" and bool(base.sha or base.problem)
    )
    acceptance = (
        host.acceptance(settings.accept_label) if waivers.wants_acceptance(compared) else None
    )
    compared = waivers.apply(compared, quarantines, acceptance)
    invalid = (
        *(diagnostic for suite in found.touched_broken for diagnostic in suite.errors),
        *refusals,
        *quarantines.errors,
    )
    policy = gate.Policy(
        settings.fail_on or job.fail_on,
        settings.min_pass_rate,
        settings.on_inconclusive,
        settings.accept_label,
    )
    decision = gate.decide(policy, compared, runs.base.info, invalid)
    return Review(
        head_sha=job.head_sha,
        base_sha=base.sha,
        decision=decision,
        selections=selections,
        suites=compared,
        baseline=runs.base.info,
        invalid=invalid,
        warnings=(*_warnings(found, suites), *_of_quarantines(quarantines, everything)),
        gone_suites=found.gone,
        suites_in_repository=len(everything),
        samples=settings.samples,
        duration_ms=(monotonic() - started) * 1000,
    )


def refused(job: Job, reasons: Sequence[str]) -> Review:
    """The review of a job that means nothing."""
    return Review(head_sha=job.head_sha, base_sha=None, decision=gate.invalid(reasons))


def broken_off(job: Job, settings: Settings, reasons: Sequence[str]) -> Review:
    """The review of a job that could not be brought to its end, whatever its change is like."""
    return Review(
        head_sha=job.head_sha,
        base_sha=None,
        decision=gate.inconclusive(reasons, settings.on_inconclusive),
    )


@contextmanager
def _base_tree(
    repository: GitRepository, base: base_tree.Base
) -> Iterator[tuple[base_tree.Base, Path | None]]:
    """The base with its tree; a tree that cannot be had is the base's problem, no end of the
    review."""
    with ExitStack() as opened:
        root = None
        if base.sha is not None:
            try:
                root = opened.enter_context(base_tree.base_worktree(repository, base.sha))
            except GitError as error:
                base = replace(base, problem=error.sentence)
        yield base, root


def _files(
    job: Job, repository: GitRepository, host: Host, base: base_tree.Base, head: str
) -> Sequence[ChangedFile] | None:
    files = host.changed_files()
    if files is None and base.sha is not None:
        return repository.changed_files(base.sha, None if job.event == "local" else head)
    return files


def _change(
    job: Job,
    files: Sequence[ChangedFile] | None,
    roots: Sequence[Path],
    there: Sequence[Suite | BrokenSuite],
) -> Change:
    """The change with what base knows of it: what only base's suites name, or were, would be
    touched unseen."""
    now = {
        file.previous_path: file.path
        for file in files or ()
        if file.previous_path and file.status == "renamed"
    }
    paths = [path for file in files or () for path in (file.path, file.previous_path) if path]
    return Change(
        files,
        everything=job.select == "all",
        base_suites=tuple(suite.path for suite in there),
        base_files={now.get(suite.path, suite.path): suite.files for suite in there},
        links=base_tree.links_among(paths, roots),
    )


def _ready(
    found: Discovery, everything: Sequence[Suite | BrokenSuite], bench: Bench, job: Job
) -> tuple[dict[str, Suite], list[Diagnostic]]:
    """The selected suites that can run, and why others cannot. Without secrets they run all the
    same: their tests say what is missing."""
    by_path = {suite.path: suite for suite in everything if isinstance(suite, Suite)}
    ready: dict[str, Suite] = {}
    errors: list[Diagnostic] = []
    for selection in found.selections:
        refusals = () if job.without_secrets else bench.refusals(by_path[selection.path])
        errors.extend(refusals)
        if not refusals:
            ready[selection.path] = by_path[selection.path]
    return ready, list(dict.fromkeys(errors))


async def _run(
    bench: Bench, baseline: Baseline, asked: _Asked, caution: compare_runs.Caution
) -> compare_runs.Runs:
    try:
        await bench.announce(tuple(asked.suites.values()), 2 if baseline.reruns else 1)
        async with asyncio.TaskGroup() as tasks:
            on_head = tasks.create_task(_of_head(bench, asked.suites))
            on_base = tasks.create_task(baseline.results(asked.selections))
        head, base = on_head.result(), on_base.result()
        regraded = {}
        for path, run in base.suites.items():
            if again := _to_regrade(head[path], run):
                regraded[path] = await bench.regrade(asked.suites[path], again)
        runs = compare_runs.Runs(head, base, regraded)
        told = await compare_runs.confirmed(
            runs,
            asked.selections,
            caution,
            certain=lambda path: bench.certain(asked.suites[path]),
            sampler=lambda keys: bench.sampler(keys, asked.suites, asked.root, asked.bases()),
        )
        bench.keep(
            tuple(told.head.values()), tuple(told.base.suites.values()), grown=bool(told.evidence)
        )
        return told
    finally:
        await bench.close()


async def _of_head(bench: Bench, suites: Mapping[str, Suite]) -> dict[str, SuiteRun]:
    return {run.path: run for run in await bench.run(tuple(suites.values()))}


def _to_regrade(head: SuiteRun, base: SuiteRun) -> dict[str, TestResult]:
    there = {result.eval_id: result for result in base.results}
    pairs = ((result, there.get(result.eval_id)) for result in head.results)
    return {
        other.eval_id: other
        for result, other in pairs
        if other and compare.needs_regrading(result, other)
    }


def _of_quarantines(
    quarantines: Quarantines, everything: Sequence[Suite | BrokenSuite]
) -> tuple[Diagnostic, ...]:
    ids = (
        (suite.path, (test.id for test in suite.tests))
        for suite in everything
        if isinstance(suite, Suite)
    )
    unread = [suite.path for suite in everything if isinstance(suite, BrokenSuite)]
    return (
        *quarantines.warnings,
        *waivers.pending(quarantines),
        *waivers.unmatched(quarantines.head, ids, unread),
    )


def _warnings(found: Discovery, suites: Mapping[str, Suite]) -> tuple[Diagnostic, ...]:
    broken = (diagnostic for suite in found.untouched_broken for diagnostic in suite.errors)
    return (*broken, *(warning for suite in suites.values() for warning in suite.warnings))
