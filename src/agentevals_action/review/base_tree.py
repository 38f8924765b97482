"""Head and base: what the workspace must be at, which commit it is compared with, and that commit's
tree in a folder of its own."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.github.events import Job
from agentevals_action.system import temp_dirs
from agentevals_action.system.git import GitRepository

#: Folders of base worktrees, in the temp folder and, as the name that git keeps them by, in
#: `.git/worktrees`.
_PREFIX = "agentevals-base-"


@dataclass(frozen=True)
class Base:
    """The commit that head is compared with. Without `sha`, either `reason` says why there is
    nothing to compare with, or `problem` why a base that exists could not be had and what to set.
    `time` is ISO 8601."""

    sha: str | None = None
    time: str | None = None
    problem: str = ""
    reason: str = ""


def check_head(repository: GitRepository, job: Job) -> str:
    """SHA of HEAD, when it is a commit that the job is about; GitError without a checkout,
    InvalidInput at another commit."""
    head = repository.head()
    if head in job.heads or _merged_pull(repository, job, head) is not None:
        return head
    if job.pull:
        expected = (
            f"the head of the pull request ({_short(job.pull.head_sha)}) nor its merge commit"
        )
        hint = "leave out `ref` of actions/checkout, or write `ref: ${{ github.event.pull_request.head.sha }}`"
    else:
        expected = f"the event's commit ({_short(job.head_sha)})"
        hint = "leave out `ref` of actions/checkout, and commit nothing in the workspace before this step"
    nor = "neither" if job.pull else "not"
    raise InvalidInput(
        f"the workspace is at {_short(head)}, which is {nor} {expected}: what runs would not be what is reported",
        hint,
    )


def resolve_base(
    repository: GitRepository,
    job: Job,
    head: str,
    merge_base: Callable[[], str | None] = lambda: None,
) -> Base:
    """The base of `head`, brought here when it is not; `merge_base` asks the host where a shallow
    clone cannot tell.

    GitError when a revision that the user named means nothing; whatever else cannot be had is told
    as the base's `problem`."""
    rule = job.base
    if rule.kind == "none" or rule.revision is None:
        return Base(reason=rule.reason)
    if rule.kind == "fork-point" and repository.resolve(rule.revision) is None:
        raise GitError(
            f"there is no revision `{rule.revision}` here",
            "name a branch, a tag or a commit; `git fetch` brings the origin's",
        )
    try:
        if rule.kind == "commit":
            return _brought(repository, rule.revision)
        if rule.kind == "pull" and (parent := _merged_pull(repository, job, head)):
            return _brought(repository, parent)
        return _fork_point(repository, rule.revision, head, merge_base)
    except GitError as error:
        return Base(problem=error.sentence)


def _merged_pull(repository: GitRepository, job: Job, head: str) -> str | None:
    """The first parent when HEAD is a merge commit of the pull request's head, as
    `actions/checkout` gives it."""
    if job.pull is None or head == job.pull.head_sha:
        return None
    parents = repository.parents(head)
    return parents[0] if len(parents) == 2 and parents[1] == job.pull.head_sha else None


def _brought(repository: GitRepository, revision: str) -> Base:
    if not repository.has(revision):
        try:
            repository.fetch(revision)
        except GitError as error:
            hint = "set `fetch-depth: 2` (or `fetch-depth: 0`) in actions/checkout"
            raise GitError(
                f"the base commit {_short(revision)} is not in the clone and could not be fetched ({error})",
                hint,
            ) from error
    sha = repository.resolve(revision)
    if sha is None:
        raise GitError(f"{_short(revision)} names no commit")
    return Base(sha, repository.commit_time(sha))


def _fork_point(
    repository: GitRepository, revision: str, head: str, merge_base: Callable[[], str | None]
) -> Base:
    shallow = repository.is_shallow()
    # A common ancestor that a cut-off history still shows need not be the best one, so the host is
    # asked first.
    found = merge_base() if shallow else None
    if found is None:
        tip = repository.resolve(revision) or _brought(repository, revision).sha
        found = repository.merge_base(tip, head) if tip else None
    if found is not None:
        return _brought(repository, found)
    if shallow:
        hint = "set `fetch-depth: 0` in actions/checkout, or check out the merge commit by leaving out its `ref`"
        raise GitError(
            f"the clone is too shallow to find where {_short(head)} left the base branch", hint
        )
    return Base(reason=f"{_short(head)} and {_short(revision)} have no commit in common")


