"""Real git repositories in temporary folders: a history with a pull request, and clones as
`actions/checkout` leaves them.

Git makes each of them once per worker; a test gets a copy, which takes no process."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

#: The environment of git in tests: no configuration of this machine, and the same hashes every
#: time.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+01:00",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+01:00",
    "LC_ALL": "C",
}

#: Contents of files by path; a Path is a symbolic link, None removes the file.
Files = Mapping[str, str | bytes | Path | None]
_Items = tuple[tuple[str, str | bytes | Path | None], ...]


@dataclass(frozen=True)
class Repository:
    """A repository with a working tree at `path`."""

    path: Path

    @classmethod
    def create(cls, path: Path, files: Files | None = None) -> "Repository":
        """A new repository on the branch `main`, with a first commit when files are given."""
        return _created(None if files is None else tuple(files.items())).copy(path)

    def copy(self, path: Path) -> "Repository":
        """The same in another folder."""
        return Repository(shutil.copytree(self.path, path, symlinks=True, dirs_exist_ok=True))

    def git(self, *arguments: str) -> str:
        """What git prints; CalledProcessError when it fails."""
        # What is in a temporary folder need not outlive the machine: waiting for the disk would be
        # a third of a commit.
        command = (
            "git",
            "-c",
            "protocol.file.allow=always",
            "-c",
            "safe.directory=*",
            "-c",
            "core.fsync=none",
            "-c",
            "maintenance.auto=false",
            *arguments,
        )
        done = subprocess.run(
            command, cwd=self.path, env=ENVIRONMENT, capture_output=True, check=True
        )
        return os.fsdecode(done.stdout).strip()

    def write(self, files: Files) -> None:
        """Writes files (None removes one), relative to the root."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or isinstance(content, Path):
                path.unlink(missing_ok=True)
            if isinstance(content, Path):
                path.symlink_to(content)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Files | None = None) -> str:
        """Commits everything that changed; the commit's SHA."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def head(self) -> str:
        """SHA of HEAD."""
        metadata = self.path / ".git"
        if metadata.is_file():  # a submodule
            return self.git("rev-parse", "HEAD")
        head = (metadata / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        return (metadata / head.removeprefix("ref: ")).read_text().strip()

    def merge_for_pull(self, main: str, head: str) -> str:
        """GitHub's merge commit of a pull request whose head contains `main`: it has the head's
        tree. The references of the pull request point there; no branch does."""
        message = f"Merge {head} into {main}"
        merge = self.git("commit-tree", "-p", main, "-p", head, "-m", message, f"{head}^{{tree}}")
        self.point_pull_to(head, merge)
        return merge

    def point_pull_to(self, head: str, merge: str) -> None:
        """Sets the references of the pull request."""
        folder = self.path / ".git/refs/pull/1"
        folder.mkdir(parents=True, exist_ok=True)
        for name, sha in (("head", head), ("merge", merge)):
            (folder / name).write_text(f"{sha}\n")

    def snapshot(self) -> str:
        """All that git knows of the repository's state: to see that nothing was changed."""
        parts = (
            ("status", "--porcelain"),
            ("worktree", "list"),
            ("for-each-ref",),
            ("config", "--local", "--list"),
        )
        return "\n".join(self.git(*part) for part in parts)


@dataclass(frozen=True)
class PullRequest:
    """A pull request at its origin: `base` is where it left main, `main` main's tip now, `head` its
    own, `merge` GitHub's merge commit."""

    origin: Repository
    base: str
    main: str
    head: str
    merge: str

    def copy(self, folder: Path) -> "PullRequest":
        """The same with its origin in a new folder."""
        return replace(self, origin=self.origin.copy(folder))

    def checkout(self, folder: Path, sha: str, depth: int = 1) -> Repository:
        """The workspace as `actions/checkout` leaves it: one commit, detached, no refs but the one
        it asked for; with a depth of 2, its parents, so that the action need not fetch its base;
        depth 0 is everything."""
        url = self.origin.path.resolve().as_uri()
        if depth:
            if (sha, depth) not in _SHALLOW:
                _SHALLOW[sha, depth] = _fetched(url, sha, f"--depth={depth}")
            workspace = _SHALLOW[sha, depth].copy(folder)
        else:
            workspace = _fetched(url, sha, refspecs=("+refs/heads/*:refs/remotes/origin/*",))
            workspace = workspace.copy(folder)
        with (folder / ".git" / "config").open("a") as config:
            config.write(
                f'[remote "origin"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
            )
        return workspace


def pull_request(
    folder: Path, base: Files, head: Files, moved_on: Files | None = None
) -> PullRequest:
    """A pull request that changes the files of `base` into those of `head`; with `moved_on`, main
    got these since."""
    since = None if moved_on is None else tuple(moved_on.items())
    return _pull_request(tuple(base.items()), tuple(head.items()), since).copy(folder)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="agentevals-tests-"))


def remove_templates() -> None:
    """Removes what this worker keeps: xdist may kill a worker before its functions of atexit run."""
    if _folder.cache_info().currsize:
        shutil.rmtree(_folder())


def new_folder() -> Path:
    """A folder for a repository that this worker copies for several tests."""
    folder = Path(tempfile.mkdtemp(dir=_folder()), "repository")
    folder.mkdir()  # with the rights of any folder
    return folder


@cache
def _initialized() -> Repository:
    repository = Repository(new_folder())
    repository.git("init", "--quiet", "--initial-branch=main", "--template=")
    return repository


@cache
def _created(files: _Items | None) -> Repository:
    if files is not None:
        repository = _created(None).copy(new_folder())
        repository.commit("first", dict(files))
        return repository
    repository = _initialized().copy(new_folder())
    # As GitHub does: any commit may be fetched by its hash.
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return repository


#: What `actions/checkout` fetched, by commit and depth.
_SHALLOW: dict[tuple[str, int], Repository] = {}


def _fetched(url: str, sha: str, *options: str, refspecs: Sequence[str] = ()) -> Repository:
    workspace = _initialized().copy(new_folder())
    refspecs = (*refspecs, f"+{sha}:refs/remotes/pull/1/merge")
    workspace.git("fetch", "--quiet", "--no-tags", *options, url, *refspecs)
    workspace.git("checkout", "--quiet", "--force", "--detach", sha)
    return workspace


@cache
def _pull_request(base: _Items, head: _Items, moved_on: _Items | None) -> PullRequest:
    origin = _created(base).copy(new_folder())
    first = origin.head()
    origin.git("checkout", "--quiet", "-b", "feature")
    tip = origin.commit("change", dict(head))
    origin.git("checkout", "--quiet", "main")
    if moved_on is None:
        return PullRequest(origin, first, first, tip, origin.merge_for_pull(first, tip))
    main = origin.commit("meanwhile", dict(moved_on))
    origin.git("checkout", "--quiet", "--detach", "main")
    origin.git("merge", "--quiet", "--no-ff", "--no-edit", tip)
    merge = origin.head()
    origin.point_pull_to(tip, merge)
    origin.git("checkout", "--quiet", "main")
    return PullRequest(origin, first, main, tip, merge)
