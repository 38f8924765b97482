"""The pipeline of a review, step by step: from an event and its settings to the decision."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from agentevals_action.baselines.base import Baseline
from agentevals_action.errors import GitError, InvalidInput, OutputError, unwrapped
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.judge_trees import needs_judge_tree
from agentevals_action.execution.resample import is_deterministic
from agentevals_action.formatting import list_paths, plural
from agentevals_action.github.events import Job
from agentevals_action.github.run_requests import run_command
from agentevals_action.github.runner import job_log
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantines
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.review import Review
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports import console
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.estimate import attempt_cost, estimate
from agentevals_action.review import gate, waivers
from agentevals_action.review.baseline_source import Around, find_baseline
from agentevals_action.review.change import base_tree
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.change.selection import (
    Change,
)
from agentevals_action.review.change.workspace import HEAD_RESULTS
from agentevals_action.review.comparison import compare_runs
from agentevals_action.review.comparison.compare_runs import Runs
from agentevals_action.review.comparison.decision_rule import Key, require_decidable
from agentevals_action.review.decisive import Decisive, Head, read_decisive
from agentevals_action.review.request import ReviewRequest, Suites
from agentevals_action.review.run_sides import Sides
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import (
    Checkout,
    distinct_errors,
    load_all,
    suite_paths,
)
from agentevals_action.suites.configuration_file import with_configuration
from agentevals_action.system.git import GitRepository
from agentevals_action.system.redaction import redact, redact_record
from agentevals_action.targets.calls.reply_store import check_cache

T = TypeVar("T")


async def review(request: ReviewRequest) -> Review:
    """Reviews a change: finds the affected suites, runs them on head and base, compares the results
    and decides. The review contains no secrets. Raises AgentEvalsError when nothing can be
    reviewed."""
    async with open_change(request) as change:
        baseline = await change.find_baseline()
        runs = await change.run(_run(change, baseline))
        return await asyncio.to_thread(change.decide, runs)


@dataclass(frozen=True)
class OpenChange:
    """A change with the trees of head and base, ready to run. `last_cost` is the mean cost of an
    attempt in the last run (US dollars), `started` a time of the monotonic clock."""

    request: ReviewRequest
    engine: Engine
    decisive: Decisive
    sides: Sides
    last_cost: float | None
    started: float

    async def find_baseline(self, around: Around | None = None) -> Baseline:
        """The source of base's results; `around` may replace a source by its name."""
        request = self.request
        return await find_baseline(
            request.settings,
            self.decisive.base,
            self.decisive.plan.base.values(),
            self.sides,
            request.repository,
            request.data_branch,
            around,
        )

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs to the end, then closes the engine. The results of the tests that are finished are
        written if a signal ends it."""
        try:
            with unwrapped():
                return await work
        except asyncio.CancelledError:
            await asyncio.to_thread(self.sides.write_finished)
            raise
        finally:
            await self.engine.close()

    def decide(self, runs: Runs, problems: Sequence[str] = ()) -> Review:
        """The review of the results, which are written. `problems` are sentences about results that
        cannot be used; they make a pass inconclusive."""
        on_inconclusive = self.request.settings.on_inconclusive
        reviewed = _decide(self.request, self.decisive, runs, self.engine.fingerprints)
        written = self.sides.write_results(runs)
        problems = (*problems, *written.problems)
        decision = gate.with_problems(reviewed.decision, problems, on_inconclusive)
        notices = (*reviewed.notices, *self.notices(), *written.notices)
        duration_ms = (monotonic() - self.started) * 1000
        complete = replace(reviewed, decision=decision, notices=notices, duration_ms=duration_ms)
        return redact_record(complete, self.sides.redactor)

    def notices(self) -> tuple[str, ...]:
        """What a reader of the run must know, in sentences."""
        differing = _differing_notice(self.request.job, self.decisive.differing)
        return (*filter(None, [differing]), *self.engine.notices)


@asynccontextmanager
async def open_change(request: ReviewRequest) -> AsyncIterator[OpenChange]:
    """Finds what a change affects and what decides about it, before any of its programs starts.
    Raises AgentEvalsError when nothing can be reviewed."""
    started, inputs, job = monotonic(), request.settings, request.job
    settings = await asyncio.to_thread(with_configuration, inputs, request.repository.root)
    workspace = replace(request.workspace, settings=settings)
    request = replace(request, workspace=workspace)
    is_commit = job.event != "local"
    checkout = await Checkout.at(
        workspace.folder, settings, request.repository, is_commit=is_commit
    )
    require_decidable(settings.samples, settings.confirm, settings.alpha)
    await check_cache(settings, workspace.folder, workspace.environ)
    last_cost = await asyncio.to_thread(attempt_cost, workspace.report / HEAD_RESULTS)
    with suppress(OutputError):  # reported when the results are written, after the decision
        await asyncio.to_thread(workspace.make_report_folder)
    paths = await asyncio.to_thread(suite_paths, checkout, settings)
    suites: Suites = await asyncio.to_thread(
        load_all, checkout, settings, paths, workspace.folder, workspace.environ
    )
    log = partial(job_log.folded, redact=redact, in_actions=workspace.in_actions)
    async with open_engine(
        settings, workspace.environ, workspace.folder, isolation=request.isolation, log=log
    ) as engine:
        redactor = engine.redactor(suite for suite in suites if isinstance(suite, Suite))
        head_sha = await base_tree.check_head(request.repository, job)
        async with _open_base(request, inputs, head_sha) as base, AsyncExitStack() as judged:
            head = Head(head_sha, checkout, suites)
            decisive = await read_decisive(request, engine, head, base)
            await _open_judge_trees(judged, request, engine, decisive)
            with show_progress() as progress:
                sides = Sides(engine, workspace, decisive.base.root, redactor, progress)
                yield OpenChange(request, engine, decisive, sides, last_cost, started)


def _decide(
    request: ReviewRequest, decisive: Decisive, runs: Runs, fingerprints: Fingerprints
) -> Review:
    settings, plan, selected = request.settings, decisive.plan, decisive.selected
    quarantines, acceptance, suites = decisive.quarantines, decisive.acceptance, decisive.suites
    question_files = _changed_question_files(plan.head, decisive.change, fingerprints)
    compared = compare_runs.compare_suites(runs, plan.selections, question_files, decisive.edits)
    refusal = ""
    if acceptance and acceptance.problem:
        refusal = acceptance.problem if waivers.needs_acceptance(compared) else ""
        acceptance = None
    compared = waivers.apply(compared, quarantines, acceptance)
    policy = gate.Policy(
        request.fail_on,
        settings.min_pass_rate,
        settings.on_inconclusive,
        settings.accept_label,
        settings.untouched,
    )
    invalid = (*distinct_errors(selected.broken), *plan.missing, *quarantines.errors)
    decision = gate.decide(policy, compared, runs.base.info, invalid)
    if request.job.without_secrets:
        decision = gate.with_action(decision)
    asked = ""
    if decision.conclusion == gate.ACTION_REQUIRED:
        asked = (
            "a person with write access who has read the change can request a run with keys: "
            f"comment `{run_command(request.job.head_sha)}`"
        )
    return Review(
        head_sha=request.job.head_sha,
        base_sha=decisive.base.sha,
        decision=decision,
        selections=plan.selections,
        suites=compared,
        baseline=runs.base.info,
        invalid=invalid,
        warnings=(
            *distinct_errors(selected.unaffected),
            *(warning for suite in plan.head.values() for warning in suite.warnings),
            *_quarantine_warnings(quarantines, suites),
        ),
        gone_suites=selected.gone,
        suites_in_repository=len(suites),
        notices=(*decisive.notices, *filter(None, [refusal, asked])),
        samples=settings.samples,
        uncommitted=decisive.uncommitted,
        template=decisive.template,
    )


def invalid_review(job: Job, reasons: Sequence[str]) -> Review:
    """The review of a job with invalid inputs."""
    return Review(head_sha=job.head_sha, base_sha=None, decision=gate.invalid_decision(reasons))


def inconclusive_review(job: Job, reasons: Sequence[str], on_inconclusive: str) -> Review:
    """The review of a job that could not be completed."""
    decision = gate.inconclusive_decision(reasons, on_inconclusive)
    return Review(head_sha=job.head_sha, base_sha=None, decision=decision)


# Head, base and the change between them


@asynccontextmanager
async def _open_base(
    request: ReviewRequest, inputs: Settings, head_sha: str
) -> AsyncIterator[Base]:
    """The base with its worktree and suites; `inputs` are without head's `.agentevals.yaml`. A
    failure is the base's problem and does not end the review."""
    repository = request.repository
    base = await base_tree.resolve_base(repository, request.job, head_sha, request.host.merge_base)
    async with AsyncExitStack() as opened:
        if base.sha is not None:
            try:
                user = request.isolation.base
                worktree = base_tree.base_worktree(repository, base.sha, user=user)
                root = await opened.enter_async_context(worktree)
                base = await _with_suites(request, inputs, replace(base, root=root), root)
            except GitError as error:
                base = replace(base, problem=error.sentence)
            except InvalidInput as error:
                # With no suites on base, every regression would be a new test.
                base = replace(base, problem="; ".join((*error.errors, str(error))))
        yield base