@contextmanager
def base_worktree(repository: GitRepository, sha: str, temp: Path | None = None) -> Iterator[Path]:
    """The tree of a commit in a folder outside the workspace, gone at the end whatever ends it;
    GitError when it cannot be had.

    What killed runs left behind is put away first. `temp` is the folder for temporary files, the
    system's when left out."""
    temp = (temp or Path(tempfile.gettempdir())).resolve()
    if temp.is_relative_to(repository.root):
        raise GitError(
            f"the folder for temporary files, {temp}, lies in the workspace",
            "set TMPDIR to a folder outside of it",
        )
    mend(repository, temp)
    with temp_dirs.locked_folder(_PREFIX, temp) as folder:
        tree = folder / folder.name
        try:
            repository.add_worktree(tree, sha)
            yield tree
        finally:
            _forget(repository, folder.name)


def mend(repository: GitRepository, temp: Path) -> None:
    """Puts away base worktrees whose run is dead: their folders, and what git keeps of them. The
    dead are known by their lock, which the system lets go when a process ends, however it ends; a
    folder that is gone was in a container that is."""
    temp_dirs.remove_abandoned(_PREFIX, temp)
    for entry in (repository.metadata / "worktrees").glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another run may mend at the same time
            tree = entry / os.fsdecode((entry / "gitdir").read_bytes().strip()).removesuffix(
                "/.git"
            )
            if not tree.parent.exists():
                _forget(repository, entry.name)


def links_among(paths: Iterable[str], roots: Iterable[Path]) -> dict[str, tuple[str, ...]]:
    """Those paths that are symbolic links in one of the trees, with where they lead, relative to
    the tree (inside of it)."""
    found: dict[str, tuple[str, ...]] = {}
    trees = tuple(roots)
    for path in paths:
        targets = [_leads_to(root, path) for root in trees]
        if inside := tuple(dict.fromkeys(target for target in targets if target)):
            found[path] = inside
    return found


def _leads_to(root: Path, path: str) -> str | None:
    link = root / path
    try:
        target = link.resolve() if link.is_symlink() else None
    except (OSError, RuntimeError):  # a link that leads in a circle leads nowhere
        return None
    return target.relative_to(root).as_posix() if target and target.is_relative_to(root) else None


def _forget(repository: GitRepository, name: str) -> None:
    """Takes away what git keeps of one worktree; `git worktree prune` would take others' along that
    are only not mounted now."""
    worktrees = repository.metadata / "worktrees"
    temp_dirs.remove_folder(worktrees / name)
    with contextlib.suppress(
        OSError
    ):  # git keeps the folder only while there is a worktree, and there may be others
        worktrees.rmdir()


def give_back(paths: Iterable[Path], workspace: Path) -> None:
    """As root in a workspace of another owner: what is root's below the paths becomes the owner's.
    Symbolic links are never followed, and nothing outside the workspace is touched; for anybody
    else it does nothing."""
    if os.geteuid() != 0:
        return
    workspace = workspace.resolve()
    owner = workspace.stat()
    if owner.st_uid == 0:
        return
    for path in paths:
        place = path.parent.resolve() / path.name
        if place != workspace and not place.is_relative_to(workspace):
            raise ValueError(f"{path} lies outside the workspace {workspace}")
        if not os.path.lexists(place):
            continue
        _chown(place, owner.st_uid, owner.st_gid, None)
        # fwalk works on open folders, so that a name that becomes a link on the way leads nowhere.
        for _, folders, files, descriptor in os.fwalk(place, follow_symlinks=False):
            for name in (*folders, *files):
                _chown(name, owner.st_uid, owner.st_gid, descriptor)


def _chown(name: str | Path, user: int, group: int, folder: int | None) -> None:
    with contextlib.suppress(
        FileNotFoundError
    ):  # a child that still ends may take its files away meanwhile
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # A file with a second name may be somebody's outside the workspace.
        shared = stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1
        if facts.st_uid == 0 and not shared:
            os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)


def _short(sha: str) -> str:
    return (
        sha[:12]
        if len(sha) in (40, 64) and all(char in "0123456789abcdef" for char in sha)
        else sha
    )
