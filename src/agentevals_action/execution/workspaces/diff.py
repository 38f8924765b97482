"""What an agent did to its folder, as a unified diff; whatever it did, nothing outside is read and
nothing of its own is run.

The states of the folder are kept in a repository of ours outside of it, so that an agent may delete
or rewrite any `.git`. Files of repositories inside stand in it with their whole path. What is new
and ignored is left out (caches, installed packages), by the rules as they were before the agent
came: one that writes a `.gitignore` hides nothing."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.look import Owned, Seen, learn_rules, look
from agentevals_action.system.process import Completed
from agentevals_action.system.temp_dirs import remove_folder
from agentevals_action.system.tree_files import TreeEntry

#: Characters of a diff that are kept, and of the list of files that follows one that was cut.
MOST_CHARACTERS, _MOST_LISTED = 1_000_000, 50_000
#: Characters of paths that git is given at once, where its answer may be as long.
_BATCH = 4_000_000
#: Nothing that lies in the folder says how a file is read or shown, and no name is refused for the
#: sake of other systems.
_ATTRIBUTES = "* !filter !text !eol !crlf !ident !diff !working-tree-encoding\n"
_OPTIONS = (
    "-c",
    "core.protectNTFS=false",
    "-c",
    "core.protectHFS=false",
    "-c",
    "core.compression=0",
    "-c",
    "core.quotePath=false",
)
_DIFF = (
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "-l1000",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)


class Changes:
    """Follows one folder; `store` is a folder of ours for what it was."""

    def __init__(self, git: Git, folder: Path, store: Path) -> None:
        self._git, self._folder = git, folder
        self._store, self._rules = store, store / "rules"
        self._owned = Owned()
        self._known: set[str] = set()
        self._before, self._seen = "", Seen()

    async def adopt(self, objects: Sequence[Path]) -> None:
        """Takes what is in the folder now for what it is made of; `objects` hold much of it
        already. AttemptError."""
        with _told():
            self._owned = await asyncio.to_thread(Owned.of, self._folder)
            self._rules.mkdir(parents=True)
        await self._git.run("init", "--quiet", "--template=", str(self._store), cwd=self._store)
        with _told():
            info = self._store / ".git" / "info"
            info.mkdir(exist_ok=True)
            (info / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
            if objects:
                alternates = self._store / ".git" / "objects" / "info" / "alternates"
                alternates.write_text("".join(f"{path}\n" for path in objects), encoding="utf-8")

    async def begin(self) -> None:
        """Takes the folder as it is now for what the agent finds. AttemptError."""
        with _told():
            await asyncio.to_thread(remove_folder, self._rules)
            self._rules.mkdir()
        self._before, self._seen = await self._state(learn=True)

    async def diff(self) -> str:
        """The unified diff since `begin`, with lines that begin with `#` for what no diff can show;
        empty when nothing changed.

        It is cut at 1,000,000 characters and then lists the files instead. AttemptError when it
        cannot be told."""
        after, seen = await self._state()
        remarks = _remarks(self._seen, seen)
        if after == self._before:
            return remarks
        shown = await self._call(*_DIFF, self._before, after)
        text = shown.stdout.replace("\0", "\ufffd")
        if not shown.truncated and len(text) <= MOST_CHARACTERS:
            return text + remarks
        names = (
            await self._call("diff", "--name-status", "--no-renames", self._before, after)
        ).stdout
        cut = text[:MOST_CHARACTERS].rpartition("\n")[0]
        listed = (
            names
            if len(names) <= _MOST_LISTED
            else f"{names[:_MOST_LISTED].rpartition(chr(10))[0]}\n…\n"
        )
        count = names.count("\n")
        said = f"# The diff is cut here, at {MOST_CHARACTERS:,} characters. The files that changed, {count} in all:\n"
        return (
            f"{cut}\n{said}{''.join(f'# {line}{chr(10)}' for line in listed.splitlines())}{remarks}"
        )

    async def ignored(self) -> list[str]:
        """Paths of what is in the folder and ignored, by the rules of the last `begin`; a folder
        stands for all that is in it."""
        return (await self._look()).ignored

    async def _state(self, learn: bool = False) -> tuple[str, Seen]:
        """The folder as a tree of our repository, and what of it cannot be in one."""
        seen = await self._look(learn)
        if gone := self._known.difference(seen.files):
            await self._call(
                "update-index", "-z", "--force-remove", "--stdin", stdin=_listed(sorted(gone))
            )
        if seen.files:
            words = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
            await self._call(*words, inside=True, stdin=_listed(seen.files))
        self._known = set(seen.files)
        return (await self._call("write-tree")).stdout.strip(), seen

    async def _look(self, learn: bool = False) -> Seen:
        seen, level = Seen(), [""]
        if self._folder.is_symlink() or not self._folder.is_dir():
            return Seen(odd={".": ("the folder itself, which is no folder any more", ())})
        while level:
            with _told():
                if learn:
                    await asyncio.to_thread(learn_rules, self._folder, level, self._rules)
                found = await asyncio.to_thread(look, self._folder, level, seen)
            ignored = await self._ignored([entry for entry in found if not self._owned.has(entry)])
            seen.ignored += sorted(ignored)
            kept = [entry for entry in found if entry.path not in ignored]
            seen.files += [entry.path for entry in kept if not entry.is_folder]
            level = [entry.path for entry in kept if entry.is_folder]
        return seen

    async def _ignored(self, found: Sequence[TreeEntry]) -> set[str]:
        """Those that the rules ignore; what is a folder is told by there being one."""
        if not found:
            return set()
        with _told():
            for entry in found:
                if entry.is_folder:
                    (self._rules / entry.path).mkdir(parents=True, exist_ok=True)
        ignored: set[str] = set()
        for batch in _batches([entry.path for entry in found]):
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            # With `./` in front no name has a meaning of its own (`:(exclude)x`).
            done = await self._call(
                *words, stdin=_listed([f"./{path}" for path in batch]), codes=(0, 1)
            )
            ignored.update(path.removeprefix("./") for path in done.stdout.split("\0") if path)
        return ignored

    async def _call(
        self, *words: str, inside: bool = False, stdin: str = "", codes: tuple[int, ...] = (0,)
    ) -> Completed:
        """Runs git on our repository; `inside` the folder, where it is to read files, and in the
        folder of rules otherwise."""
        tree = self._folder if inside else self._rules
        variables = {"GIT_DIR": str(self._store / ".git"), "GIT_WORK_TREE": str(tree)}
        return await self._git.run(
            *_OPTIONS, *words, cwd=tree, variables=variables, stdin=stdin, codes=codes
        )


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AttemptError(
            "workspace", f"what is in the workspace cannot be told: {error}"
        ) from error


def _remarks(before: Seen, after: Seen) -> str:
    lines = []
    for path in sorted(before.odd.keys() | after.odd.keys()):
        if path not in after.odd:
            lines.append(f"# gone: {before.odd[path][0]}: {_one_line(path)}")
        elif before.odd.get(path) != after.odd[path]:
            lines.append(
                f"# {'changed' if path in before.odd else 'new'}: {after.odd[path][0]}: {_one_line(path)}"
            )
    return "".join(f"{line}\n" for line in lines)


def _one_line(path: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in path)


def _listed(paths: Sequence[str]) -> str:
    return "".join(f"{path}\0" for path in paths)


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += len(path) + 1
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
