"""The inputs of the decision other than results: base, affected suites, edits, waivers, template.
They are read before the first program of the change starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentevals_action.errors import GitError
from agentevals_action.execution.definitions import Definitions
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
from agentevals_action.review.change.requested_run import (
    REQUESTED,
    apply_base,
    describe_left_out,
    require_part,
    select_part,
)
from agentevals_action.review.change.selection import (
    Change,
    SelectedSuites,
    describe_uncovered,
    select_suites,
)
from agentevals_action.review.change.target_permissions import read_permissions
from agentevals_action.review.comparison.edits import find_edits
from agentevals_action.review.request import ReviewRequest, Suites
from agentevals_action.settings import Settings
from agentevals_action.suites.cassette_file import CassetteFolder
from agentevals_action.suites.checkout import (
    Checkout,
    no_suite,
)
from agentevals_action.suites.quarantine_file import read_quarantines


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

    `base` and `suites` are without what the request leaves out, which `left_out` names.
    `uncommitted` are the paths that differ from the commit, `differing` those of them that the
    suites use."""

    head_sha: str
    base: Base
    suites: Suites
    change: Change
    selected: SelectedSuites
    left_out: str
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


def read_decisive(request: ReviewRequest, engine: Engine, head: Head, base: Base) -> Decisive:
    """Reads what decides, in the order that the attacks below require. Raises AgentEvalsError when
    nothing can be reviewed."""
    job, workspace, repository = request.job, request.workspace, request.repository
    settings, checkout = workspace.settings, head.checkout
    if not head.suites:
        raise no_suite(settings, [suite.path for suite in base.suites])
    uncommitted = tuple(
        path
        for path in repository.uncommitted(filters=request.isolation.head is None)
        if not workspace.writes(repository.root / path)
    )
    change, change_notices = find_change(
        repository, request.host, job, head.sha, base, checkout, head.suites, settings
    )
    template, template_notices = choose_template(settings, workspace.folder, job, repository, base)
    part, uncovered = _select(request, head.suites, base, change)
    if job.pull is not None:
        engine.restrict(read_permissions(part.base, settings, workspace.environ))
    cassettes = _trust_cassettes(engine, job, part.base, part.change, settings)
    definitions, suites = engine.definitions(), part.suites
    if not job.trusts_head:
        suites = _under_base(part, engine)
    plan = _plan(part.selected, suites, part.base, engine, job)
    quarantines = _read_quarantines(request, checkout, part.base)
    acceptance = request.host.acceptance(settings.accept_label)
    named = {FILE, *(file.path for suite in plan.head.values() for file in suite.files)}
    engine.load((*plan.head.values(), *plan.base.values()))
    return Decisive(
        head_sha=head.sha,
        base=part.base,
        suites=suites,
        change=part.change,
        selected=part.selected,
        left_out=part.left_out,
        plan=plan,
        edits=_find_edits(plan, part.suites, definitions, job),
        quarantines=quarantines,
        acceptance=acceptance,
        template=template,
        uncommitted=uncommitted,
        differing=sorted(named.intersection(uncommitted) & checkout.tracked),
        notices=(
            *filter(None, [uncovered, cassettes]),
            *change_notices,
            *template_notices,
        ),
    )


@dataclass(frozen=True)
class _Part:
    """The part of the repository that is reviewed: the suites of both sides, the change, and the
    suites that it affects. `left_out` states what the request leaves out of these."""

    suites: Suites
    base: Base
    change: Change
    selected: SelectedSuites
    left_out: str


def _select(
    request: ReviewRequest, suites: Suites, base: Base, change: Change
) -> tuple[_Part, str]:
    """The part that the change affects or the request names, and a sentence about changed files
    that no suite covers, empty if a suite is affected."""
    workspace, root, wanted = request.workspace, request.repository.root, request.job.part
    settings = workspace.settings
    affected = select_suites(suites, change, settings.watch_rules)
    if affected.is_empty and settings.untouched == "all":
        change = replace(change, everything=True)
        affected = select_suites(suites, change, settings.watch_rules)
    uncovered = ""
    if affected.is_empty:
        files = [file for file in change.files or () if not workspace.writes(root / file.path)]
        uncovered = describe_uncovered(files, affected)
    if not wanted:
        return _Part(suites, base, change, affected, left_out=""), uncovered
    suites = select_part(suites, wanted)
    base = replace(base, suites=select_part(base.suites, wanted))
    require_part(suites, wanted)
    change = replace(
        change,
        everything=change.everything or bool(wanted.suites),
        base_suites=[suite.path for suite in base.suites],
    )
    selected = select_suites(suites, change, settings.watch_rules)
    left_out = describe_left_out(affected, selected, wanted)
    return _Part(suites, base, change, selected, left_out), uncovered


def _under_base(part: _Part, engine: Engine) -> Suites:
    """The suites of a requested run, scored by base. Raises GitError if there is no base.

    Attack: `setup: npm ci` runs scripts of the pull request as the user of the action, so it runs
    in base's tree."""
    base = part.base
    if base.root is None:
        why = base.problem or base.reason
        raise GitError(f"a requested run needs the judges and targets of a base: {why}")
    engine.set_up_in(base.root)
    return apply_base(part.suites, base.suites, part.selected, engine.fingerprints.content)


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


def _trust_cassettes(
    engine: Engine, job: Job, base: Base, change: Change, settings: Settings
) -> str:
    """The sentence about the cassettes that the change edits, empty if there are none. In a job
    without secrets, and in one that a maintainer requests, nobody of the project recorded what a
    change adds: base's cassettes alone answer."""
    if not engine.replays:
        return ""
    edited = [
        file.path for file in change.files or () if file.path.startswith(f"{settings.cassettes}/")
    ]
    if job.trusts_head and not job.without_secrets:
        known = "their replies decide about the outcome"
    else:
        folder = None
        if base.root is not None and base.cassettes is not None:
            folder = CassetteFolder(base.root, base.cassettes)
        engine.trust_cassettes(folder)
        known = f"only those of the base answer, because {job.without_secrets or REQUESTED}"
    return f"the change edits cassettes ({list_paths(edited)}): {known}" if edited else ""


def _find_edits(
    plan: RunnableSuites, suites: Suites, definitions: Definitions, job: Job
) -> dict[str, SuiteEdits]:
    """The edits of each suite that both sides have, read before any program of the change runs.
    `suites` are those of head as written. No answer needs to be scored again where base's
    evaluators score all of them."""
    head = {suite.path: suite for suite in suites if isinstance(suite, Suite)}
    found = {
        path: find_edits(definitions.differing(head[path], base))
        for path, base in plan.base.items()
    }
    if job.trusts_head:
        return found
    return {path: SuiteEdits(one.edits) for path, one in found.items()}


def _read_quarantines(request: ReviewRequest, checkout: Checkout, base: Base) -> Quarantines:
    """The quarantine of head and base. On a push the change is on its branch already, and the
    quarantine of head is in effect.

    Attack: an agent writes the file into both trees. It is read before a program runs, base's from
    the commit."""
    by_base = request.job.event != "push" and bool(base.sha or base.problem)
    content = request.repository.show(base.sha, FILE) or b"" if base.sha else None
    return read_quarantines(checkout.root, datetime.now(UTC).date(), content, by_base=by_base)
