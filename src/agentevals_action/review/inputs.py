"""The inputs of a run: base, affected suites, edits, waivers, template. They are read before the
first program of the change starts."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from agentevals_action.errors import GitError, InvalidInput, OutputError
from agentevals_action.execution.edits import find_edits
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.judge_trees import JudgeTrees, needs_judge_tree
from agentevals_action.execution.preparation import LogSection, Preparation
from agentevals_action.execution.secrets import keeping_secrets
from agentevals_action.formatting import list_paths
from agentevals_action.github.runner import job_log
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantines
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.run import CommentTemplate
from agentevals_action.model.suite import Suite
from agentevals_action.results.shards import divided_budget
from agentevals_action.review.change import base_tree
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.change.changed_files import find_change
from agentevals_action.review.change.comment_template import choose_template
from agentevals_action.review.change.selection import (
    Change,
    SelectedSuites,
    describe_uncovered,
    select_suites,
)
from agentevals_action.review.change.target_permissions import read_permissions
from agentevals_action.review.comparison.decision_rule import require_decidable
from agentevals_action.review.plan import Plan, find_plan, part_of_shard, select_tests
from agentevals_action.review.request import ReviewRequest, Suites
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import (
    Checkout,
    load_all,
    no_suite,
    require_valid,
    suite_paths,
)
from agentevals_action.suites.configuration_file import read_quarantines, with_configuration
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.git import GitRepository
from agentevals_action.system.redaction import redact
from agentevals_action.targets.calls.client import Variables
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.calls.reply_store import check_cache
from agentevals_action.targets.variables import read_variables


@dataclass(frozen=True)
class ReviewInputs:
    """All inputs of the decision except the results. They are read before the first program of the
    change starts.

    `uncommitted` are the paths that differ from the commit, `differing` those of them that the
    suites use. A shard runs a `part` of the plan, other runs all of it; `kept` are its results that
    stay from an earlier run. `variables` returns what `${{ }}` in targets may name, as far as the
    `permissions` allow it."""

    request: ReviewRequest
    variables: Variables
    permissions: Permissions | None
    fingerprints: Fingerprints
    head_sha: str
    base: Base
    suites: Suites
    change: Change
    selected: SelectedSuites
    plan: Plan
    part: Plan
    kept: Mapping[Key, TestResult]
    edits: Mapping[str, SuiteEdits]
    quarantines: Quarantines
    acceptance: Acceptance | None
    template: CommentTemplate | None
    uncommitted: tuple[str, ...]
    differing: Sequence[str]
    notices: Sequence[str]


@asynccontextmanager
async def open_inputs(request: ReviewRequest) -> AsyncIterator[ReviewInputs]:
    """The inputs with the trees of head and base, before a program of the change starts. Raises
    AgentEvalsError when nothing can be reviewed."""
    given, job = request.settings, request.job
    root = request.repository.root if request.repository else request.workspace.folder
    settings = await asyncio.to_thread(with_configuration, given, root)
    workspace = replace(request.workspace, settings=settings)
    request = replace(request, workspace=workspace)
    is_commit = job.event != "local"
    checkout = await Checkout.at(
        workspace.folder, settings, request.repository, is_commit=is_commit
    )
    require_decidable(settings.samples, settings.confirm, settings.alpha)
    await check_cache(settings, workspace.folder, workspace.environ)
    with suppress(OutputError):  # reported when the results are written
        await asyncio.to_thread(workspace.make_report_folder, keeps_results=bool(request.run))
    named = request.run.paths if request.run else ()
    paths = await asyncio.to_thread(suite_paths, checkout, settings, named)
    suites: Suites = await asyncio.to_thread(
        load_all, checkout, settings, paths, workspace.folder, workspace.environ
    )
    if request.run and suites:
        suites = require_valid(suites)
    environ, valid = workspace.environ, [suite for suite in suites if isinstance(suite, Suite)]
    variables = cache(partial(read_variables, environ))
    with keeping_secrets(valid, variables, environ, settings.env):
        head_sha = ""
        if request.repository and job.head_sha:
            head_sha = await base_tree.check_head(request.repository, job)
        async with _open_base(request, given, head_sha) as base:
            yield await _read_inputs(request, variables, checkout, suites, head_sha, base)


@asynccontextmanager
async def engine_of(inputs: ReviewInputs) -> AsyncIterator[Engine]:
    """The engine of a run, before a program of the change starts. Raises GitError."""
    request, plan = inputs.request, inputs.plan
    workspace, settings = request.workspace, request.settings
    children = ChildContext.from_environ(workspace.environ, settings.env, request.isolation)
    log = partial(job_log.folded, redact=redact, in_actions=workspace.in_actions)
    async with (
        _open_judge_trees(inputs) as judge_trees,
        open_engine(
            divided_budget(settings),
            workspace.folder,
            (*plan.head.values(), *plan.base.values()),
            children,
            inputs.variables,
            inputs.fingerprints,
            _preparation(inputs, children, log),
            judge_trees,
            cache=request.cache,
            permissions=inputs.permissions,
            keep=request.run.keep if request.run else None,
        ) as engine,
    ):
        yield engine


@asynccontextmanager
async def _open_base(
    request: ReviewRequest, inputs: Settings, head_sha: str
) -> AsyncIterator[Base]:
    """The base with its worktree and suites; `inputs` are without head's `.agentevals.yaml`. A
    failure is the base's problem and does not end the review."""
    repository, job = request.repository, request.job
    base = Base(reason=job.base.reason)
    if repository and job.base.kind != "none":
        base = await base_tree.resolve_base(repository, job, head_sha, request.host.merge_base)
    async with AsyncExitStack() as opened:
        if repository and base.sha is not None:
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


