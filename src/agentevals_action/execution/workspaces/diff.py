"""The unified diff of what an agent changed in its folder. Nothing outside the folder is read, and
no program of the agent runs.

The states of the folder are trees in a git repository outside of it, so that an agent may delete or
rewrite any `.git`. Files of repositories inside the folder appear with their full path. New ignored
files (caches, installed packages) are left out, by the rules from before the agent ran: an agent
that writes a `.gitignore` hides nothing."""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.formatting import counted
from agentevals_action.system.files.regular_files import read_regular
from agentevals_action.system.isolation import file_access_as
from agentevals_action.system.process import Completed
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder

T = TypeVar("T")

#: Characters of a diff that are kept, and of the list of files after a diff that was cut.
MAX_CHARACTERS, _MAX_LISTED = 1_000_000, 50_000
#: Bytes of a file that a diff shows.
MAX_FILE_BYTES = 20_000_000
#: Bytes of a path. The operating system allows little more.
_MAX_PATH = 3_500
_RULES, _MAX_RULES = ".gitignore", 1_000_000
#: The files of a new repository. No name is refused for the sake of other operating systems, and no
#: file of the folder changes how files are read or shown.
_STORE = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n\tbare = true\n\tprotectNTFS = false\n\tprotectHFS = false\n"
    "\tcompression = 0\n\tquotePath = false\n",
    "info/attributes": "* !filter !text !eol !crlf !ident !diff !working-tree-encoding\n",
}


@dataclass
class _Content:
    """Paths in a folder: `files` are regular files and links, `odd` is what a diff cannot show,
    with values that change with it."""

    files: list[str] = field(default_factory=list)
    odd: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def without(self, paths: Collection[str]) -> "_Content":
        """The content without some paths."""
        files = [path for path in self.files if path not in paths]
        return _Content(files, {path: one for path, one in self.odd.items() if path not in paths})