async def _with_suites(request: ReviewRequest, inputs: Settings, base: Base, root: Path) -> Base:
    """Base with all its suites, none if the working directory is new. Raises InvalidInput.

    Attack: the change removes from `.agentevals.yaml` what covers its own files, so base's own file
    decides which suites base has, and its rules of `watch` hold, too."""
    settings, environ = request.settings, request.workspace.environ
    with suppress(InvalidInput):  # head's corrects it
        settings = await asyncio.to_thread(with_configuration, inputs, root)
    repository = GitRepository(root, environ=environ)
    if not (root / settings.working_directory).is_dir():
        return replace(base, tracked=(await repository.listing()).tracked)
    checkout = await Checkout.at(root, settings, repository, is_commit=True)
    paths = await asyncio.to_thread(suite_paths, checkout, settings)
    suites = await asyncio.to_thread(load_all, checkout, settings, paths, root, environ)
    return replace(
        base,
        suites=suites,
        tracked=checkout.tracked,
        watch=settings.watch_rules,
    )


async def _open_judge_trees(
    opened: AsyncExitStack, request: ReviewRequest, engine: Engine, decisive: Decisive
) -> None:
    """Checks out the commit of each side from which a judge may run once more, in the container.
    Raises GitError."""
    base, plan, repository = decisive.base, decisive.plan, request.repository
    if request.isolation.judge is None:
        return
    sides = [(repository.root, decisive.head_sha, plan.head), (base.root, base.sha, plan.base)]
    for root, sha, suites in sides:
        if root and sha and any(map(needs_judge_tree, suites.values())):
            tree = await opened.enter_async_context(base_tree.judge_tree(repository, sha))
            engine.judge_trees.add(root, tree)


