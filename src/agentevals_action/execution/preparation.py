"""The inputs `setup` and `prepare`: commands that run before the suites."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.judge_trees import JudgeTrees
from agentevals_action.formatting import list_paths
from agentevals_action.system import process
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.protection import give_new_files

#: Time limit of `setup`, and of `prepare` in one tree, in seconds. Installations are slow.
TIMEOUT_SECONDS = 1800.0


#: Opens a section of the log with a title. The section takes lines of output.
LogSection = Callable[[str], AbstractContextManager[Callable[[str], None]]]


@dataclass(frozen=True)
class Preparation:
    """The two commands of a run; None where the input is empty.

    `setup` runs once, in `folder` (absolute), as the user of the action; `log` takes its output.
    With an `obstacle`, which is the reason, `setup` does not run. `children` has the variables and
    the users of all programs of the run, `judge_trees` the trees of its judges. `submodules` are
    the folders in base's tree of those that head's tree has files of: base without them is not
    base."""

    setup: str | None
    prepare: str | None
    folder: Path
    children: ChildContext
    log: LogSection
    obstacle: str = ""
    judge_trees: JudgeTrees = field(default_factory=JudgeTrees)
    submodules: tuple[Path, ...] = ()
    #: The error of `prepare` by tree, the error of `setup` by None; None for a success.
    _errors: dict[Path | None, AttemptError | None] = field(default_factory=dict)
    _locks: dict[Path | None, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def run(self, tree: Path) -> None:
        """Prepares a tree for its suites: `setup` if it has not run yet, then `prepare`, once; then
        its judge tree.

        Raises AttemptError of kind `prepare` when a command fails, or a submodule is empty. A
        failed `setup` fails for every tree. No command is repeated.
        """
        if setup := self.setup:
            await self._once(None, lambda: self._run_setup(setup))
        if prepare := self.prepare:
            user = self.children.isolation.choose_user(tree)
            await self._once(tree, lambda: self._run("prepare", prepare, tree, user=user))
        inside = [path for path in self.submodules if path.is_relative_to(tree)]
        if empty := [
            path.relative_to(tree).as_posix() for path in inside if not any(path.glob("*"))
        ]:
            problem = f"the files of {list_paths(empty)} are not checked out, and on head they are"
            advice = "check submodules out there: `setup: git submodule update --init`"
            raise AttemptError("prepare", problem, advice)
        await self.judge_trees.link_rest(tree)

    async def _once(self, key: Path | None, run: Callable[[], Awaitable[object]]) -> None:
        async with self._locks[key]:
            if key not in self._errors:
                try:
                    await run()
                    self._errors[key] = None
                except AttemptError as error:
                    self._errors[key] = error
        if failed := self._errors[key]:
            raise failed.copy()

    async def _run_setup(self, command: str) -> None:
        if self.obstacle:
            raise AttemptError("prepare", f"`setup` did not run: {self.obstacle}")
        with self.log("setup") as write_line:
            lines = {1: LineSplitter(write_line), 2: LineSplitter(write_line)}
            try:
                await self._run("setup", command, self.folder, lambda fd, data: lines[fd].add(data))
            finally:
                for splitter in lines.values():
                    splitter.end()
        await give_new_files(self.children.isolation)

    async def _run(
        self,
        name: str,
        command: str,
        folder: Path,
        on_output: process.OnOutput | None = None,
        user: ChildUser | None = None,
    ) -> None:
        # Attack: `setup: sh $GITHUB_WORKSPACE/install.sh` runs a file of the pull request as root.
        tree = self.children.workspace(folder)
        await process.run_checked(
            f"`{name}`",
            self.children.program(("sh", "-c", command), folder, user, tree),
            kind="prepare",
            timeout=TIMEOUT_SECONDS,
            complete=False,
            on_output=on_output,
        )


class LineSplitter:
    """Splits a stream of UTF-8 into lines and passes each line on that is not empty. Of a line that
    overwrites itself (carriage return) the last text counts. The last line of a stream that reaches
    the limit is left out: it may be cut inside of a secret."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._rest, self._bytes = b"", 0

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        self._bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._pass_on(line)

    def end(self) -> None:
        """Passes on the last line, which may have no end."""
        if self._bytes < process.OUTPUT_LIMIT:
            self._pass_on(self._rest)
        else:
            self._write_line(f"… the rest is not shown: it is over {process.OUTPUT_LIMIT >> 20} MB")

    def _pass_on(self, line: bytes) -> None:
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
        if text.strip():
            self._write_line(text)