class FolderDiff:
    """The diff of one folder; `store` is a folder outside of it for the stored states. `objects`
    are folders of git objects that hold much of the content."""

    def __init__(self, git: Git, folder: Path, store: Path, objects: Sequence[Path] = ()) -> None:
        self._git, self._folder, self._store = git, folder, store
        self._rules, self._index = store / "rules", store / "index"
        self._objects = ":".join(map(str, objects))
        #: The files that the workspace was made of: they count even where they are ignored.
        self._own: frozenset[str] = frozenset()
        self._tree, self._odd = "", dict[str, tuple[int, ...]]()

    async def adopt(self) -> None:
        """Records the current content as what the workspace is made of. Raises AttemptError."""
        self._own = frozenset((await self._in_thread(_read, self._folder)).files)
        await self._in_thread(self._make_store)

    def _make_store(self) -> None:
        for name in ("objects", "refs", "info", "rules"):
            (self._store / name).mkdir(parents=True)
        for name, text in _STORE.items():
            (self._store / name).write_text(text, encoding="utf-8")

    async def begin(self) -> None:
        """Records the state that the agent starts from. Raises AttemptError."""
        content = await self._in_thread(_read, self._folder)
        await self._in_thread(self._copy_rules, content)
        content = content.without(await self._ignored(content))
        self._tree, self._odd = await self._write_tree(content), content.odd

    async def since_begin(self) -> str:
        """The unified diff since `begin`, and a line with the number of changes that a diff cannot
        show; empty when nothing changed.

        It is cut at 1,000,000 characters and then lists the changed files. Raises AttemptError.
        """
        content = await self._in_thread(_read, self._folder)
        content = content.without(await self._ignored(content))
        tree = await self._write_tree(content)
        return await self._shown(tree) + _describe_odd(self._odd, content.odd)

    async def ignored(self) -> list[str]:
        """The ignored files of the folder, by the rules of the last `begin`."""
        return sorted(await self._ignored(await self._in_thread(_read, self._folder)))

    async def _shown(self, tree: str) -> str:
        if tree == self._tree:
            return ""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--find-renames", self._tree, tree)
        shown = await self._call(*words)
        text = shown.stdout.replace("\0", "\ufffd")
        if not shown.truncated and len(text) <= MAX_CHARACTERS:
            return text
        listing = await self._call("diff", "--name-status", "--no-renames", self._tree, tree)
        names = _whole_lines(listing.stdout, _MAX_LISTED).splitlines()
        left = listing.stdout.count("\n") - len(names)
        return "\n".join(
            [
                _whole_lines(text, MAX_CHARACTERS),
                f"# The diff is cut here, at {MAX_CHARACTERS:,} characters. The changed files:",
                *(f"# {name}" for name in names),
                *([f"# … and {left} more"] if left else []),
                "",
            ]
        )

    async def _write_tree(self, content: _Content) -> str:
        """The id of the content as a tree in the store. The index is a new one, and every file is
        read: an agent can set the times of files."""
        await self._in_thread(self._index.unlink, True)
        if content.files:
            words = ("update-index", "-z", "--add", "--remove", "--stdin")
            await self._call(*words, tree=self._folder, paths=content.files)
        return (await self._call("write-tree")).stdout.strip()

    def _copy_rules(self, content: _Content) -> None:
        """Copies the ignore rules into a tree of their own."""
        remove_folder(self._rules)
        self._rules.mkdir()
        for path in (self._folder / path for path in content.files):
            if path.name == _RULES and not path.is_symlink():
                copy = self._rules / path.relative_to(self._folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(read_regular(path, _MAX_RULES))

    async def _ignored(self, content: _Content) -> set[str]:
        # With `./` before it no name is a pathspec of git's (`:(exclude)x`).
        paths = [f"./{path}" for path in (*content.files, *content.odd) if path not in self._own]
        if not paths:
            return set()
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        done = await self._call(*words, paths=paths, codes=(0, 1))
        return {path.removeprefix("./") for path in done.stdout.split("\0") if path}

    async def _in_thread(self, work: Callable[..., T], *values: Any) -> T:
        """Works on files with the rights of the folder's user."""

        def run() -> T:
            with file_access_as(self._git.user):
                return work(*values)

        try:
            return await in_thread(run)
        except OSError as error:
            problem = f"the content of the workspace cannot be read: {error}"
            raise AttemptError("workspace", problem) from error

    async def _call(
        self,
        *words: str,
        tree: Path | None = None,
        paths: Sequence[str] = (),
        codes: tuple[int, ...] = (0,),
    ) -> Completed:
        """Runs git on the store, in the folder or in the tree of the rules."""
        tree = tree or self._rules
        variables = {
            "GIT_DIR": str(self._store),
            "GIT_WORK_TREE": str(tree),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._objects,
        }
        stdin = "".join(f"{path}\0" for path in paths)
        return await self._git.run(*words, cwd=tree, variables=variables, stdin=stdin, codes=codes)


def _read(folder: Path) -> _Content:
    """The content of a folder without its `.git` folders; nothing if it is no folder any more."""
    content, waiting = _Content(), [""]
    if folder.is_symlink() or not folder.is_dir():
        return content
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(folder / path) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed by a process that the agent left running
        except OSError:
            content.odd[path] = ()
            continue
        for entry in entries:
            if entry.name == ".git":
                continue
            below = f"{path}/{entry.name}" if path else entry.name
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if _is_odd(below, entry.name, facts):
                content.odd[below] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ino)
            elif stat.S_ISDIR(facts.st_mode):
                waiting.append(below)
            else:
                content.files.append(below)
    return content


def _is_odd(path: str, name: str, facts: os.stat_result) -> bool:
    """Whether git cannot store an entry, or a diff with it would be too long."""
    is_link, is_file = stat.S_ISLNK(facts.st_mode), stat.S_ISREG(facts.st_mode)
    if not (is_link or is_file or stat.S_ISDIR(facts.st_mode)):
        return True
    if not is_link and not facts.st_mode & stat.S_IRUSR:
        return True
    try:
        is_short = len(path.encode()) <= _MAX_PATH
    except UnicodeEncodeError:
        return True
    refused = name.lower() == ".git" or (is_link and name.lower() == ".gitmodules")
    return refused or not is_short or (is_file and facts.st_size > MAX_FILE_BYTES)


def _whole_lines(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rpartition("\n")[0]


def _describe_odd(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> str:
    changed = sum(before.get(path) != after.get(path) for path in before.keys() | after.keys())
    if not changed:
        return ""
    return (
        f"# {counted(changed, 'change')} cannot be shown: special or unreadable files, files over "
        f"{MAX_FILE_BYTES // 1_000_000} MB, or names that git does not take\n"
    )