@asynccontextmanager
async def _open_judge_trees(inputs: ReviewInputs) -> AsyncIterator[JudgeTrees]:
    """Checks out the commit of each side from which a judge may run once more, in the container.
    Raises GitError."""
    request, base, plan = inputs.request, inputs.base, inputs.plan
    repository, trees = request.repository, dict[Path, Path]()
    async with AsyncExitStack() as opened:
        if request.isolation.judge and repository:
            head = repository.root, inputs.head_sha, plan.head
            for root, sha, suites in (head, (base.root, base.sha, plan.base)):
                if root and sha and any(map(needs_judge_tree, suites.values())):
                    tree = base_tree.judge_tree(repository, sha)
                    trees[root] = await opened.enter_async_context(tree)
        yield JudgeTrees(trees)


def _preparation(inputs: ReviewInputs, children: ChildContext, log: LogSection) -> Preparation:
    """Attack: `setup: npm ci` runs scripts of the pull request as root. It runs in base's tree."""
    settings, base = inputs.request.settings, inputs.base
    folder, obstacle = base.root or inputs.request.workspace.folder, ""
    if base.root is None and base.problem:
        obstacle = f"it runs in the tree of base, and {base.problem}"
    return Preparation(settings.setup, settings.prepare, folder, children, obstacle, log)


async def _read_inputs(
    request: ReviewRequest,
    variables: Variables,
    checkout: Checkout,
    suites: Suites,
    head_sha: str,
    base: Base,
) -> ReviewInputs:
    """Reads what decides, in the order that the attacks below require. Raises AgentEvalsError when
    nothing can be reviewed."""
    job, workspace, repository = request.job, request.workspace, request.repository
    settings = workspace.settings
    if not suites:
        raise no_suite(settings, [suite.path for suite in base.suites])
    uncommitted = await _uncommitted(request)
    tracked = await _tracked_files(repository, uncommitted, base, settings)
    fingerprints = Fingerprints(settings.watch_rules, variables, tracked)
    change, change_notices = await find_change(
        repository, job, head_sha, base, checkout, suites, settings
    )
    template, template_notices = await choose_template(
        settings, workspace.folder, job, repository, base
    )
    change, selected, uncovered = await asyncio.to_thread(_select, request, suites, change)
    permissions = read_permissions(base, settings, workspace.environ) if job.pull else None
    plan = await asyncio.to_thread(find_plan, selected, suites, base, request, variables)
    quarantines = await _read_quarantines(request, checkout, base)
    if request.run:
        plan = select_tests(request.run, plan, quarantines)
    part = part_of_shard(plan, settings.shard) if settings.shard else plan
    acceptance = None
    if settings.shard is None:  # the merge asks
        acceptance = await asyncio.to_thread(request.host.acceptance, settings.accept_label)
    named = {FILE, *(file.path for suite in plan.head.values() for file in suite.files)}
    return ReviewInputs(
        request=request,
        variables=variables,
        permissions=permissions,
        fingerprints=fingerprints,
        head_sha=head_sha,
        base=base,
        suites=suites,
        change=change,
        selected=selected,
        plan=plan,
        part=part,
        kept=request.run.resume(tuple(part.head.values()), fingerprints.of) if request.run else {},
        edits=await asyncio.to_thread(_find_edits, plan, fingerprints),
        quarantines=quarantines,
        acceptance=acceptance,
        template=template,
        uncommitted=uncommitted,
        differing=sorted(named.intersection(uncommitted) & checkout.tracked),
        notices=(
            *filter(None, [uncovered, _edited_replies(change, settings)]),
            *change_notices,
            *template_notices,
        ),
    )


