"""The files that define scores and inputs, as they are before the first program of a run starts."""

import asyncio
import logging
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import walk
from agentevals_action.evaluators.code_judge.imports import SOURCE_SUFFIXES
from agentevals_action.execution.definitions import imported_files
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.files.folder_moves import FolderMoves
from agentevals_action.system.files.regular_files import digest_of, read_regular
from agentevals_action.system.isolation import ChildUser, file_access_as

log = logging.getLogger(__name__)

_SCRIPT, _COMMAND = "judge script", "judge's command"
#: Roles of the files that each test of a suite depends on.
_SHARED = frozenset({"suite", "sidecar", "configuration", "targets file", _COMMAND})
#: Roles of programs. A build may write those that git does not track.
_PROGRAMS = frozenset({_SCRIPT, _COMMAND, "workspace hook"})
#: The agent itself: a build may write it, and it decides nothing.
_AGENT = "target's command"
#: Files next to a script that its interpreter may load: copied, up to so many bytes of each.
_LOADED = frozenset(
    [
        "package.json",
        "tsconfig.json",
        "jsconfig.json",
        "deno.json",
        "deno.jsonc",
        "bunfig.toml",
        "pyvenv.cfg",
    ]
)
_MAX_LOADED = 1024 * 1024
_ADVICE = (
    "see which agent, hook or judge writes there: give an agent that edits files a `workspace`, "
    "and generate files in a step before this one"
)

#: Device, inode, size, the times of the last change of the content and of the entry, and the moves
#: of the folders above. A program can set the first time, and not the second one.
State = tuple[int, int, int, int, int, int]


