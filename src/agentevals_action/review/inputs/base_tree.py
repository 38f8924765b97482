"""Head and base: the commit that the workspace must have, the commit that it is compared with, and
the worktree of that commit."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.job import Job
from agentevals_action.model.path_patterns import WatchRule
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.inputs.request import ReviewRequest
from agentevals_action.runners.suites import files_of_all, load_suites
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout, require_valid
from agentevals_action.suites.configuration_file import read_configuration
from agentevals_action.system import temp_dirs
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import PRIVATE_TEMP, ChildUser
from agentevals_action.system.protection import give_worktree
from agentevals_action.system.signals import in_thread

#: Prefix of the folders of worktrees, in the folder for temporary files and in `.git/worktrees`.
_PREFIX = "agentevals-tree-"
_HEX = frozenset("0123456789abcdef")
#: Lengths of a SHA-1 and a SHA-256, and of the part of a SHA that is shown.
_SHA_LENGTHS, _SHOWN = (40, 64), 12


@dataclass(frozen=True)
class Base:
    """The commit that head is compared with; `time` is ISO 8601. Without a `sha`, `reason` is why
    there is no base, or `problem` why an existing base could not be obtained and what to set;
    `errors` are the errors in its files. `root` is its worktree, which has the paths `tracked`, the
    `suites` and the rules `watch`; `covered` are the files of all its suites, as `files_of_all`. A
    `file_error` of its `.agentevals.yaml` can hide suites of runners. If base is stored results
    alone, it has head's suites and rules, and neither a `sha` nor a tree."""

    sha: str | None = None
    time: str | None = None
    problem: str = ""
    errors: tuple[str, ...] = ()
    reason: str = ""
    root: Path | None = None
    suites: tuple[Suite | BrokenSuite, ...] = ()
    tracked: frozenset[str] = frozenset()
    watch: tuple[WatchRule, ...] = ()
    covered: Mapping[str, bool] = field(default_factory=dict)
    file_error: Diagnostic | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a commit to compare with, obtained or not."""
        return bool(self.sha or self.problem)


async def check_head(repository: GitRepository, job: Job) -> str:
    """The SHA of HEAD. Raises GitError without a checkout, and InvalidInput if HEAD is not a commit
    of the job."""
    head = await repository.head()
    if head in job.heads or await _first_parent_of_merge(repository, job, head) is not None:
        return head
    raise InvalidInput(
        f"the workspace is at {_short(head)}, which is neither the event's commit "
        f"({_short(job.head_sha)}) nor a merge of it: what runs would not be what is reported",
        "leave out `ref` of actions/checkout (or write `ref: ${{ "
        "github.event.pull_request.head.sha }}`), and commit nothing before this step",
    )


async def resolve_base(
    repository: GitRepository,
    job: Job,
    head: str,
    merge_base: Callable[[], str | None] = lambda: None,
) -> Base:
    """The base of `head`, fetched if necessary. `merge_base` asks the host; it is called only if
    the clone is too shallow.

    Raises GitError when a revision that the user named does not exist. Other failures are the
    base's `problem`.
    """
    rule = job.base
    if rule.kind == "none" or rule.revision is None:
        return Base(reason=rule.reason)
    if rule.kind == "fork-point" and await repository.resolve(rule.revision) is None:
        raise GitError(
            f"there is no revision `{rule.revision}` here",
            "name a branch, a tag or a commit; `git fetch` brings the origin's",
        )
    try:
        if rule.kind == "commit":
            return await _fetched(repository, rule.revision)
        if rule.kind == "pull" and (parent := await _first_parent_of_merge(repository, job, head)):
            return await _fetched(repository, parent)
        return await _fork_point(repository, rule.revision, head, merge_base)
    except GitError as error:
        return Base(problem=error.sentence)


async def _first_parent_of_merge(repository: GitRepository, job: Job, head: str) -> str | None:
    """The first parent if HEAD is the merge commit of the pull request, as from
    `actions/checkout`."""
    if job.pull is None or head == job.pull.head_sha:
        return None
    parents = await repository.parents(head)
    return parents[0] if len(parents) == 2 and parents[1] == job.pull.head_sha else None


async def _fetched(repository: GitRepository, revision: str) -> Base:
    if not await repository.has(revision):
        try:
            await repository.fetch(revision)
        except GitError as error:
            raise GitError(
                f"the base commit {_short(revision)} is not in the clone "
                f"and could not be fetched ({error})",
                "set `fetch-depth: 2` (or `fetch-depth: 0`) in actions/checkout",
            ) from error
    sha = await repository.resolve(revision)
    if sha is None:
        raise GitError(f"{_short(revision)} names no commit")
    return Base(sha, await repository.commit_time(sha))


async def _fork_point(
    repository: GitRepository, revision: str, head: str, merge_base: Callable[[], str | None]
) -> Base:
    shallow = await repository.is_shallow()
    # A common ancestor in a shallow history may not be the best one, so the host is asked first.
    ancestor = await asyncio.to_thread(merge_base) if shallow else None
    if ancestor is None:
        tip = await repository.resolve(revision) or (await _fetched(repository, revision)).sha
        ancestor = await repository.merge_base(tip, head) if tip else None
    if ancestor is not None:
        return await _fetched(repository, ancestor)
    if shallow:
        raise GitError(
            f"the clone is too shallow to find where {_short(head)} left the base branch",
            "set `fetch-depth: 0` in actions/checkout, "
            "or check out the merge commit by leaving out its `ref`",
        )
    return Base(reason=f"{_short(head)} and {_short(revision)} have no commit in common")


@asynccontextmanager
async def open_base(request: ReviewRequest, inputs: Settings, head_sha: str) -> AsyncIterator[Base]:
    """The base with its worktree and suites; `inputs` are without head's `.agentevals.yaml`. A
    failure is the base's problem and does not end the review."""
    repository, job = request.repository, request.job
    base = Base(reason=job.base.reason)
    if repository and job.base.kind != "none":
        base = await resolve_base(repository, job, head_sha, request.host.merge_base)
    async with AsyncExitStack() as opened:
        if repository and base.sha is not None:
            try:
                worktree = base_worktree(repository, base.sha, user=request.isolation.base)
                base = replace(base, root=await opened.enter_async_context(worktree))
                if job.event == "local" and base.root:
                    await _copy_variables(repository, base.root)
                settings, environ = request.settings, request.workspace.environ
                base = await with_suites(base, settings, inputs, environ)
            except GitError as error:
                base = replace(base, problem=error.sentence)
            except InvalidInput as error:
                # With no suites on base, every regression would be a new test.
                problem = "; ".join((*error.errors, str(error)))
                base = replace(base, problem=problem, errors=error.errors)
        yield base


