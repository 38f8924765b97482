"""Child processes: started in a process group of their own, with a given environment, a time limit
and bounded output; at the end the group is killed, and a failure is explained."""

import asyncio
import contextlib
import errno
import os
import signal
import tempfile
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

from agentevals_action.system import resources
from agentevals_action.system.isolation import ChildUser, entered_as, reap_orphans
from agentevals_action.system.program import Program, child_error
from agentevals_action.system.redaction import redact
from agentevals_action.system.signals import until_done

#: Bytes of each stream that `run` keeps; what a child writes beyond it is read and dropped.
OUTPUT_LIMIT = 10 * 1024 * 1024
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Seconds to wait for output from processes that outlive the child and hold its pipes open.
DRAIN = 0.5
#: Bytes that are read at once.
_CHUNK = 64 * 1024
#: The bits that new files of a user of programs do not have. Judges have the same group.
_UMASK = 0o002

#: Receives the kept output of a child as it arrives: 1 (standard output) or 2 (standard error),
#: and the bytes.
OnOutput = Callable[[int, bytes], None]


@dataclass(frozen=True)
class Completed:
    """A child that ended, with the bytes of its two streams, as far as they were kept. `returncode`
    is negative for a signal. `failure` says how it ended, after a subject: `ended with exit code
    3`; empty if the code is 0 and the output complete."""

    returncode: int
    output: bytes
    errors: bytes
    timed_out: bool = False
    #: The streams that wrote more than was kept.
    cut: frozenset[int] = frozenset()
    failure: str = ""

    @property
    def truncated(self) -> bool:
        """Whether it wrote more than was kept."""
        return bool(self.cut)

    @cached_property
    def stdout(self) -> str:
        """Standard output without secrets: UTF-8 with replacement."""
        return self._text(1, self.output)

    @cached_property
    def stderr(self) -> str:
        """Standard error without secrets: UTF-8 with replacement."""
        return self._text(2, self.errors)

    def _text(self, stream: int, data: bytes) -> str:
        # The rest of a line that was cut could be part of a secret.
        kept = data[: data.rfind(b"\n") + 1] if stream in self.cut else data
        return redact(kept.decode("utf-8", "replace"))


async def run(
    program: Program,
    *,
    timeout: float,
    stdin: str = "",
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
) -> Completed:
    """Runs a child until it ends or `timeout` seconds pass, and keeps the first `limit` bytes of
    each stream.

    When it returns or is cancelled, no process of the group is left; a process that started a
    session of its own is not in the group. OSError if the child cannot be started."""
    # A file needs no feeding, and the child can open it as /dev/stdin.
    with tempfile.TemporaryFile() as feed:
        feed.write(stdin.encode("utf-8", "replace"))
        feed.seek(0)
        child = await Child.start(program, feed)
    streams = [_Kept(number, limit, on_output) for number in (1, 2)]
    readers = zip(streams, (child.output, child.errors), strict=True)
    reading = [asyncio.create_task(stream.read(reader)) for stream, reader in readers]
    try:
        timed_out = not await child.wait(timeout)
    finally:
        returncode = await child.end(*reading)
        await asyncio.gather(*reading)
    cut = frozenset(stream.number for stream in streams if stream.is_cut)
    failure = ""
    if timed_out:
        failure = f"did not end within {timeout:g} s"
    elif returncode:
        failure = describe_end(returncode)
    elif cut:
        failure = f"wrote more than {limit / 1024**2:g} MB"
    output, errors = (bytes(stream.data) for stream in streams)
    return Completed(returncode, output, errors, timed_out, cut, failure)


