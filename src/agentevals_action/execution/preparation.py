"""The inputs `setup` and `prepare`: commands that run before the suites."""

import asyncio
import codecs
import io
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import last_lines
from agentevals_action.system import process
from agentevals_action.system.isolation import NO_ISOLATION, ChildUser, Isolation
from agentevals_action.system.protection import give_new_files

#: Time limit of `setup`, and of `prepare` in one tree, in seconds. Installations are slow.
TIMEOUT_SECONDS = 1800.0
_LAST_LINES, _LAST_CHARACTERS = 15, 6_000

#: Seconds by which the times of files may be behind the clock: the kernel takes those of its last
#: tick, and some file systems round them.
_CLOCK_STEP = 2.0

#: Opens a section of the log with a title. The section takes lines of output.
LogSection = Callable[[str], AbstractContextManager[Callable[[str], None]]]


def no_log(_title: str) -> AbstractContextManager[Callable[[str], None]]:
    """A section whose lines nobody reads."""
    return nullcontext(lambda _line: None)


@dataclass
class Preparation:
    """The two commands of a run; None where the input is empty.

    `setup` runs once, in `folder` (absolute), as the user of the action. `environment` is all that
    both commands see, `withheld` are the names of the variables that they do not see. `isolation`
    gives the users of `prepare`.
    """

    setup: str | None
    prepare: str | None
    folder: Path
    environment: Mapping[str, str]
    withheld: tuple[str, ...] = ()
    isolation: Isolation = NO_ISOLATION
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _setup_done: bool = False
    _setup_error: AttemptError | None = None
    #: The error of `prepare` in each tree that it ran in. Two trees are prepared at a time.
    _prepared: dict[Path, AttemptError | None] = field(default_factory=dict)
    _tree_locks: dict[Path, asyncio.Lock] = field(default_factory=dict)

    def refuse_setup(self, reason: str) -> None:
        """Makes every preparation fail without running `setup`, if there is one."""
        if self.setup:
            self._setup_error = AttemptError("prepare", f"`setup` did not run: {reason}")
            self._setup_done = True

    async def run(self, tree: Path, log: LogSection) -> None:
        """Prepares a tree for its suites: `setup` if it has not run yet, then `prepare`, once.

        Raises AttemptError of kind `prepare` when a command fails. A failed `setup` fails for every
        tree. No command is repeated.
        """
        async with self._lock:
            if self.setup and not self._setup_done:
                started = time.time() - _CLOCK_STEP
                with log("setup") as write_line:
                    self._setup_error = await self._run(
                        "setup", self.setup, self.folder, write_line
                    )
                give_new_files(self.isolation, started)
                self._setup_done = True
        if self._setup_error:
            raise self._setup_error.copy()
        if self.prepare is None:
            return
        async with self._tree_locks.setdefault(tree, asyncio.Lock()):
            if tree not in self._prepared:
                user = self.isolation.user_of(tree)
                self._prepared[tree] = await self._run("prepare", self.prepare, tree, user=user)
        if error := self._prepared[tree]:
            raise error.copy()

    async def _run(
        self,
        name: str,
        command: str,
        folder: Path,
        write_line: Callable[[str], None] | None = None,
        user: ChildUser | None = None,
    ) -> AttemptError | None:
        streams = {1: LineSplitter(write_line), 2: LineSplitter(write_line)} if write_line else {}
        try:
            done = await process.run(
                ("sh", "-c", command),
                cwd=folder,
                environment=self.environment,
                timeout=TIMEOUT_SECONDS,
                on_output=(lambda stream, data: streams[stream].add(data)) if streams else None,
                user=user,
            )
        except OSError as error:
            reason = error.strerror or error
            return AttemptError("prepare", f"`{name}` could not be started: {reason}")
        if write_line and done.truncated:  # its last line may be cut inside of a secret
            limit = process.OUTPUT_LIMIT // 1024 // 1024
            write_line(f"… the rest is not shown: it is over {limit} MB")
        else:
            for lines in streams.values():
                lines.end()
        if done.returncode == 0 and not done.timed_out:
            return None
        ending = (
            f"took longer than {TIMEOUT_SECONDS:g} s"
            if done.timed_out
            else f"ended with exit code {done.returncode}"
        )
        output = done.stderr.strip() or done.stdout
        last = "\n".join(last_lines(output, _LAST_LINES, _LAST_CHARACTERS))
        hint = ""
        if self.withheld:
            names = ", ".join(self.withheld)
            hint = f"variables that it may not see: {names}; name those it needs in `env`"
        return AttemptError("prepare", f"`{name}` {ending}: {last or 'it printed nothing'}", hint)


class LineSplitter:
    """Splits a stream of UTF-8 into lines and passes each on.

    Empty lines are left out. Of a line that overwrites itself (carriage return) the last text
    counts. A line without an end is held: it is as short as the stream.
    """

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = io.StringIO()

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        *complete, rest = self._decoder.decode(data).split("\n")
        for line in complete:
            self._open.write(line)
            self._pass_on()
        self._open.write(rest)

    def end(self) -> None:
        """Passes on the last line, which may have no end."""
        self._open.write(self._decoder.decode(b"", final=True))
        self._pass_on()

    def _pass_on(self) -> None:
        line, self._open = self._open.getvalue(), io.StringIO()
        shown = line.rstrip("\r").rpartition("\r")[2]
        if shown.strip():
            self._write_line(shown)
