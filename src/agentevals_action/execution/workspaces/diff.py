"""The unified diff of what an agent changed in its folder. Nothing outside the folder is read, and
no program of the agent runs.

The states of the folder are trees in a git repository outside of it, so that an agent may delete or
rewrite any `.git`. Files of repositories inside the folder appear with their full path. New ignored
files (caches, installed packages) are left out, by the rules from before the agent ran: an agent
that writes a `.gitignore` hides nothing."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.formatting import counted
from agentevals_action.system.files.regular_files import read_regular
from agentevals_action.system.isolation import in_thread_as
from agentevals_action.system.process import Completed
from agentevals_action.system.temp_dirs import remove_folder

T = TypeVar("T")
#: The paths in a folder: None for regular files and links; for an entry that a diff cannot show,
#: values that change when the entry changes.
Content = dict[str, tuple[int, ...] | None]

#: Characters of a diff that are kept, and of the list of files after a diff that was cut.
MAX_CHARACTERS, _MAX_LISTED = 1_000_000, 50_000
#: Bytes of a file that a diff shows.
MAX_FILE_BYTES = 20_000_000
_RULES, _MAX_RULES = ".gitignore", 1_000_000
#: The files of a new repository. No name is refused for the sake of other operating systems, and no
#: file of the folder changes how files are read or shown.
_STORE = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n\tbare = true\n\tprotectNTFS = false\n\tprotectHFS = false\n"
    "\tcompression = 0\n\tquotePath = false\n",
    "info/attributes": "* !filter !text !eol !crlf !ident !diff !working-tree-encoding\n",
}


class FolderDiff:
    """The diff of one folder; `store` is a folder outside of it, for its stored states. `objects`
    are folders of git objects that hold much of the content."""

    def __init__(self, git: Git, folder: Path, store: Path, objects: Sequence[Path] = ()) -> None:
        self._git, self._folder, self._store = git, folder, store
        self._rules, self._index = store / "rules", store / "index"
        self._objects = ":".join(map(str, objects))
        #: The paths that the workspace was made of: they count even where they are ignored.
        self._own: frozenset[str] = frozenset()
        self._tree, self._content = "", Content()

    async def adopt(self) -> None:
        """Records the current content as what the workspace is made of. Raises AttemptError."""
        self._own = frozenset(await self._read())
        await self._in_thread(self._make_store)

    def _make_store(self) -> None:
        for name in ("objects", "refs", "info", "rules"):
            (self._store / name).mkdir(parents=True)
        for name, text in _STORE.items():
            (self._store / name).write_text(text, encoding="utf-8")

    async def begin(self) -> None:
        """Records the state that the agent starts from. Raises AttemptError."""
        content = await self._read()
        await self._in_thread(self._copy_rules, content)
        self._tree, self._content = await self._write_tree(content)

    async def since_begin(self) -> str:
        """The unified diff since `begin`, and a line with the number of changes that a diff cannot
        show; empty when nothing changed.

        It is cut at 1,000,000 characters and then lists the changed files. Raises AttemptError."""
        tree, content = await self._write_tree(await self._read())
        changed = sum(
            self._content.get(path) != content.get(path) for path in self._content.keys() | content
        )
        return await self._shown(tree) + (_describe_hidden(changed) if changed else "")

    async def ignored(self) -> list[str]:
        """The ignored paths of the folder, by the rules of the last `begin`."""
        return sorted(await self._ignored(await self._read()))

    async def _shown(self, tree: str) -> str:
        if tree == self._tree:
            return ""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--find-renames", self._tree, tree)
        done = await self._call(*words)
        text = done.stdout.replace("\0", "\ufffd")
        if not done.truncated and len(text) <= MAX_CHARACTERS:
            return text
        names = await self._call("diff", "--name-status", "--no-renames", self._tree, tree)
        number = counted(names.stdout.count("\n"), "changed file")
        cut = f"The diff is cut here, at {MAX_CHARACTERS:,} characters. {number}:"
        listed = _whole_lines(names.stdout, _MAX_LISTED).splitlines()
        return "\n# ".join([_whole_lines(text, MAX_CHARACTERS), cut, *listed]) + "\n"

    async def _write_tree(self, content: Content) -> tuple[str, Content]:
        """The id of the content as a tree in the store, without ignored files, and the content that
        a diff cannot show. The index is new, and every file is read: an agent can set the times of
        files."""
        ignored = await self._ignored(content)
        files = [path for path, state in content.items() if not state and path not in ignored]
        await self._in_thread(self._index.unlink, True)
        if files:
            words = ("update-index", "-z", "--add", "--remove", "--stdin")
            await self._call(*words, tree=self._folder, paths=files)
        tree = (await self._call("write-tree")).stdout.strip()
        return tree, {p: state for p, state in content.items() if state and p not in ignored}

    def _copy_rules(self, content: Content) -> None:
        """Copies the ignore rules into a tree of their own."""
        remove_folder(self._rules)
        self._rules.mkdir()
        for path in (self._folder / path for path, state in content.items() if not state):
            if path.name == _RULES and not path.is_symlink():
                copy = self._rules / path.relative_to(self._folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(read_regular(path, _MAX_RULES))

    async def _ignored(self, content: Content) -> set[str]:
        # With `./` before it no name is a pathspec of git's (`:(exclude)x`).
        paths = [f"./{path}" for path in content.keys() - self._own]
        if not paths:
            return set()
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        done = await self._call(*words, paths=paths, codes=(0, 1))
        if done.truncated:
            raise AttemptError("workspace", "the list of its ignored files is over 10 MB")
        # The bytes: the text is redacted, and its last line is left out if it was cut.
        return {os.fsdecode(path).removeprefix("./") for path in done.output.split(b"\0") if path}

    async def _read(self) -> Content:
        return await self._in_thread(_read_folder, self._folder)

    async def _in_thread(self, work: Callable[..., T], *values: Any) -> T:
        """Works on files with the rights of the folder's user."""
        try:
            return await in_thread_as(self._git.user, work, *values)
        except OSError as error:
            problem = f"the content of the workspace cannot be read: {error}"
            raise AttemptError("workspace", problem) from error

    async def _call(
        self,
        *words: str,
        tree: Path | None = None,
        paths: Iterable[str] = (),
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


def _read_folder(folder: Path) -> Content:
    """The content of a folder without its `.git` folders; nothing if it is no folder any more."""
    content = Content()
    if folder.is_symlink():
        return content

    def add_unreadable(error: OSError) -> None:
        # A process that the agent left running may remove files.
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            content[os.path.relpath(error.filename, folder)] = (0,)

    for parent, folders, files in os.walk(folder, onerror=add_unreadable):
        names, folders[:] = (*folders, *files), []
        for path in (Path(parent, name) for name in names if name != ".git"):
            try:
                facts = path.lstat()
            except OSError as error:
                add_unreadable(error)
                continue
            below = path.relative_to(folder).as_posix()
            if _is_hidden(below, facts):
                content[below] = facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ino
            elif stat.S_ISDIR(facts.st_mode):
                folders.append(path.name)
            else:
                content[below] = None
    return content


def _is_hidden(path: str, facts: os.stat_result) -> bool:
    """Whether git cannot store an entry, or a diff with it would be too long."""
    name, mode = path.rpartition("/")[2], facts.st_mode
    if name.lower() == ".git" or path != path.encode("utf-8", "replace").decode():
        return True
    if stat.S_ISLNK(mode):
        return name == ".gitmodules"
    is_file = stat.S_ISREG(mode)
    if is_file and facts.st_size > MAX_FILE_BYTES:
        return True
    return not (is_file or stat.S_ISDIR(mode)) or not mode & stat.S_IRUSR


def _whole_lines(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit].rpartition("\n")[0]


def _describe_hidden(changes: int) -> str:
    return (
        f"# {counted(changes, 'change')} cannot be shown: special or unreadable files, files over "
        f"{MAX_FILE_BYTES // 1_000_000} MB, or names that git does not take\n"
    )
