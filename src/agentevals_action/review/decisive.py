"""The inputs of the decision other than results: base, affected suites, edits, waivers, template.
They are read before the first program of the change starts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentevals_action.execution.edits import find_edits
from agentevals_action.execution.engine import Engine
from agentevals_action.formatting import list_paths
from agentevals_action.github.events import Job
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantines
from agentevals_action.model.review import CommentTemplate, Selection
from agentevals_action.model.suite import Suite
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
from agentevals_action.review.request import ReviewRequest, Suites
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import (
    Checkout,
    no_suite,
)
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.system.git import GitRepository


@dataclass(frozen=True)
class RunnableSuites:
    """What runs: the suites of head by path with the reasons, and the same suites on base by their
    path on head. `missing` are diagnostics of suites that cannot run."""

    selections: tuple[Selection, ...]
    head: Mapping[str, Suite]
    base: Mapping[str, Suite]
    missing: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Decisive:
    """What decides besides the results, read before the first program of the change starts.

    `uncommitted` are the paths that differ from the commit, `differing` those of them that the
    suites use."""

    head_sha: str
    base: Base
    suites: Suites
    change: Change
    selected: SelectedSuites
    plan: RunnableSuites
    edits: Mapping[str, SuiteEdits]
    quarantines: Quarantines
    acceptance: Acceptance | None
    template: CommentTemplate | None
    uncommitted: tuple[str, ...]
    differing: Sequence[str]
    notices: Sequence[str]


@dataclass(frozen=True)
class Head:
    """Head before its first program starts."""

    sha: str
    checkout: Checkout
    suites: Suites


async def read_decisive(request: ReviewRequest, engine: Engine, head: Head, base: Base) -> Decisive:
    """Reads what decides, in the order that the attacks below require. Raises AgentEvalsError when
    nothing can be reviewed."""
    job, workspace, repository = request.job, request.workspace, request.repository
    settings, checkout = workspace.settings, head.checkout
    if not head.suites:
        raise no_suite(settings, [suite.path for suite in base.suites])
    uncommitted = tuple(
        path
        for path in await repository.uncommitted(filters=request.isolation.head is None)
        if not workspace.writes(repository.root / path)
    )
    await _record_watched(engine, repository, uncommitted, base, settings)
    change, change_notices = await find_change(
        repository, job, head.sha, base, checkout, head.suites, settings
    )
    template, template_notices = await choose_template(
        settings, workspace.folder, job, repository, base
    )
    change, selected, uncovered = await asyncio.to_thread(_select, request, head.suites, change)
    _choose_setup_tree(engine, base)
    if job.pull is not None:
        engine.restrict(read_permissions(base, settings, workspace.environ))
    plan = await asyncio.to_thread(_plan, selected, head.suites, base, engine, job)
    quarantines = await _read_quarantines(request, checkout, base)
    acceptance = await asyncio.to_thread(request.host.acceptance, settings.accept_label)
    named = {FILE, *(file.path for suite in plan.head.values() for file in suite.files)}
    await asyncio.to_thread(engine.load, (*plan.head.values(), *plan.base.values()))
    return Decisive(
        head_sha=head.sha,
        base=base,
        suites=head.suites,
        change=change,
        selected=selected,
        plan=plan,
        edits=await asyncio.to_thread(_find_edits, plan, engine),
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


async def _record_watched(
    engine: Engine,
    repository: GitRepository,
    uncommitted: Sequence[str],
    base: Base,
    settings: Settings,
) -> None:
    """Gives the fingerprints what git knows of the files that `watch` may match on both sides."""
    if not settings.watch_rules and not base.watch:
        return
    engine.fingerprints.add_tree(repository.root, await repository.blobs(uncommitted))
    if base.root is not None:
        tree = await GitRepository.open(base.root, environ=repository.environ)
        engine.fingerprints.add_tree(tree.root, await tree.blobs(()))


def _select(
    request: ReviewRequest, suites: Suites, change: Change
) -> tuple[Change, SelectedSuites, str]:
    """The change, the suites that it affects, and a sentence about changed files that no suite
    covers, empty if a suite is affected."""
    workspace, root = request.workspace, request.repository.root
    settings = workspace.settings
    affected = select_suites(suites, change, settings.watch_rules)
    if affected.is_empty and settings.untouched == "all":
        change = replace(change, everything=True)
        affected = select_suites(suites, change, settings.watch_rules)
    if not affected.is_empty:
        return change, affected, ""
    files = [file for file in change.files or () if not workspace.writes(root / file.path)]
    return change, affected, describe_uncovered(files, affected)


def _choose_setup_tree(engine: Engine, base: Base) -> None:
    """Attack: `setup: npm ci` runs scripts of the pull request as root. It runs in base's tree."""
    if base.root is not None:
        engine.set_up_in(base.root)
    elif base.problem:
        engine.refuse_setup(f"it runs in the tree of base, and {base.problem}")


def _plan(
    selected: SelectedSuites, suites: Suites, base: Base, engine: Engine, job: Job
) -> RunnableSuites:
    """The selected suites that can run. A suite whose targets need an unset variable cannot, unless
    the job has no secrets: then its tests end in errors."""
    by_path = {suite.path: suite for suite in suites if isinstance(suite, Suite)}
    on_base = {suite.path: suite for suite in base.suites if isinstance(suite, Suite)}
    missing = {
        selection.path: engine.target_errors(by_path[selection.path])
        for selection in (() if job.without_secrets else selected.selections)
    }
    ready = tuple(one for one in selected.selections if not missing.get(one.path))
    base_paths = {one.path: one.base_path or one.path for one in ready}
    return RunnableSuites(
        ready,
        {one.path: by_path[one.path] for one in ready},
        {path: on_base[there] for path, there in base_paths.items() if there in on_base},
        tuple(dict.fromkeys(one for diagnostics in missing.values() for one in diagnostics)),
    )


def _edited_replies(change: Change, settings: Settings) -> str:
    """The sentence about the stored replies that the change edits, empty if there are none."""
    if settings.cache != "replay":
        return ""
    folder = f"{settings.cache_dir}/"
    edited = [file.path for file in change.files or () if file.path.startswith(folder)]
    if not edited:
        return ""
    return f"the change edits stored replies, which decide about the outcome: {list_paths(edited)}"


def _find_edits(plan: RunnableSuites, engine: Engine) -> dict[str, SuiteEdits]:
    """The edits of each suite that both sides have, read before any program of the change runs."""
    describe = engine.fingerprints
    return {path: find_edits(describe, plan.head[path], base) for path, base in plan.base.items()}


async def _read_quarantines(request: ReviewRequest, checkout: Checkout, base: Base) -> Quarantines:
    """The quarantine of head and base. On a push the change is on its branch already, and the
    quarantine of head is in effect.

    Attack: an agent writes the file into both trees. It is read before a program runs, base's from
    the commit."""
    by_base = request.job.event != "push" and bool(base.sha or base.problem)
    content = await request.repository.show(base.sha, FILE) or b"" if base.sha else None
    today = datetime.now(UTC).date()
    return await asyncio.to_thread(read_quarantines, checkout.root, today, content, by_base=by_base)
