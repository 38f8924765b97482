"""The git repository of a review: commits, changed files, the tree of a commit. Git runs no program
of the workspace, which contains an untrusted change."""

import base64
import hashlib
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.errors import GitError
from agentevals_action.system import process
from agentevals_action.system.program import Program
from agentevals_action.system.resources import exhausted
from agentevals_action.system.temp_dirs import temp_folder

_LOCAL_SECONDS = 120.0
_NETWORK_SECONDS = 300.0
#: Files of each side among which renames with changes are detected; unchanged ones always are.
_RENAME_LIMIT = 3000

#: The PATH if the caller has none.
_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
#: The variables that git gets from the caller. No `GIT_*`: inside a hook they name another
#: repository.
_PASSED_ON = re.compile(
    r"PATH|HOME|XDG_CONFIG_HOME|TMPDIR|SSH_AUTH_SOCK|SSL_CERT_FILE|SSL_CERT_DIR"
)
_PROXIES = re.compile(r"(?i:http|https|all|no)_(?:proxy|PROXY)")

_CONFIG = (
    # The container is root in a workspace of another owner. The folder that git will use is not
    # known before git has found it, and this applies to our calls alone.
    ("safe.directory", "*"),
    # No program of the workspace runs, and no process of git stays in the background.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    # The author of the action's own commits.
    ("user.name", "github-actions[bot]"),
    ("user.email", "41898282+github-actions[bot]@users.noreply.github.com"),
)
#: Bytes of output that git may write: part of a list of files would be a wrong answer.
_OUTPUT_LIMIT = 256 * 1024 * 1024
_STATUSES = {
    "A": "added",
    "D": "removed",
    "M": "modified",
    "R": "renamed",
    "C": "copied",
    "T": "changed",
}