class _Kept:
    """What is kept of a stream of a child: its first `limit` bytes."""

    def __init__(self, number: int, limit: int, on_output: OnOutput | None) -> None:
        self.number, self.data, self.is_cut = number, bytearray(), False
        self._limit, self._on_output = limit, on_output

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Reads the stream to its end."""
        while data := await reader.read(_CHUNK):
            fitting = data[: self._limit - len(self.data)]
            self.data += fitting
            self.is_cut |= len(fitting) < len(data)
            if self._on_output:
                self._on_output(self.number, fitting)


async def run_checked(
    subject: str,
    program: Program,
    *,
    kind: str,
    timeout: float,
    codes: Container[int] = (0,),
    complete: bool = True,
    stdin: str = "",
    on_output: OnOutput | None = None,
) -> Completed:
    """Runs a child as `run` does. AttemptError of `kind` (`timeout` for a target that did not end)
    if it cannot be started, does not end in time, ends with a code that is not in `codes` or by a
    signal, or, where its output must be `complete`, writes more than is kept.

    `subject` begins the sentence of the error: `the judge`."""
    try:
        done = await run(program, timeout=timeout, stdin=stdin, on_output=on_output)
    except OSError as error:
        raise program.start_error(kind, subject, error) from None
    if done.timed_out and kind == "target":
        kind = "timeout"
    if done.timed_out or done.returncode not in codes or (done.truncated and complete):
        output = done.stderr.strip() or done.stdout
        raise child_error(kind, f"{subject} {done.failure}", output, program.hint)
    return done


def describe_end(returncode: int) -> str:
    """The end of a child, after a subject."""
    if returncode < 0:
        return f"was ended by signal {-returncode}"
    return f"ended with exit code {returncode}"


class Child:
    """A running child in a process group of its own; `output` and `errors` are its streams."""

    def __init__(self) -> None:
        self.output, self.errors = asyncio.StreamReader(OUTPUT_LIMIT), asyncio.StreamReader()
        self._pipes: list[asyncio.ReadTransport] = []
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    async def start(cls, program: Program, stdin: IO[bytes]) -> "Child":
        """Starts a child; `end` ends it. OSError if it cannot be started."""
        _children.add(child := cls())
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, _reap_orphans)
        user, identity = program.user, dict[str, Any](env=dict(program.environment))
        if user is not None:
            identity = {"user": user.uid, "group": user.gid, "extra_groups": ()}
            identity |= {"umask": _UMASK, "env": user.make_environment(program.environment)}
            os.fchown(stdin.fileno(), user.uid, user.gid)  # it may be opened as /dev/stdin
        try:
            with contextlib.ExitStack() as opened:
                identity["stdout"] = await child._open(child.output, user, opened)
                identity["stderr"] = await child._open(child.errors, user, opened)
                cwd = opened.enter_context(entered_as(user, program.folder))
                starting = asyncio.create_task(
                    asyncio.create_subprocess_exec(
                        *program.words, stdin=stdin, cwd=cwd, start_new_session=True, **identity
                    )
                )
                # asyncio would end the child of a start that is cancelled, but not its group.
                try:
                    await until_done(starting)
                except asyncio.CancelledError:
                    if not starting.exception():
                        child._process = starting.result()
                    raise
                child._process = starting.result()
        except ValueError as error:
            await child.end()
            problem = f"the command cannot be passed to the system: {error}"
            raise OSError(errno.EINVAL, problem) from None
        except BaseException:
            await child.end()
            raise
        resources.end_first(child._process.pid)
        _reap_orphans()
        return child

    async def _open(
        self, reader: asyncio.StreamReader, user: ChildUser | None, opened: contextlib.ExitStack
    ) -> IO[bytes]:
        """The end of a pipe that the child writes to. The pipe belongs to the child's user, who may
        open it as /dev/stdout or /dev/stderr."""
        read_end, write_end = os.pipe()
        pipe = os.fdopen(read_end, "rb", 0)
        writer = opened.enter_context(os.fdopen(write_end, "wb", 0))
        if user is not None:
            os.fchown(write_end, user.uid, user.gid)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: protocol, pipe)
        self._pipes.append(transport)
        return writer

    @property
    def pid(self) -> int | None:
        """The number of its process; None until it is started."""
        return self._process.pid if self._process else None

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode if self._process else None

    async def wait(self, seconds: float) -> bool:
        """Whether it ends within this time; its streams may stay open."""
        if self._process:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._process.wait()
        return self.returncode is not None

    async def end(self, *reading: asyncio.Task[None]) -> int:
        """Ends the child, then kills the group, even when this is itself cancelled. `reading` are
        the tasks that read its streams: what is still to come is waited for, but not the end of
        processes that hold them open. The return code is negative for a signal."""
        try:
            if self.returncode is None:
                self._signal(signal.SIGTERM)
                await self.wait(GRACE)
            await _settle(reading)
        finally:
            self._signal(signal.SIGKILL)
            try:
                await self.wait(GRACE)
                await _settle(reading)
            finally:
                for pipe in self._pipes:
                    pipe.close()
                await asyncio.sleep(0)  # the event loop closes them in its next turn
                if self.pid is None or self.returncode is not None:
                    _children.discard(self)
        return -signal.SIGKILL if self.returncode is None else self.returncode

    def _signal(self, number: signal.Signals) -> None:
        # The group is gone already, or (macOS) consists of zombies: nothing is left to end.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.pid:
                os.killpg(self.pid, number)


class LongChild:
    """A child that answers many calls. The end of what it writes to the `streams` is kept, in whole
    lines: a part of a secret would not be redacted."""

    def __init__(self, child: Child, *streams: asyncio.StreamReader) -> None:
        self.child, self._written = child, bytearray()
        self._reading = [asyncio.create_task(self._read(stream)) for stream in streams]

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(_CHUNK):
            self._written += data
            if len(self._written) > _CHUNK:
                self._written = self._written[-_CHUNK:].partition(b"\n")[2]

    @property
    def written(self) -> str:
        """The end of what it wrote since it was last forgotten, without secrets."""
        return redact(self._written.decode("utf-8", "replace"))

    def forget(self) -> None:
        """Forgets what it wrote."""
        self._written.clear()

    async def find_end(self, seconds: float = 0) -> str:
        """How it ended, after a subject, when all that it wrote is read; empty if it still runs
        after this time."""
        if not await self.child.wait(seconds):
            return ""
        await _settle(self._reading)
        return describe_end(self.child.returncode or 0)

    async def end(self) -> None:
        """Ends its process group."""
        await self.child.end(*self._reading)


#: The children that have not ended; without a process, one is just being started.
_children: set[Child] = set()


def _reap_orphans() -> None:
    """Reaps ended processes, except children: asyncio waits for these, and would lose their exit
    codes. While a child has no number yet, nothing is reaped; its start calls this again."""
    pids = [child.pid for child in _children]
    if None not in pids:
        reap_orphans(filter(None, pids))


async def _settle(reading: Sequence[asyncio.Task[None]]) -> None:
    if reading:
        await asyncio.wait(reading, timeout=DRAIN)
