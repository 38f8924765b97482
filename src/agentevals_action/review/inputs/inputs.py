"""The inputs of a run: base, affected suites, edits, waivers, template. They are read before the
first program of the change starts."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.execution.edits import find_edits
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.secrets import keeping_secrets
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.result import JudgeRecord, Key, TestResult
from agentevals_action.model.run import Level, Run, RunSuite, RunVariant, SuiteEdits, notes
from agentevals_action.model.suite import Suite
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.results.shards import digest_of_inputs
from agentevals_action.review.comparison import waivers
from agentevals_action.review.comparison.decision_rule import require_decidable
from agentevals_action.review.inputs import base_tree
from agentevals_action.review.inputs.base_rules import (
    choose_judge_rule,
    choose_quarantines,
    choose_template,
    read_permissions,
)
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.changed_files import Head, read_change
from agentevals_action.review.inputs.notices import find_notices
from agentevals_action.review.inputs.plan import (
    Plan,
    find_plan,
    leave_out_unusable,
    part_of_shard,
    select_tests,
)
from agentevals_action.review.inputs.request import ReviewRequest, Suites
from agentevals_action.review.inputs.selection import Change, select_suites
from agentevals_action.runners.suites import files_of_all, load_suites
from agentevals_action.suites.checkout import (
    Checkout,
    check_inputs,
    distinct_errors,
    no_suite,
    require_valid,
)
from agentevals_action.suites.configuration_file import ConfigurationFile, read_configuration
from agentevals_action.system.files.packages import MANIFESTS, PackageFolder, find_packages
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.calls.reply_store import check_cache
from agentevals_action.targets.variables import Variables, read_variables


@dataclass(frozen=True)
class ReviewInputs:
    """All inputs of the decision except the results. They are read before the first program of the
    change starts.

    Targets may name the variables that `permissions` allow. `part` is the plan, or that of a shard;
    `kept` are its results that stay from an earlier run. `suites` are all suites of head,
    `edits` the edits of each suite on both sides, `packages` the Python packages of each tree.
    `facts` are known before the run, `judge_rule` states which judges decide."""

    request: ReviewRequest
    base: Base
    permissions: Permissions | None
    fingerprints: Fingerprints
    part: Plan
    kept: Mapping[Key, TestResult]
    suites: Suites
    edits: Mapping[str, SuiteEdits]
    facts: Run
    packages: Mapping[Path, Sequence[PackageFolder]]
    judge_rule: JudgeRule


@asynccontextmanager
async def open_inputs(request: ReviewRequest) -> AsyncIterator[ReviewInputs]:
    """The inputs with the trees of head and base, before a program of the change starts. Raises
    AgentEvalsError when nothing can be reviewed."""
    started, given = datetime.now(UTC), request.settings
    root = request.repository.root if request.repository else request.workspace.folder
    configuration = await asyncio.to_thread(read_configuration, root)
    workspace = replace(request.workspace, settings=configuration.complete(given))
    request = replace(request, workspace=workspace)
    head = await _read_head(request, configuration)
    environ, named = workspace.environ, workspace.settings.env
    variables = cache(partial(read_variables, environ))
    valid = [suite for suite in head.suites if isinstance(suite, Suite)]
    with keeping_secrets(valid, variables, environ, named):
        async with base_tree.open_base(request, given, head.commit) as base:
            if request.job.base.kind == "stored":
                base = Base(suites=tuple(head.suites))
            has_base = request.job.base.kind != "none"
            head, base = await asyncio.to_thread(leave_out_unusable, head, base, has_base=has_base)
            inputs = await _read_inputs(request, head, base, variables, started)
            # Not before the inputs are read: an invalid input removes no earlier report.
            with suppress(OutputError):  # reported when the results are written
                keeps = bool(request.run)
                await asyncio.to_thread(workspace.make_report_folder, keeps_results=keeps)
            yield inputs


async def _read_head(request: ReviewRequest, configuration: ConfigurationFile) -> Head:
    """The tree under test. InvalidInput if the inputs or, for the command `run`, a suite cannot be
    used."""
    workspace, repository, run = request.workspace, request.repository, request.run
    folder, settings, environ = workspace.folder, workspace.settings, workspace.environ
    is_commit = request.job.event != "local"
    checkout = await Checkout.at(
        folder, settings, configuration, environ, repository, is_commit=is_commit
    )
    require_decidable(settings.samples, settings.confirm, request.policy.level)
    if settings.min_pass_all is not None and settings.samples == 1:
        raise InvalidInput(
            "the input `min-pass-all` needs several samples of each test, and `samples` is 1",
            "raise `samples`, or write `min-pass-rate`",
        )
    await check_cache(settings, folder, environ)
    loaded = await asyncio.to_thread(load_suites, checkout, run.paths if run else ())
    covered = await asyncio.to_thread(files_of_all, loaded)
    suites: Suites = loaded.suites
    check_inputs(checkout, suites)
    if run or not suites:
        valid = require_valid(suites, loaded.errors)
        suites = run.arms(valid) if run else valid
    head = Head(checkout, suites, covered, loaded.errors, loaded.warnings)
    if repository is None or not request.job.head_sha:
        return head
    return replace(
        head,
        commit=await base_tree.check_head(repository, request.job),
        uncommitted=await _find_uncommitted(request, checkout),
        workflow=workspace.workflow,
    )


async def _read_inputs(
    request: ReviewRequest, head: Head, base: Base, variables: Variables, started: datetime
) -> ReviewInputs:
    """Reads what decides. Raises AgentEvalsError when nothing can be reviewed."""
    job, run, settings, checkout = request.job, request.run, request.settings, head.checkout
    if not head.suites:
        deleted = [suite.path for suite in base.suites]
        raise await asyncio.to_thread(no_suite, checkout, deleted, head.warnings)
    commit = None if job.event == "local" else head.commit
    change = await read_change(head, base, commit, everything=job.select == "all")
    template, notices = await choose_template(checkout, base, job.event)
    judges = await choose_judge_rule(checkout, base, job.event)
    if run and judges.errors:
        problem = "the calibration of the judges is invalid, nothing was run"
        raise InvalidInput(problem, errors=tuple(map(str, judges.errors)))
    acceptance = None
    if settings.shard is None:  # the merge asks
        acceptance = await asyncio.to_thread(request.host.acceptance, settings.accept_label)
    facts = Run(
        head_sha=job.head_sha,
        base_sha=base.sha,
        commit=head.commit,
        time=started.isoformat(timespec="milliseconds"),
        shard=settings.shard,
        policy=request.policy,
        samples=settings.samples,
        notes=(
            *notes(Level.ERROR, judges.errors),
            *notes(Level.WARNING, judges.warnings),
            *notes(Level.PROBLEM, filter(None, [judges.problem])),
            *notes(Level.NOTICE, (*notices, *await _notices_about_report(request))),
        ),
        suites_in_repository=len(head.suites),
        quarantines=await choose_quarantines(checkout, base, job.event),
        acceptance=acceptance,
        uncommitted=head.uncommitted,
        test_globs=run.globs if run else (),
        template=template,
    )
    return await asyncio.to_thread(
        _select, request, head, base, change, variables, facts, judges.rule
    )


def _select(
    request: ReviewRequest,
    head: Head,
    base: Base,
    change: Change,
    variables: Variables,
    facts: Run,
    rule: JudgeRule,
) -> ReviewInputs:
    """The inputs of a change: what runs, and what is known about it before. `facts` and `rule` do
    not depend on the change. Raises AgentEvalsError when nothing can be reviewed."""
    run, settings = request.run, request.settings
    selected = select_suites(head.suites, change)
    if selected.is_empty and settings.untouched == "all":
        change = replace(change, everything=True)
        selected = select_suites(head.suites, change)
    permissions = None
    if request.job.pull is not None:
        permissions = read_permissions(head.checkout, base)
    plan = find_plan(selected, head.suites, base, request, variables)
    if run:
        plan = select_tests(run, plan, facts.quarantines)
    part = part_of_shard(plan, settings.shard) if settings.shard else plan
    fingerprints = Fingerprints(settings.watch_rules, variables, change.tracked)
    edits = {
        path: find_edits(fingerprints, plan.head[path], on_base)
        for path, on_base in plan.base.items()
    }
    running = plan.head.values()
    # A suite that base has and that head's files only warn about has lost its skill, or its agent.
    lost = [warning for warning in head.warnings if warning.location.path in selected.gone]
    errors = (
        *head.errors,
        *lost,
        *distinct_errors(selected.broken),
        *plan.missing,
        *facts.quarantines.errors,
    )
    warnings = (
        *(warning for warning in head.warnings if warning not in lost),
        *distinct_errors(selected.unaffected),
        *(warning for suite in running for warning in suite.warnings),
        *facts.quarantines.warnings,
        *waivers.not_on_base(facts.quarantines),
    )
    first_notes = (
        *notes(Level.ERROR, errors),
        *notes(Level.WARNING, warnings),
        *notes(Level.NOTICE, find_notices(request, head, base, change, running)),
    )
    facts = facts.model_copy(
        update={
            "inputs": digest_of_inputs(settings, running),
            "suites": _run_suites(request, plan, edits, change, fingerprints, rule),
            "gone_suites": () if head.errors else selected.gone,  # else it is not known
            "notes": (*first_notes, *facts.notes),
        }
    )
    return ReviewInputs(
        request,
        base,
        permissions,
        fingerprints,
        part,
        run.resume(tuple(part.head.values()), fingerprints.of, rule) if run else {},
        head.suites,
        edits,
        facts,
        _find_packages(head, base),
        rule,
    )


def _find_packages(head: Head, base: Base) -> Mapping[Path, Sequence[PackageFolder]]:
    """The Python packages of both sides, without packages in templates of workspaces: copies of
    these run."""
    packages = {}
    of_head = head.checkout.root, head.checkout.tracked, head.suites
    for root, tracked, suites in (of_head, (base.root, base.tracked, base.suites)):
        if root:
            valid = [suite for suite in suites if isinstance(suite, Suite)]
            spaces = [test.workspace for suite in valid for test in suite.tests]
            templates = {space.template for space in spaces if space and space.template}
            packages[root] = find_packages(root, {*MANIFESTS, *tracked}, templates - {root})
    return packages


async def _find_uncommitted(request: ReviewRequest, checkout: Checkout) -> tuple[str, ...]:
    """The paths that differ from the commit, without the files that the program writes, and in a
    job without untracked files, which earlier steps of the job made."""
    repository = request.repository
    results_file, is_local = request.results_file.resolve(), request.job.event == "local"
    return tuple(
        path
        for path in (await repository.uncommitted() if repository else ())
        for file in [checkout.root / path]
        if not request.workspace.writes(file) and file != results_file
        if is_local or path in checkout.tracked
    )


def _run_suites(
    request: ReviewRequest,
    plan: Plan,
    edits: Mapping[str, SuiteEdits],
    change: Change,
    fingerprints: Fingerprints,
    rule: JudgeRule,
) -> tuple[RunSuite, ...]:
    """The suites that run, with the changed files that are part of a question. In a replay, each
    test gives the same result again, but those of runners."""
    changed, is_replay = {file.path for file in change.files or ()}, request.cache == "replay"
    return tuple(
        RunSuite(
            selection,
            suite.name,
            tuple(test.id for test in suite.tests),
            runner=suite.program,
            edits=edits.get(suite.path, SuiteEdits()).edits,
            question_files=fingerprints.describe(suite).question_files(changed),
            suite_question_files=fingerprints.describe(suite).suite_question_files(changed),
            variants=tuple(
                RunVariant(variant, tuple(test.id for test in suite.arm(variant).tests))
                for variant in suite.variants
            ),
            variant=suite.variant,
            steady=tuple(
                test.id for test in suite.tests if is_replay or suite.is_deterministic(test)
            ),
            comparing=tuple(test.id for test in suite.tests if test.comparing),
            judges_lost=tuple(
                sorted(
                    _deciding(plan.base.get(suite.path), fingerprints, rule)
                    - _deciding(suite, fingerprints, rule)
                )
            ),
        )
        for selection in plan.selections
        for suite in [plan.head[selection.path]]
    )


def _deciding(suite: Suite | None, fingerprints: Fingerprints, rule: JudgeRule) -> set[str]:
    """The names of the pairwise evaluators of a suite whose judges decide."""
    if suite is None or not rule.pairs:
        return set()
    return {
        judge.name
        for test in suite.tests
        for judge in test.comparing
        for key in [fingerprints.judge_key(suite, test, judge)]
        if not rule.why_pairs_advisory(JudgeRecord(key=key))
    }


async def _notices_about_report(request: ReviewRequest) -> Sequence[str]:
    """In a local run, that git would add the files of the report, which contain answers."""
    repository, folder = request.repository, request.settings.report_dir
    file = request.workspace.report / HEAD_RESULTS
    if request.job.event != "local" or not repository or await repository.ignores(file):
        return ()
    return (f"git does not ignore the report folder: `echo /{folder}/ >> .gitignore`",)
