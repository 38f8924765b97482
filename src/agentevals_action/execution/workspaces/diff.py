"""The unified diff of what an agent changed in its folder. Nothing outside the folder is read, and
no program of the agent runs.

The states of the folder are stored in a git repository outside of it, so that an agent may delete
or rewrite any `.git`. Files of repositories inside the folder appear with their full path. New
ignored files (caches, installed packages) are left out, by the rules from before the agent ran: an
agent that writes a `.gitignore` hides nothing."""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.formatting import printable_path
from agentevals_action.system.files.tree_files import TreeEntry, list_folder, walk
from agentevals_action.system.isolation import file_access_as
from agentevals_action.system.process import Completed
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder

T = TypeVar("T")

#: Characters of a diff that are kept, and of the list of files after a diff that was cut.
MAX_CHARACTERS, _MAX_LISTED = 1_000_000, 50_000
#: Bytes of a file that a diff shows; of a larger file it only states that it changed.
MAX_FILE_BYTES = 20_000_000
#: Bytes of a path. The operating system allows little more.
_MAX_PATH = 3_500
#: Paths that git gets at once. Its answer may be as long, and output over 10 MB is cut.
_BATCH = 1_000
_RULES = ".gitignore"
#: No file of the folder changes how files are read or shown.
_ATTRIBUTES = "* !filter !text !eol !crlf !ident !diff !working-tree-encoding\n"
#: No name is refused for the sake of other operating systems.
_SETTINGS = (
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.compression=0",
    "core.quotePath=false",
)
_OPTIONS = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_UPDATE = ("update-index", "-z")
_DIFF = (
    *("diff", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--find-renames", "-l1000", "--src-prefix=a/", "--dst-prefix=b/"),
)


@dataclass
class _State:
    """The content of a folder: `files` are regular files and links that count (the time of the last
    change in nanoseconds by path), `odd` is what a diff cannot show (a description, and values that
    change with it) by path, `ignored` are the ignored paths (a folder stands for everything in
    it)."""

    files: dict[str, int] = field(default_factory=dict)
    odd: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


class FolderDiff:
    """The diff of one folder; `store` is a folder outside of it for the stored states."""

    def __init__(self, git: Git, folder: Path, store: Path) -> None:
        self._git, self._folder = git, folder
        self._store, self._rules = store, store / "rules"
        #: Paths of the files, and of the folders above them, that the workspace was made of.
        self._own_files: set[str] = set()
        self._own_folders: set[str] = set()
        self._indexed: dict[str, int] = {}
        self._tree, self._begin_state = "", _State()

    async def adopt(self, objects: Sequence[Path]) -> None:
        """Records the current content as what the workspace is made of; it counts even where it is
        ignored. `objects` are git object folders that hold much of it. Raises AttemptError."""
        found = await self._in_thread(lambda: list(walk(self._folder)))
        with self._file_access():
            self._own_files = {entry.path for entry in found if not entry.is_folder}
            self._own_folders = {
                str(above) for path in self._own_files for above in PurePosixPath(path).parents
            }
            self._rules.mkdir(parents=True)
        await self._git.run("init", "--quiet", "--template=", str(self._store), cwd=self._store)
        with self._file_access():
            info = self._store / ".git" / "info"
            info.mkdir(exist_ok=True)
            (info / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
            if objects:
                alternates = self._store / ".git" / "objects" / "info" / "alternates"
                alternates.write_text("".join(f"{path}\n" for path in objects), encoding="utf-8")

    async def begin(self) -> None:
        """Records the state that the agent starts from. Raises AttemptError."""
        await self._in_thread(remove_folder, self._rules)
        await self._in_thread(self._rules.mkdir)
        self._begin_state = await self._read(learn_rules=True)
        self._tree = await self._write_tree(self._begin_state)

    async def since_begin(self) -> str:
        """The unified diff since `begin`, with `#` lines for what a diff cannot show; empty when
        nothing changed.

        It is cut at 1,000,000 characters and then lists the changed files. Raises AttemptError.
        """
        state = await self._read()
        tree = await self._write_tree(state)
        remarks = _remarks(self._begin_state, state)
        if tree == self._tree:
            return remarks
        shown = await self._call(*_DIFF, self._tree, tree)
        text = shown.stdout.replace("\0", "\ufffd")
        if not shown.truncated and len(text) <= MAX_CHARACTERS:
            return text + remarks
        listing = await self._call("diff", "--name-status", "--no-renames", self._tree, tree)
        names = listing.stdout
        count = names.count("\n")
        if len(names) > _MAX_LISTED:
            names = f"{names[:_MAX_LISTED].rpartition(chr(10))[0]}\n…\n"
        cut = text[:MAX_CHARACTERS].rpartition("\n")[0]
        note = f"# The diff is cut here, at {MAX_CHARACTERS:,} characters. "
        note += f"The files that changed, {count} in all:\n"
        return (
            f"{cut}\n{note}{''.join(f'# {line}{chr(10)}' for line in names.splitlines())}{remarks}"
        )

    async def ignored(self) -> list[str]:
        """Ignored paths of the folder by the rules of the last `begin`; a folder stands for
        everything in it."""
        return (await self._read()).ignored

    async def _write_tree(self, state: _State) -> str:
        """The id of the state as a tree in the stored repository."""
        # Attack: git compares times in seconds. A file that keeps its size and its mtime, and that
        # changes in the second in which it was made, would be unchanged: it is hashed again.
        old = [path for path, time in self._indexed.items() if state.files.get(path) != time]
        if old:
            await self._call(*_UPDATE, "--force-remove", "--stdin", stdin=_joined(sorted(old)))
        if state.files:
            words = (*_UPDATE, "--add", "--remove", "--replace", "--stdin")
            await self._call(*words, reads_folder=True, stdin=_joined(state.files))
        self._indexed = state.files
        return (await self._call("write-tree")).stdout.strip()

    async def _read(self, learn_rules: bool = False) -> _State:
        """Reads the folder level by level, so that nothing below an ignored folder is read."""
        state, level = _State(), [""]
        if self._folder.is_symlink() or not self._folder.is_dir():
            return _State(odd={".": ("the folder itself, which is not a folder any more", ())})
        while level:
            if learn_rules:
                await self._in_thread(self._copy_rules, level)
            found = await self._in_thread(_read_level, self._folder, level, state)
            ignored = await self._ignored([entry for entry in found if not self._is_own(entry)])
            state.ignored += sorted(ignored)
            kept = [entry for entry in found if entry.path not in ignored]
            state.files |= {
                entry.path: entry.facts.st_ctime_ns for entry in kept if not entry.is_folder
            }
            level = [entry.path for entry in kept if entry.is_folder]
        return state

    def _is_own(self, entry: TreeEntry) -> bool:
        return entry.path in (self._own_folders if entry.is_folder else self._own_files)

    def _copy_rules(self, level: Sequence[str]) -> None:
        """Copies the ignore rules of one level of folders into the folder of rules."""
        for path in level:
            rules, is_file = self._folder / path / _RULES, False
            with contextlib.suppress(OSError):
                is_file = stat.S_ISREG(rules.lstat().st_mode)
            if is_file:
                (self._rules / path).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(rules, self._rules / path / _RULES, follow_symlinks=False)

    async def _ignored(self, found: Sequence[TreeEntry]) -> set[str]:
        """The paths that the rules ignore. Folders are made in the folder of rules, because git
        looks there whether a path is a folder."""
        with self._file_access():
            for entry in found:
                if entry.is_folder:
                    (self._rules / entry.path).mkdir(parents=True, exist_ok=True)
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        ignored: set[str] = set()
        for start in range(0, len(found), _BATCH):
            # With `./` before it no name is a pathspec of git's (`:(exclude)x`).
            paths = [f"./{entry.path}" for entry in found[start : start + _BATCH]]
            done = await self._call(*words, stdin=_joined(paths), codes=(0, 1))
            ignored.update(path.removeprefix("./") for path in done.stdout.split("\0") if path)
        return ignored

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        def run() -> T:
            with self._file_access():
                return work(*arguments)

        return await in_thread(run)

    @contextlib.contextmanager
    def _file_access(self) -> Iterator[None]:
        """Work on files with the rights of the folder's user."""
        with _read_errors(), file_access_as(self._git.user):
            yield

    async def _call(
        self,
        *words: str,
        reads_folder: bool = False,
        stdin: str = "",
        codes: tuple[int, ...] = (0,),
    ) -> Completed:
        """Runs git on the stored repository, in the agent's folder or in the folder of rules."""
        tree = self._folder if reads_folder else self._rules
        variables = {"GIT_DIR": str(self._store / ".git"), "GIT_WORK_TREE": str(tree)}
        return await self._git.run(
            *_OPTIONS, *words, cwd=tree, variables=variables, stdin=stdin, codes=codes
        )


def _read_level(folder: Path, level: Sequence[str], state: _State) -> list[TreeEntry]:
    """What may count in one level of folders, in order; what a diff cannot show goes to `state`."""
    found = []
    for path in level:
        try:
            inside = list(list_folder(folder, path))
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed by a process that the agent left running
        except OSError as error:
            description = f"a folder that cannot be read ({error.strerror})"
            state.odd[printable_path(path) or "."] = (description, ())
            continue
        for entry in inside:
            if description := _oddity(folder, entry):
                facts = entry.facts
                changes = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
                state.odd[printable_path(entry.path)] = (description, (*changes, facts.st_ino))
            elif PurePosixPath(entry.path).name != ".git":
                found.append(entry)
    return found


def _oddity(folder: Path, entry: TreeEntry) -> str:
    """Why a diff cannot show an entry, empty when it can."""
    if printable_path(entry.path) != entry.path:
        return "something whose name is not UTF-8"
    if len(entry.path.encode()) > _MAX_PATH:
        return "something whose path is too long"
    name = PurePosixPath(entry.path).name
    is_modules_link = name.lower() == ".gitmodules" and entry.is_link
    if name != ".git" and (name.lower() == ".git" or is_modules_link):
        return "something that is named like a part of git"
    return "" if entry.is_folder or entry.is_link else _file_oddity(folder, entry)


def _file_oddity(folder: Path, entry: TreeEntry) -> str:
    if not entry.is_file:
        names = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
        return names.get(stat.S_IFMT(entry.facts.st_mode), "a device")
    if entry.facts.st_size > MAX_FILE_BYTES:
        return f"a file of {entry.facts.st_size:,} bytes, too large to be shown"
    try:  # access(2) asks for the rights of the real user
        os.close(os.open(folder / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except PermissionError:
        return "a file that cannot be read"
    except OSError:  # removed since, by a process that the agent left running
        return ""
    return ""


@contextlib.contextmanager
def _read_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"the content of the workspace cannot be read: {error}"
        raise AttemptError("workspace", problem) from error


def _remarks(before: _State, after: _State) -> str:
    lines = []
    for path in sorted(before.odd.keys() | after.odd.keys()):
        if before.odd.get(path) == after.odd.get(path):
            continue
        word = "gone" if path not in after.odd else "changed" if path in before.odd else "new"
        description = after.odd.get(path, before.odd.get(path, ("", ())))[0]
        name = "".join(char if char.isprintable() else "\ufffd" for char in path)
        lines.append(f"# {word}: {description}: {name}\n")
    return "".join(lines)


def _joined(paths: Iterable[str]) -> str:
    return "".join(f"{path}\0" for path in paths)