async def _copy_variables(repository: GitRepository, tree: Path) -> None:
    """Copies the `.env` files of the working tree that git does not track to base's tree, where
    targets and programs of base read their keys."""
    for path in await repository.untracked("**/.env"):
        target = tree / path
        if target.parent.is_dir() and not target.exists():
            with suppress(OSError):  # head, which reads the same file, reports it
                await in_thread(shutil.copy, repository.root / path, target)


async def with_suites(
    base: Base, settings: Settings, inputs: Settings, environ: Mapping[str, str]
) -> Base:
    """Base with all its suites, none if the working directory is new. `settings` are head's,
    `inputs` the settings without head's `.agentevals.yaml`. Raises InvalidInput.

    Attack: the change removes from `.agentevals.yaml` what covers its own files, so base's own file
    decides which suites base has, and its rules of `watch` hold, too."""
    root = base.root
    if root is None:
        return base
    configuration = await asyncio.to_thread(read_configuration, root)
    watch: tuple[WatchRule, ...] = ()
    with suppress(InvalidInput):  # head's file corrects it
        settings = configuration.complete(inputs)
        watch = settings.watch_rules
    repository = GitRepository(root, environ=environ)
    if not (root / settings.working_directory).is_dir():
        return replace(base, tracked=(await repository.listing()).tracked, watch=watch)
    checkout = await Checkout.at(root, settings, configuration, environ, repository, is_commit=True)
    loaded = await asyncio.to_thread(load_suites, checkout)
    # A change may correct an entry of a runner, too.
    in_file = [error for error in loaded.errors if error.location.path == FILE]
    require_valid((), [error for error in loaded.errors if error not in in_file])
    return replace(
        base,
        suites=loaded.suites,
        tracked=checkout.tracked,
        watch=watch,
        covered=await asyncio.to_thread(files_of_all, loaded),
        file_error=next(iter((*configuration.errors, *in_file)), None),
    )


@asynccontextmanager
async def base_worktree(
    repository: GitRepository, sha: str, temp: Path | None = None, user: ChildUser | None = None
) -> AsyncIterator[Path]:
    """The tree of a commit in a folder outside the workspace, removed at the end. Raises GitError.

    `temp` is the folder for temporary files, by default that of the system, or the private one if
    the tree belongs to `user`, the user of base's programs."""
    temp = (temp or (PRIVATE_TEMP if user else Path(tempfile.gettempdir()))).resolve()
    if temp.is_relative_to(repository.root):
        raise GitError(
            f"the folder for temporary files, {temp}, lies in the workspace",
            "set TMPDIR to a folder outside of it",
        )
    records = await repository.metadata() / "worktrees"  # a program may remove `.git`
    async with temp_dirs.temp_folder(_PREFIX, temp) as folder:
        tree = folder / folder.name
        await in_thread(_forget_killed, records)
        try:
            await repository.add_worktree(tree, sha)
            await give_worktree(tree, user)
            yield tree
        finally:
            await in_thread(_forget, records, folder.name)


def _forget_killed(records: Path) -> None:
    """Removes git's records of the worktrees of runs that were killed, whose folders are gone."""
    for record in records.glob(f"{_PREFIX}*/gitdir"):
        with suppress(OSError):  # another run removes it
            if not Path(record.read_text().strip()).parent.parent.exists():
                temp_dirs.remove_folder(record.parent)


def _forget(records: Path, name: str) -> None:
    """Removes git's record of one worktree. `git worktree prune` would also remove records of
    other worktrees that are not mounted at the moment."""
    temp_dirs.remove_folder(records / name)
    with suppress(OSError):  # the folder is removed only if it is empty
        records.rmdir()


def _short(sha: str) -> str:
    return sha[:_SHOWN] if len(sha) in _SHA_LENGTHS and _HEX.issuperset(sha) else sha