async def _uncommitted(request: ReviewRequest) -> tuple[str, ...]:
    """The paths that differ from the commit, without the files that the program writes."""
    repository, output = request.repository, request.run.output if request.run else None
    if repository is None or not request.job.head_sha:
        return ()
    return tuple(
        path
        for path in await repository.uncommitted()
        for file in [repository.root / path]
        if not request.workspace.writes(file) and (output is None or file != output.resolve())
    )


async def _tracked_files(
    repository: GitRepository | None, uncommitted: Sequence[str], base: Base, settings: Settings
) -> Mapping[Path, Mapping[str, str]]:
    """The ids of the contents of the tracked files of both sides, if `watch` may match some."""
    if repository is None or not (settings.watch_rules or base.watch):
        return {}
    tracked = {repository.root: await repository.blobs(uncommitted)}
    if base.root is not None:
        tree = await GitRepository.open(base.root, environ=repository.environ)
        tracked[tree.root] = await tree.blobs(())
    return tracked


def _select(
    request: ReviewRequest, suites: Suites, change: Change
) -> tuple[Change, SelectedSuites, str]:
    """The change, the suites that it affects, and a sentence about changed files that no suite
    covers, empty if a suite is affected."""
    workspace, settings = request.workspace, request.settings
    affected = select_suites(suites, change, settings.watch_rules)
    if affected.is_empty and settings.untouched == "all":
        change = replace(change, everything=True)
        affected = select_suites(suites, change, settings.watch_rules)
    if not affected.is_empty:
        return change, affected, ""
    root = request.repository.root if request.repository else workspace.folder
    files = [file for file in change.files or () if not workspace.writes(root / file.path)]
    return change, affected, describe_uncovered(files, affected)


def _edited_replies(change: Change, settings: Settings) -> str:
    """The sentence about the stored replies that the change edits, empty if there are none."""
    if settings.cache != "replay":
        return ""
    folder = f"{settings.cache_dir}/"
    edited = [file.path for file in change.files or () if file.path.startswith(folder)]
    if not edited:
        return ""
    return f"the change edits stored replies, which decide about the outcome: {list_paths(edited)}"


def _find_edits(plan: Plan, fingerprints: Fingerprints) -> dict[str, SuiteEdits]:
    """The edits of each suite that both sides have, read before any program of the change runs."""
    return {
        path: find_edits(fingerprints, plan.head[path], base) for path, base in plan.base.items()
    }


async def _read_quarantines(request: ReviewRequest, checkout: Checkout, base: Base) -> Quarantines:
    """The quarantine of head and base. On a push the change is on its branch already, and the
    quarantine of head is in effect.

    Attack: an agent writes the file into both trees. It is read before a program runs, base's from
    the commit."""
    by_base = request.job.event != "push" and bool(base.sha or base.problem)
    content = None
    if request.repository and base.sha:
        content = await request.repository.show(base.sha, FILE) or b""
    today = datetime.now(UTC).date()
    return await asyncio.to_thread(read_quarantines, checkout.root, today, content, by_base=by_base)