# Runs, scores and confirmation


async def _run(change: OpenChange, baseline: Baseline) -> Runs:
    """Runs head and base, and compares them."""
    plan, sides = change.decisive.plan, change.sides

    if plan.head:
        on_base = plan.base if baseline.reruns else {}
        settings = change.request.settings
        attempts = settings.samples * sum(
            len(suite.tests) for suite in (*plan.head.values(), *on_base.values())
        )
        sentence = estimate(attempts, change.last_cost, settings.max_cost_usd)
        console.print_sentences([sentence], sys.stderr)
    return await compare_sides(change, baseline, partial(sides.run_head, plan.head))


async def compare_sides(
    change: OpenChange,
    baseline: Baseline,
    run_head: Callable[[], Coroutine[Any, Any, Mapping[str, SuiteRun]]],
) -> Runs:
    """The results of head and base. Scores the answers of each side with the other side's
    evaluators if these changed, and confirms the verdicts that fell and the tests that block."""
    plan, edits, sides = change.decisive.plan, change.decisive.edits, change.sides
    settings, fail_on = change.request.settings, change.request.fail_on
    async with asyncio.TaskGroup() as tasks:
        base = tasks.create_task(baseline.results(plan.selections))
        head = tasks.create_task(run_head())
    runs = Runs(head.result(), base.result())
    to_regrade = compare_runs.tests_to_regrade(runs)
    runs = replace(runs, regraded=await sides.regrade(plan.head, to_regrade))
    to_score = compare_runs.tests_to_score_by_base(runs, edits)
    runs = replace(runs, by_base=await sides.score_by_base(plan.base, to_score, edits))
    falls = compare_runs.find_falls(runs, plan.selections)
    blocking = compare_runs.failing_tests(runs, fail_on) if settings.confirm else []
    paths = {path for path, _ in (*(one.key for one in falls), *blocking)}
    deterministic = _deterministic_tests(
        {path: plan.head[path] for path in paths}, sides.engine.replays
    )
    suspects = [replace(one, deterministic=one.key in deterministic) for one in falls]
    failing = [key for key in blocking if key not in deterministic]
    if not suspects and not failing:
        return runs
    base_results = compare_runs.base_results(runs)
    evidence, of_failing = await sides.confirm(
        suspects, failing, base_results, plan.head, plan.base, settings
    )
    return compare_runs.with_evidence(runs, evidence, of_failing)


def _deterministic_tests(suites: Mapping[str, Suite], replays: bool) -> frozenset[Key]:
    """The deterministic tests of these suites: in a replay, all."""
    return frozenset(
        (path, test.id)
        for path, suite in suites.items()
        for test in suite.tests
        if replays or is_deterministic(suite, test)
    )


# Comparison and waivers


def _changed_question_files(
    suites: Mapping[str, Suite], change: Change, fingerprints: Fingerprints
) -> dict[str, dict[str, list[str]]]:
    """The changed files that are part of a question, by suite and test id."""
    changed = {file.path for file in change.files or ()}
    found: dict[str, dict[str, list[str]]] = {}
    for path, suite in suites.items():
        if changed.isdisjoint(file.path for file in suite.files):
            continue
        for test in suite.tests:
            files = fingerprints.question_files(suite, test)
            if in_question := [file for file in files if file in changed]:
                found.setdefault(path, {})[test.id] = in_question
    return found


def _differing_notice(job: Job, names: Sequence[str]) -> str:
    """The tracked files of suites that differ from the commit, in a sentence; empty if there are
    none. A local review is of the working tree."""
    if job.event == "local" or not names:
        return ""
    return (
        f"{list_paths(names)} {plural(len(names), 'differs', 'differ')} from the commit: "
        "the review is of what was on disk when this step started"
    )


def _quarantine_warnings(quarantines: Quarantines, suites: Suites) -> tuple[Diagnostic, ...]:
    ids = (
        (suite.path, (test.id for test in suite.tests))
        for suite in suites
        if isinstance(suite, Suite)
    )
    unread = [suite.path for suite in suites if isinstance(suite, BrokenSuite)]
    return (
        *quarantines.warnings,
        *waivers.not_on_base(quarantines),
        *waivers.without_tests(quarantines.head, ids, unread),
    )