@dataclass(frozen=True)
class ChangedFile:
    """A file of the change, POSIX paths relative to the repository; `previous_path` only when it
    was renamed."""

    path: str
    status: str
    previous_path: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Its path and, if it was renamed, the former one. A copied file has none."""
        if self.status == "renamed" and self.previous_path:
            return (self.path, self.previous_path)
        return (self.path,)


@dataclass(frozen=True)
class TreeListing:
    """Paths relative to the root of a repository: `files` are on disk and tracked or not ignored,
    sorted; of the `tracked` ones, `missing` are not on disk."""

    files: tuple[str, ...]
    tracked: frozenset[str]
    missing: frozenset[str]


class GitRepository:
    """A git repository; `root` is the top folder of its working tree, absolute and free of symbolic
    links. `token` is sent to `server_url` alone, in a header; only calls that may ask the
    origin get it. No other call uses the network.

    Every method raises GitError if git is missing or fails."""

    def __init__(
        self,
        root: Path,
        token: str | None = None,
        server_url: str = "https://github.com",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.root, self.token, self.server_url = root, token, server_url
        self.environ = environ or {}
        self._commits: dict[str, Sequence[tuple[str, str]]] = {}

    @classmethod
    async def open(
        cls,
        path: Path,
        token: str | None = None,
        server_url: str = "https://github.com",
        environ: Mapping[str, str] | None = None,
    ) -> "GitRepository":
        """The repository that contains `path`. GitError if there is none with a working tree."""
        repository = cls(path, token, server_url, environ)
        done = await repository._call("rev-parse", "--show-toplevel")
        if done.returncode == 0:
            repository.root = Path(os.fsdecode(done.output.removesuffix(b"\n"))).resolve()
            return repository
        advice = "change to the folder of your repository, or make this one with `git init`"
        if repository.environ.get("GITHUB_ACTIONS") == "true":
            advice = "put `- uses: actions/checkout@v4` before this step, without `path`"
        raise GitError(f"{path} is not a git repository ({_last_line(done.stderr)})", advice)

    async def metadata(self) -> Path:
        """The folder that all worktrees of the repository share (`.git`), absolute."""
        folder = await self._read("rev-parse", "--path-format=absolute", "--git-common-dir")
        return Path(os.fsdecode(folder.removesuffix(b"\n")))

    async def head(self) -> str:
        """SHA of HEAD's commit."""
        if (sha := await self.resolve("HEAD")) is None:
            raise GitError("the repository has no commit yet", "commit something first")
        return sha

    async def resolve(self, revision: str) -> str | None:
        """SHA of the commit that a revision names; None if it is not in the repository."""
        return next((value for _, value in await self._headers(revision)), None)

    async def has(self, sha: str) -> bool:
        """Whether the repository contains the commit."""
        return await self.resolve(sha) is not None

    async def parents(self, sha: str) -> tuple[str, ...]:
        """SHAs of the parents that a commit names. A shallow clone has the names, but not the
        commits."""
        return tuple(value for name, value in await self._headers(sha) if name == "parent")

    async def commit_time(self, sha: str) -> str:
        """The time of a commit: ISO 8601, UTC."""
        for name, value in await self._headers(sha):
            if name == "committer" and (match := re.search(r" (\d+) [+-]\d{4}$", value)):
                return datetime.fromtimestamp(int(match[1]), UTC).isoformat().replace("+00:00", "Z")
        raise GitError(f"{sha} is no commit of the repository, or has no date")

    async def _headers(self, revision: str) -> Sequence[tuple[str, str]]:
        """The SHA of a commit (`commit`) and its headers, as they are stored; empty if the
        repository does not contain it."""
        if revision in self._commits:
            return self._commits[revision]
        if not revision or revision.startswith(("-", "^")) or ".." in revision:
            return ()  # no commit, or a range of them
        options = ("--no-walk", "--format=raw")
        done = await self._call("rev-list", *options, f"{revision}^{{commit}}", "--")
        if done.returncode != 0:
            return ()
        lines = done.stdout.partition("\n\n")[0].split("\n")
        headers = [(name, value) for name, _, value in (line.partition(" ") for line in lines)]
        self._commits[headers[0][1]] = headers
        return headers

    async def is_shallow(self) -> bool:
        """Whether the history is cut off."""
        reply = await self._read("rev-parse", "--is-shallow-repository")
        return reply.strip() == b"true"

    async def merge_base(self, commit: str, other: str) -> str | None:
        """SHA of the best common ancestor; None if the repository contains none."""
        done = await self._call("merge-base", commit, other)
        if done.returncode == 1:
            return None
        return _checked("merge-base", done).decode("ascii").strip()

    async def author(self) -> str:
        """The name of the user in the configuration, else the e-mail address; empty without."""
        done = await self._call("config", "--show-scope", "--get-regexp", r"^user\.(name|email)$")
        lines = (line.split(maxsplit=2) for line in os.fsdecode(done.output).splitlines())
        # The last value of a key holds; the values of the command are the action's own.
        values = {words[1]: words[2] for words in lines if words[0] != "command" and words[2:]}
        return values.get("user.name") or values.get("user.email", "")

    async def fetch(self, sha: str) -> None:
        """Fetches one commit from `origin`, without its history if the clone is shallow: a complete
        clone stays complete."""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        depth = ["--depth=1"] if await self.is_shallow() else []
        await self._read("fetch", *options, *depth, "--", "origin", sha, network=True)

    async def origin(self) -> str:
        """The URL of `origin`; with a token, a URL for SSH becomes one of the server."""
        done = await self._call("remote", "get-url", "origin")
        if done.returncode != 0:
            raise GitError("the repository has no remote `origin`", "add it with `git remote add`")
        url = os.fsdecode(done.output).strip()
        over_ssh = re.fullmatch(r"(?:ssh://)?git@[^/:]+[/:](.+)", url)
        return f"{self.server_url}/{over_ssh[1]}" if over_ssh and self.token else url

    async def create(self, folder: Path) -> "GitRepository":
        """A new repository in an empty folder, with the same origin and token."""
        created = GitRepository(folder, self.token, self.server_url, self.environ)
        await created._read("init", "--quiet", "--template=")
        await created._read("remote", "add", "origin", await self.origin())
        return created

    async def fetch_branch(self, name: str) -> str | None:
        """Fetches the last commit of a branch of `origin`, without its history, and gives its SHA;
        None if there is no such branch."""
        reply = await self._read("ls-remote", "--", "origin", f"refs/heads/{name}", network=True)
        sha = reply.decode("ascii", "replace").partition("\t")[0]
        if sha and not await self.has(sha):
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1")
            await self._read("fetch", *options, "--", "origin", sha, network=True)
        return sha or None

    async def commit_all(self, message: str) -> None:
        """Commits everything in the working tree, in the name of GitHub's bot."""
        await self._read("add", "--all", "--force")
        await self._read("commit", "--quiet", "--no-gpg-sign", "--message", message)

    async def push(self, branch: str) -> None:
        """Pushes HEAD to a branch of `origin`, never by force."""
        await self._read("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}", network=True)

    async def blobs(self, differing: Collection[str]) -> dict[str, str]:
        """The ids of the contents of all tracked files by path: those of git, and for the paths
        that are `differing` from the commit, of the file on disk."""
        ids = {}
        for entry in (await self._read("ls-files", "-s", "-z")).split(b"\0"):
            about, _, name = entry.partition(b"\t")
            if name:
                ids[os.fsdecode(name)] = about.split()[1].decode("ascii")
        return ids | {path: _id_on_disk(self.root / path) for path in differing if path in ids}

    async def search(self, pattern: str, paths: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The lines of tracked files in which an extended regular expression matches, in capital or
        small letters, by path; `paths` are pathspecs. Attributes that call a text binary do not
        count."""
        options = ("-i", "-a", "-z", "--no-color", "--full-name", "--no-recurse-submodules")
        done = await self._call("grep", *options, "-E", "-e", pattern, "--", *paths)
        output = b"" if done.returncode == 1 else _checked("grep", done)
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for line in filter(None, output.split(b"\n")):
            name, _, text = line.partition(b"\0")
            lines[os.fsdecode(name)].append(text.decode("utf-8", "replace"))
        return lines

    async def changed_files(self, base: str, head: str | None = None) -> tuple[ChangedFile, ...]:
        """The files that changed from `base` to `head`, with renames; without `head`, to the
        working tree, untracked files included. Bytes of a name that are not UTF-8 become
        surrogates, as in all paths of Python."""
        options = ["--name-status", "-z", "--find-renames", "--no-ext-diff", "--no-relative"]
        options += [f"-l{_RENAME_LIMIT}", "--ignore-submodules=dirty"]
        if head is not None:
            output = await self._read("diff", *options, base, head, "--", network=True)
            return _parse_name_status(output)
        # With a copy of its index that names untracked files, git also detects renames to them.
        untracked = await self._names("ls-files", "-z", "--others", "--exclude-standard")
        repositories = [path for path in untracked if path.endswith("/")]
        async with temp_folder("agentevals-index-", Path(tempfile.gettempdir())) as folder:
            names, index = folder / "names", folder / "index"
            files = (os.fsencode(path) for path in untracked if not path.endswith("/"))
            names.write_bytes(b"\0".join(files))
            path = await self._read("rev-parse", "--path-format=absolute", "--git-path", "index")
            # With its time: git reads a file again that changed when the index was written.
            shutil.copy2(os.fsdecode(path.removesuffix(b"\n")), index)
            copy = {"GIT_INDEX_FILE": str(index), "GIT_LITERAL_PATHSPECS": "1"}
            if names.stat().st_size:
                source = (f"--pathspec-from-file={names}", "--pathspec-file-nul")
                await self._read("add", "--intent-to-add", *source, variables=copy)
            output = await self._read("diff", *options, base, "--", network=True, variables=copy)
        others = (ChangedFile(path, "added") for path in repositories)
        return (*_parse_name_status(output), *others)

    async def listing(self) -> "TreeListing":
        """The files of the working tree."""
        entries = await self._names(
            "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"
        )
        names = {entry[2:] for entry in entries}
        tracked = frozenset(entry[2:] for entry in entries if not entry.startswith("?"))
        missing = frozenset(name for name in tracked if not os.path.lexists(self.root / name))
        return TreeListing(tuple(sorted(names - missing)), tracked, missing)

    async def uncommitted(self) -> tuple[str, ...]:
        """The paths that differ from HEAD, and untracked ones that are not ignored; of a submodule
        its commit alone: in its folder, an agent may have made a repository with filters."""
        options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
        entries = await self._names("status", *options, "--ignore-submodules=dirty")
        return tuple(entry[3:] for entry in entries)

    async def untracked(self, pattern: str) -> tuple[str, ...]:
        """The paths, also ignored ones, that git does not track and a glob (`**/.env`) matches."""
        return await self._names("ls-files", "-z", "--others", "--", f":(glob){pattern}")

    async def ignores(self, path: Path) -> bool:
        """Whether git ignores an absolute path in the working tree."""
        return (await self._call("check-ignore", "--quiet", "--", str(path))).returncode == 0

    async def tracks(self, path: Path) -> bool:
        """Whether git tracks a file at or below an absolute path."""
        if not path.is_relative_to(self.root):
            return False
        inside = path.relative_to(self.root).as_posix()
        return bool(await self._names("ls-files", "-z", "--cached", "--", f":(literal){inside}"))

    async def show(self, sha: str, path: str) -> bytes | None:
        """The content of a file at a commit; None if the commit does not contain it."""
        done = await self._call("cat-file", "blob", f"{sha}:{path}", network=True)
        if done.returncode != 0 and path in done.stderr:  # `path 'x' does not exist in 'SHA'`
            return None
        return _checked("cat-file", done)

    async def check_out(self, sha: str) -> None:
        """Puts the working tree and HEAD on a commit, on no branch. Changes of tracked files are
        lost; other files stay."""
        await self._read("checkout", "--quiet", "--detach", "--force", sha, network=True)

    async def add_worktree(self, folder: Path, sha: str) -> None:
        """Checks a commit out in a new folder, on no branch."""
        options = ("--quiet", "--detach", "--force")
        await self._read("worktree", "add", *options, str(folder), sha, network=True)

    async def _names(self, *arguments: str) -> tuple[str, ...]:
        output = await self._read(*arguments)
        return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)

    async def _read(
        self, *arguments: str, network: bool = False, variables: Mapping[str, str] | None = None
    ) -> bytes:
        done = await self._call(*arguments, network=network, variables=variables)
        return _checked(arguments[0], done)

    async def _call(
        self, *arguments: str, network: bool = False, variables: Mapping[str, str] | None = None
    ) -> process.Completed:
        """Runs git with more `variables`; a call with `network` gets the token, for the origin and
        for the objects that are missing in a partial clone."""
        environment = self._environment(network) | dict(variables or {})
        program = Program(("git", *arguments), self.root, environment)
        try:
            done = await process.run(
                program,
                timeout=_NETWORK_SECONDS if network else _LOCAL_SECONDS,
                limit=_OUTPUT_LIMIT,
            )
        except OSError as error:
            if problem := exhausted(error):
                raise problem from error
            failed = program.start_error("", f"`git {arguments[0]}`", error)
            advice = "check the repository out first, and install git on the PATH"
            raise GitError(str(failed), advice) from error
        if done.timed_out or done.truncated:
            raise GitError(f"`git {arguments[0]}` {done.failure}", "see whether the origin answers")
        return done

    def _environment(self, network: bool) -> dict[str, str]:
        environment = {"PATH": _PATH}
        for name, value in self.environ.items():
            if _PASSED_ON.fullmatch(name) or (network and _PROXIES.fullmatch(name)):
                environment[name] = value
        # Without the optional lock a user's own git call at the same time does not fail.
        environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        if not network:  # in a partial clone git would fetch; before 2.44 the first has no effect
            environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
        config = [*_CONFIG, *(self._authorization() if network and self.token else ())]
        if authorities := environment.get("SSL_CERT_FILE"):  # Debian's git does not read it
            config.append(("http.sslCAInfo", authorities))
        environment["GIT_CONFIG_COUNT"] = str(len(config))
        for number, (key, value) in enumerate(config):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        return environment

    def _authorization(self) -> list[tuple[str, str]]:
        key = f"http.{self.server_url.rstrip('/')}/.extraheader"
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode("ascii")
        # The empty value removes the header that `actions/checkout` left in the configuration: the
        # server refuses two.
        return [(key, ""), (key, f"AUTHORIZATION: basic {basic}")]


def _checked(command: str, done: process.Completed) -> bytes:
    if done.returncode != 0:
        raise GitError(f"`git {command}` failed: {_last_line(done.stderr)}")
    return done.output


def _parse_name_status(output: bytes) -> tuple[ChangedFile, ...]:
    fields = iter(os.fsdecode(part) for part in output.split(b"\0"))
    changed = []
    for letter in fields:
        if not letter:
            break
        status = _STATUSES.get(letter[0], "changed")
        previous = next(fields) if letter[0] in "RC" else None
        path = next(fields)
        if status == "copied":
            status, previous = "added", None
        changed.append(ChangedFile(path, status, previous))
    return tuple(changed)


def _id_on_disk(path: Path) -> str:
    """The id that git gives the content of a file; for anything else a text that is no id."""
    try:
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError as error:
        return type(error).__name__
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _last_line(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (fatal or lines or ["no error message"])[-1].removeprefix("fatal: ")