class LoadedFiles:
    """Digests of the files of suites, and copies of the judges' scripts and of what they import in
    `folder` (absolute, outside of every tree), from which the judges run.

    Attack: an agent rewrites the script, a module that it imports, the prompt or the rows that
    score it, or leaves a process that does so later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: SHA-256 by absolute path.
        self.digests: dict[Path, str] = {}
        self._names: dict[Path, str] = {}
        self._sizes: dict[Path, int] = {}
        #: The last seen state, and whether the content was the recorded one then.
        self._seen: dict[Path, tuple[State | None, bool]] = {}
        #: By the root of the tree, which the copies have the same paths in.
        self._copies: dict[Path, Path] = {}
        #: The roots whose copies have links to what is next to their files.
        self._linked: set[Path] = set()
        self._shared: dict[tuple[Path, str], tuple[Path, ...]] = {}
        #: What the programs of a suite import, and its copies.
        self._imported: dict[tuple[Path, str], tuple[Path, ...]] = {}
        self._moves = FolderMoves()

    def close(self) -> None:
        """Stops to watch the folders of the files."""
        self._moves.close()

    def add(self, suite: Suite, tracked: Collection[str]) -> None:
        """Records the files of a suite, before the first program starts. `tracked` are the paths
        that git tracks in its repository. OSError when a script cannot be copied."""
        root = suite.root
        # Not by the roles of the suite's files: a hook may name the same file.
        scripts = {file.path for one in suite.programs for file in one.files} & set(tracked)
        parents = {PurePosixPath(path).parent for path in scripts}
        folders = tuple(f"{folder}/" for folder in parents if folder.name == "judges")
        scripts.update(path for path in (tracked if folders else ()) if path.startswith(folders))
        imported = [file for file in imported_files(suite) if file.path in tracked]
        commands = {file.path for file in suite.files if file.role == _COMMAND} & set(tracked)
        copied = scripts | commands | {file.path for file in imported}
        above = {folder for path in copied for folder in PurePosixPath(path).parents}
        copied.update(
            path for folder in above for name in _LOADED if (path := f"{folder / name}") in tracked
        )
        copies = {path: self._copy(root, path) for path in sorted(copied)}
        for path, copy in copies.items():
            if copy:
                self.record(copy, f"the copy of {path}")
        self._imported[root, suite.path] = tuple(
            each
            for file in imported
            for each in (root / file.path, copies[file.path])
            if each is not None
        )
        for file in (*suite.files, *imported):
            is_built = file.role in _PROGRAMS and file.path not in tracked
            if file.role != _AGENT and not is_built:
                self.record(root / file.path, file.path)
        self._watch_folders(root)
        shared = [root / file.path for file in suite.files if file.role in _SHARED]
        copied_commands = (copy for path in commands if (copy := copies[path]))
        self._shared[root, suite.path] = (*shared, *copied_commands)

    def _watch_folders(self, root: Path) -> None:
        """Attack: an agent moves a folder away, puts one with other files there while its answer is
        scored, and moves the first one back, whose files have the same state."""
        parents = {folder for path in self.digests for folder in path.parents}
        try:
            self._moves.add(
                folder for folder in parents if folder != root and folder.is_relative_to(root)
            )
        except OSError as error:
            log.warning("folders that programs move and move back are not noticed: %s", error)

    def record(self, path: Path, name: str) -> None:
        """Records one file; `name` is for messages. What cannot be read is left out: the component
        that needs it reports it."""
        if path not in self.digests:
            try:
                state, digest = self._state(path), digest_of(path)
            except OSError:
                return
            self.digests[path], self._names[path] = digest, name
            self._sizes[path] = path.stat().st_size
            self._seen[path] = state, True

    def _copy(self, root: Path, path: str) -> Path | None:
        source = root / path
        if not source.is_file() or not source.resolve().is_relative_to(root):
            return None
        top = self._copies.setdefault(root, self.folder / str(len(self._copies)))
        copy = top / path
        if not os.path.lexists(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink() and not source.readlink().is_absolute():
                copy.symlink_to(source.readlink())
            else:
                shutil.copyfile(source, copy)
                # The judge may run as another user, who may not change it.
                copy.chmod(0o555 if os.access(source, os.X_OK) else 0o444)
        return copy

    def link_rest(self, tree: Path, user: ChildUser | None = None) -> None:
        """Links everything next to the copies of a prepared tree to the tree, so that a script
        finds what it imports from there (`node_modules`, a virtual environment, data); source files
        and configuration of interpreters are copied.

        Attack: an agent adds a module next to a script that is imported before the real one, or a
        configuration or compiled code that replaces modules. What appears in the tree after the
        first call is not linked, and `__pycache__` never is: a tree is prepared again for fresh
        samples, after agents ran. Files are read with the rights of `user`, whose programs may
        replace them by links.
        OSError."""
        for root, top in self._copies.items():
            if root in self._linked or not tree.resolve().is_relative_to(root):
                continue
            # Not what a judge has written there since, such as its own __pycache__.
            copies = (copy for copy in self.digests if copy.is_relative_to(top))
            for folder in {folder for copy in copies for folder in copy.parents}:
                if not folder.is_relative_to(top):
                    continue
                for entry in os.scandir(root / folder.relative_to(top)):
                    copy = folder / entry.name
                    if entry.name != "__pycache__" and not os.path.lexists(copy):
                        if _is_loaded(entry):
                            with file_access_as(user):
                                content = read_regular(Path(entry.path), _MAX_LOADED)
                            copy.write_bytes(content)
                        else:
                            copy.symlink_to(entry.path)
            self._linked.add(root)

    def copy_of(self, path: Path) -> Path:
        """The copy of a script, or of a folder with copies, by its absolute path; the path itself
        if there is none."""
        for root, top in self._copies.items():
            if path.is_relative_to(root):
                copy = top / path.relative_to(root)
                is_folder = not copy.is_symlink() and copy.is_dir()
                return copy if copy in self.digests or is_folder else path
        return path

    def states(self, suite: Suite, test: Test) -> Mapping[Path, State | None]:
        """The states of the files that a test depends on, for `check`."""
        paths = (path for path in self._files_of(suite, test) if path in self.digests)
        return {path: self._state(path) for path in paths}

    async def check(self, suite: Suite, test: Test, before: Mapping[Path, State | None]) -> None:
        """Raises AttemptError when a file that a test depends on is not as it was recorded, or not
        as it was `before` the attempt: a program may change it and restore it."""
        now = self.states(suite, test)
        if before == now and all(self._seen[path] == (now[path], True) for path in now):
            return
        for path, state in now.items():
            problem = ""
            if await asyncio.to_thread(self._is_changed, path):
                problem = "changed by a program after it was loaded"
            elif before.get(path, state) != state:
                problem = "changed and restored by a program while the test ran"
            if problem:
                raise AttemptError("configuration", f"{self._names[path]} was {problem}", _ADVICE)

    def changed(self) -> tuple[str, ...]:
        """The names of the files that are not as they were recorded."""
        changed = (name for path, name in self._names.items() if self._is_changed(path))
        return tuple(dict.fromkeys(changed))

    def _state(self, path: Path) -> State | None:
        try:
            facts = path.stat()
        except OSError:
            return None
        times = facts.st_mtime_ns, facts.st_ctime_ns
        return facts.st_dev, facts.st_ino, facts.st_size, *times, self._moves.count(path)

    def _is_changed(self, path: Path) -> bool:
        state = self._state(path)
        if state != self._seen[path][0]:
            try:
                # An agent may have made it large: what has another size needs no digest.
                is_same = path.stat().st_size == self._sizes[path]
                is_same = is_same and digest_of(path) == self.digests[path]
            except OSError:
                is_same = False
            self._seen[path] = state, is_same
        return not self._seen[path][1]

    def _files_of(self, suite: Suite, test: Test) -> Iterator[Path]:
        yield from self._shared.get((suite.root, suite.path), ())
        yield suite.root / test.location.path
        evaluators = [inside for one in test.evaluators for inside in walk(one)]
        if any(evaluator.type == "code_judge" for evaluator in evaluators):
            yield from self._imported.get((suite.root, suite.path), ())
        for file in (
            *test.files,
            *(file for evaluator in evaluators for file in evaluator.files),
            *(test.workspace.files if test.workspace else ()),
        ):
            path = suite.root / file.path
            yield path
            if file.role == _SCRIPT:
                yield self.copy_of(path)
        for message in (*test.input, *test.expected_output):
            for block in message.blocks:
                if block.path:
                    yield block.path


def _is_loaded(entry: "os.DirEntry[str]") -> bool:
    """Whether an interpreter may load this regular file for a script next to it."""
    is_code = entry.name in _LOADED or entry.name.endswith(SOURCE_SUFFIXES)
    return (
        is_code
        and entry.is_file(follow_symlinks=False)
        and entry.stat(follow_symlinks=False).st_size <= _MAX_LOADED
    )
