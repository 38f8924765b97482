"""What runs before any suite: `setup` once, `prepare` in each tree; what `setup` says is told as it
comes."""

import asyncio
import codecs
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.system import process

#: Seconds that `setup`, and `prepare` in one tree, may take: installing dependencies is slow,
#: hanging for ever is not.
SECONDS = 1800.0
_LAST_LINES = 15
_LONGEST = 64 * 1024  # characters of a line without an end that are held

#: Opens a part of the log by its title, and gives what takes its lines.
Folded = Callable[[str], AbstractContextManager[Callable[[str], None]]]


@dataclass
class Preparation:
    """The commands of a run, None where there is none. `setup` runs in `folder` (absolute);
    `environment` is all that both may see, `withheld` the names that were kept from it."""

    setup: str | None
    prepare: str | None
    folder: Path
    environment: Mapping[str, str]
    withheld: tuple[str, ...] = ()
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _set_up: bool = False
    _refusal: AttemptError | None = None

    async def ready(self, tree: Path, log: Folded) -> None:
        """Makes a tree ready for its suites: `setup` if it has not run yet, then `prepare` there.

        AttemptError of kind `prepare` when one of them fails; of a failed `setup` for every tree,
        which has no second try."""
        async with self._turn:  # whoever comes second waits for the one `setup`
            if self.setup and not self._set_up:
                with log("setup") as say:
                    self._refusal = await run_setup(
                        self.setup, self.folder, self.environment, self.withheld, say
                    )
                self._set_up = True
        if self._refusal:
            raise AttemptError(self._refusal.kind, str(self._refusal), self._refusal.hint)
        if self.prepare:
            refusal = await _run("prepare", self.prepare, tree, self.environment, self.withheld)
            if refusal:
                raise refusal


async def run_setup(
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    withheld: tuple[str, ...],
    say: Callable[[str], None],
) -> AttemptError | None:
    """Runs `setup` (`sh -c`) in a folder, each line of its output told as it comes; what failed,
    with the last lines, or None.

    Lines are raw: whoever takes them cuts them, and takes secrets and commands to the runner out.
    """
    return await _run("setup", command, folder, environment, withheld, say)


async def _run(
    name: str,
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    withheld: tuple[str, ...],
    say: Callable[[str], None] | None = None,
) -> AttemptError | None:
    streams = {1: Lines(say), 2: Lines(say)} if say else {}
    on_output = (lambda stream, data: streams[stream].add(data)) if say else None
    try:
        done = await process.run(
            ("sh", "-c", command),
            cwd=folder,
            environment=environment,
            timeout=SECONDS,
            on_output=on_output,
        )
    except OSError as error:
        return AttemptError("prepare", f"`{name}` could not be started: {error.strerror or error}")
    for lines in streams.values():
        lines.end()
    if say and done.truncated:
        say(f"… the rest is not shown: it is over {process.OUTPUT_LIMIT // 1024 // 1024} MB")
    if done.returncode == 0 and not done.timed_out:
        return None
    how = (
        f"took longer than {SECONDS:g} s"
        if done.timed_out
        else f"ended with exit code {done.returncode}"
    )
    last = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-_LAST_LINES:])
    hint = (
        f"variables that it may not see: {', '.join(withheld)}; name those it needs in `env`"
        if withheld
        else ""
    )
    return AttemptError("prepare", f"`{name}` {how}: {last or 'it says nothing'}", hint)


class Lines:
    """Bytes of UTF-8 as they come, told in lines. Empty lines are left out; of one that was
    overwritten (carriage return) its last text is told, and of one without an end the first 65,536
    characters."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""

    def add(self, data: bytes) -> None:
        """More of the stream."""
        *whole, rest = (self._open + self._decoder.decode(data)).split("\n")
        for line in whole:
            self._tell(line)
        self._open = rest[:_LONGEST]

    def end(self) -> None:
        """The stream is over: what has no end is a line too."""
        self._tell(self._open + self._decoder.decode(b"", final=True))
        self._open = ""

    def _tell(self, line: str) -> None:
        shown = line.rstrip("\r").rpartition("\r")[2]
        if shown.strip():
            self._say(shown)
