"""Git, for what a review needs of it: commits, changed files, a tree at a commit; safe in a
workspace that a stranger's change is in."""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from agentevals_action.errors import GitError
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.system import errand

_LOCAL_SECONDS = 120.0
_NETWORK_SECONDS = 300.0
#: Renames with changes are looked for among at most so many files of each side; unchanged ones are
#: found always.
_RENAME_LIMIT = 3000
#: Commits that `ancestry` goes back over at most, those of merged branches included.
_ANCESTRY = 2_000

#: Where git is looked for when the caller names no PATH.
_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
#: All that git sees of the caller's environment: no `GIT_*`, which would point it at another
#: repository (as inside of a hook).
_PASSED_ON = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_PROXIES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)

_CONFIG = (
    # The container is root in a workspace of another owner. Which folder git will look at is not
    # known before it has found it, and this holds for our calls alone.
    ("safe.directory", "*"),
    # Nothing that lies in the workspace is run, and nothing of git's stays behind at work.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

_STATUSES = {
    "A": "added",
    "D": "removed",
    "M": "modified",
    "R": "renamed",
    "C": "copied",
    "T": "changed",
}


class GitRepository:
    """The repository that `path` lies in. `token` is sent to `server_url` alone, in a header, on
    calls that may fetch.

    Every method raises GitError when git is missing, there is no repository with a working tree, or
    git refuses."""

    def __init__(
        self,
        path: Path,
        token: str | None = None,
        server_url: str = "https://github.com",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self.token, self.server_url, self.environ = (
            path,
            token,
            server_url,
            environ or {},
        )

    @cached_property
    def root(self) -> Path:
        """The top folder of the working tree, absolute and free of symbolic links."""
        done = self._call("rev-parse", "--is-bare-repository", "--show-toplevel", cwd=self.path)
        is_bare, _, folder = done.stdout.removesuffix(b"\n").partition(b"\n")
        if done.returncode == 0 and folder:
            return Path(os.fsdecode(folder)).resolve()
        if is_bare == b"true":
            raise GitError(
                f"{self.path} is a bare repository", "run in a clone that has a working tree"
            )
        raise GitError(
            f"{self.path} is no git repository ({_last_line(done.stderr)})",
            "in a workflow, put `- uses: actions/checkout@v4` before this step, without `path`",
        )

    @cached_property
    def metadata(self) -> Path:
        """The folder that all worktrees of the repository share (`.git`), absolute."""
        return Path(
            os.fsdecode(
                self._ask("rev-parse", "--path-format=absolute", "--git-common-dir").removesuffix(
                    b"\n"
                )
            )
        )

    def head(self) -> str:
        """SHA of HEAD's commit."""
        if (sha := self.resolve("HEAD")) is None:
            raise GitError("the repository has no commit yet", "commit something first")
        return sha

    def resolve(self, revision: str) -> str | None:
        """SHA of the commit that a revision names, None if there is none here."""
        if not revision or revision.startswith("-"):
            return None
        done = self._call(
            "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", cwd=self.root
        )
        return done.stdout.decode("ascii").strip() if done.returncode == 0 else None

    def has(self, sha: str) -> bool:
        """Whether the commit is here."""
        return self._call("cat-file", "-e", f"{sha}^{{commit}}", cwd=self.root).returncode == 0

    def parents(self, sha: str) -> tuple[str, ...]:
        """SHAs of a commit's parents as the commit names them: a shallow clone has them here,
        though not their commits."""
        return tuple(
            line.removeprefix("parent ")
            for line in self._commit_headers(sha)
            if line.startswith("parent ")
        )

    def commit_time(self, sha: str) -> str:
        """When it was committed: ISO 8601, UTC."""
        for line in self._commit_headers(sha):
            if line.startswith("committer ") and (found := re.search(r" (\d+) [+-]\d{4}$", line)):
                return datetime.fromtimestamp(int(found[1]), UTC).isoformat().replace("+00:00", "Z")
        raise GitError(f"the commit {sha} has no date")

    def _commit_headers(self, sha: str) -> Sequence[str]:
        text = self._ask("cat-file", "-p", f"{sha}^{{commit}}").decode("utf-8", "replace")
        return text.partition("\n\n")[0].split("\n")

    def is_shallow(self) -> bool:
        """Whether history is cut off somewhere."""
        return self._ask("rev-parse", "--is-shallow-repository").strip() == b"true"

    def ancestry(self, sha: str) -> dict[str, tuple[str, ...]]:
        """The parents of a commit and of the latest of those before it, as far as they are here, by
        SHA."""
        lines = (
            self._ask("rev-list", "--parents", f"--max-count={_ANCESTRY}", sha)
            .decode("ascii")
            .splitlines()
        )
        return {commit: tuple(parents) for commit, *parents in map(str.split, lines)}

    def merge_base(self, one: str, other: str) -> str | None:
        """SHA of the best common ancestor that is known here, None if there is none."""
        done = self._call("merge-base", one, other, cwd=self.root)
        if done.returncode not in (0, 1):
            raise _refused("merge-base", done)
        return done.stdout.decode("ascii").strip() or None

    def fetch(self, sha: str) -> None:
        """Brings one commit from `origin`; without its history where the clone is shallow already,
        so that a whole clone stays whole."""
        depth = ("--depth=1",) if self.is_shallow() else ()
        options = (
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            *depth,
        )
        self._ask("fetch", *options, "--", "origin", sha, network=True)

    def changed_files(self, base: str, head: str | None = None) -> tuple[ChangedFile, ...]:
        """What changed from `base` to `head`, renames followed; without `head`, to the working
        tree, files that git does not know yet included. Bytes of a name that are no UTF-8 become
        surrogates, as in every path of Python's."""
        options = (
            "--name-status",
            "-z",
            f"-l{_RENAME_LIMIT}",
            "--no-ext-diff",
            "--no-relative",
            "--ignore-submodules=dirty",
        )
        revisions = (base,) if head is None else (base, head)
        found = _changed(
            self._ask("diff", *options, "--find-renames", *revisions, "--", network=True)
        )
        if head is not None:
            return found
        known = {file.path for file in found}
        untracked = self._names("ls-files", "-z", "--others", "--exclude-standard")
        return (*found, *(ChangedFile(path, "added") for path in untracked if path not in known))

    def files(self) -> tuple[str, ...]:
        """Paths of all files of the working tree that git knows or does not ignore, relative to the
        root, sorted."""
        names = self._names("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return tuple(sorted(name for name in set(names) if os.path.lexists(self.root / name)))

    def tracks(self, path: Path) -> bool:
        """Whether git knows a file at or below an absolute path of the working tree."""
        inside = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None
        return inside is not None and bool(
            self._names("ls-files", "-z", "--cached", "--", f":(literal){inside}")
        )

    def show(self, sha: str, path: str) -> bytes | None:
        """The content of a file at a commit, None if it had none there."""
        self._ask("cat-file", "-e", f"{sha}^{{commit}}")
        done = self._call("cat-file", "blob", f"{sha}:{path}", cwd=self.root, network=True)
        return done.stdout if done.returncode == 0 else None

    def add_worktree(self, folder: Path, sha: str) -> None:
        """Checks a commit out in a new folder, on no branch."""
        self._ask(
            "worktree", "add", "--quiet", "--detach", "--force", str(folder), sha, network=True
        )

    def _names(self, *arguments: str) -> tuple[str, ...]:
        return tuple(os.fsdecode(name) for name in self._ask(*arguments).split(b"\0") if name)

    def _ask(self, *arguments: str, network: bool = False) -> bytes:
        done = self._call(*arguments, cwd=self.root, network=network)
        if done.returncode != 0:
            raise _refused(arguments[0], done)
        return done.stdout

    def _call(self, *arguments: str, cwd: Path, network: bool = False) -> errand.CompletedBytes:
        timeout = _NETWORK_SECONDS if network else _LOCAL_SECONDS
        try:
            return errand.call(
                ("git", *arguments),
                cwd=cwd,
                environment=self._environment(network),
                timeout=timeout,
            )
        except TimeoutError as error:
            raise GitError(
                f"`git {arguments[0]}` took longer than {timeout:g} s",
                "see whether the origin answers",
            ) from error
        except OSError as error:
            if not cwd.is_dir():
                raise GitError(
                    f"there is no folder {cwd}", "check the repository out first"
                ) from error
            raise GitError(
                f"`git {arguments[0]}` could not be run: {error}",
                "install git and put it on the PATH",
            ) from error

    def _environment(self, network: bool) -> dict[str, str]:
        environment = {"PATH": _PATH} | {
            name: self.environ[name] for name in _PASSED_ON if name in self.environ
        }
        environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        config = list(_CONFIG)
        if network:
            environment |= {name: self.environ[name] for name in _PROXIES if name in self.environ}
            config += self._authorization()
        environment["GIT_CONFIG_COUNT"] = str(len(config))
        for number, (key, value) in enumerate(config):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        return environment

    def _authorization(self) -> list[tuple[str, str]]:
        if not self.token:
            return []
        key = f"http.{self.server_url.rstrip('/')}/.extraheader"
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode("ascii")
        # The empty value takes away the header that `actions/checkout` left in the configuration:
        # two are refused by the server.
        return [(key, ""), (key, f"AUTHORIZATION: basic {basic}")]


def _changed(output: bytes) -> tuple[ChangedFile, ...]:
    fields = iter(os.fsdecode(part) for part in output.split(b"\0"))
    found = []
    for letter in fields:
        if not letter:
            break
        status = _STATUSES.get(letter[0], "changed")
        previous = next(fields) if letter[0] in "RC" else None
        path = next(fields)
        found.append(
            ChangedFile(path, "added")
            if status == "copied"
            else ChangedFile(path, status, previous)
        )
    return tuple(found)


def _refused(command: str, done: errand.CompletedBytes) -> GitError:
    return GitError(f"`git {command}` failed: {_last_line(done.stderr)}")


def _last_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (fatal or lines or ["it says nothing"])[-1].removeprefix("fatal: ")
