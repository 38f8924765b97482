"""Child processes: started in a process group of their own, with a given environment, a time limit
and bounded output; at the end the group is killed, and a failure is explained."""

import asyncio
import contextlib
import ctypes
import errno
import os
import signal
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import last_lines
from agentevals_action.system import resources
from agentevals_action.system.isolation import ChildUser, entered_as
from agentevals_action.system.redaction import redact
from agentevals_action.system.start_errors import describe_start

#: Bytes of each stream that `run` keeps; what a child writes beyond it is read and dropped.
OUTPUT_LIMIT = 10 * 1024 * 1024
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Seconds to wait for output from processes that outlive the child and hold its pipes open.
DRAIN = 0.5
#: The last lines of a child's output that its error quotes.
_LAST_LINES, _LAST_CHARACTERS = 10, 2_000
#: The bits that new files of a user of programs do not have. Judges have the same group.
_UMASK = 0o002
_STREAMS = (1, 2)  # standard output, standard error
_PR_SET_DUMPABLE = 4  # <linux/prctl.h>

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
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    stdin: str = "",
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    user: ChildUser | None = None,
) -> Completed:
    """Runs a child until it ends or `timeout` seconds pass, and keeps the first `limit` bytes of
    each stream. It runs as `user`, or as the user of this process.

    When it returns or is cancelled, no process of the group is left; a process that started a
    session of its own is not in the group. OSError if the child cannot be started."""
    child = _Collector(limit, on_output)
    # A file needs no feeding, and the child can open it as /dev/stdin.
    with tempfile.TemporaryFile() as feed:
        feed.write(stdin.encode("utf-8", "replace"))
        feed.seek(0)
        transport = await start(child, command, cwd, environment, feed, user)
    try:
        timed_out = not await _occurs(child.exited, timeout)
    finally:
        returncode = await end(child, transport)
    failure = ""
    if timed_out:
        failure = f"did not end within {timeout:g} s"
    elif returncode:
        failure = describe_end(returncode)
    elif child.cut:
        failure = f"wrote more than {limit / 1024**2:g} MB"
    output, errors = (bytes(child.output[fd]) for fd in _STREAMS)
    return Completed(returncode, output, errors, timed_out, frozenset(child.cut), failure)


async def run_checked(
    subject: str,
    command: Sequence[str],
    *,
    kind: str,
    cwd: Path,
    environment: Mapping[str, str],
    withheld: Sequence[str] = (),
    timeout: float,
    codes: Container[int] = (0,),
    complete: bool = True,
    stdin: str = "",
    limit: int = OUTPUT_LIMIT,
    on_output: OnOutput | None = None,
    user: ChildUser | None = None,
) -> Completed:
    """Runs a child as `run` does. AttemptError of `kind` (`timeout` for a target that did not end)
    if it cannot be started, does not end in time, ends with a code that is not in `codes` or by a
    signal, or, where its output must be `complete`, writes more than `limit`.

    `subject` begins the sentence of the error: `the judge`. `withheld` are the variables that the
    environment does not have."""
    try:
        done = await run(
            command,
            cwd=cwd,
            environment=environment,
            timeout=timeout,
            stdin=stdin,
            limit=limit,
            on_output=on_output,
            user=user,
        )
    except OSError as error:
        reason, hint = describe_start(error, command[0], cwd)
        raise AttemptError(kind, f"{subject} cannot be started: {reason}", hint) from None
    if done.timed_out and kind == "target":
        kind = "timeout"
    if done.timed_out or done.returncode not in codes or (done.truncated and complete):
        output = done.stderr.strip() or done.stdout
        raise child_error(kind, f"{subject} {done.failure}", output, withheld)
    return done


def child_error(
    kind: str, problem: str, output: str = "", withheld: Sequence[str] = ()
) -> AttemptError:
    """The error of a child: the problem, the last lines of its output, and the variables that it
    may have failed for."""
    lines = last_lines(output, _LAST_LINES, _LAST_CHARACTERS)
    if lines:
        problem += ":\n" if len(lines) > 1 else ": "
        problem += "\n".join(lines)
    return AttemptError(kind, problem, withheld_hint(withheld))


def withheld_hint(names: Sequence[str]) -> str:
    """The advice for a child that may need variables which it does not see; empty without any."""
    if not names:
        return ""
    return f"variables withheld from it: {', '.join(names)}; name those it needs in the input `env`"


def describe_end(returncode: int) -> str:
    """The end of a child, after a subject."""
    if returncode < 0:
        return f"was ended by signal {-returncode}"
    return f"ended with exit code {returncode}"


class Child(asyncio.SubprocessProtocol):
    """A child process as its parent sees it: its two streams and its end."""

    def __init__(self) -> None:
        self.exited, self.drained, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.readers: list[asyncio.ReadTransport] = []
        self._open = set(_STREAMS)

    @abstractmethod
    def add_output(self, fd: int, data: bytes) -> None:
        """Takes bytes that the child wrote to a stream."""

    def end_output(self, fd: int) -> None:
        """Notes that no process has a stream open any more."""
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    async def close_output(self) -> None:
        """Stops reading; processes that outlive the child may hold the streams open."""
        for reader in self.readers:
            reader.close()
        if len(self.readers) == len(_STREAMS):
            await _occurs(self.drained, DRAIN)

    def process_exited(self) -> None:
        """Called when the process ends; its streams may stay open."""
        self.exited.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Called when the event loop has no more to do with the child."""
        self.closed.set()


class _Collector(Child):
    """Collects the output of a child up to a limit of bytes for each stream."""

    def __init__(self, limit: int, on_output: OnOutput | None) -> None:
        super().__init__()
        self.output = {fd: bytearray() for fd in _STREAMS}
        self.cut: set[int] = set()
        self._limit, self._on_output = limit, on_output

    def add_output(self, fd: int, data: bytes) -> None:
        """Keeps what fits into the limit."""
        kept = self.output[fd]
        fitting = data[: self._limit - len(kept)]
        kept += fitting
        if len(fitting) < len(data):
            self.cut.add(fd)
        if self._on_output:
            self._on_output(fd, fitting)


class _Stream(asyncio.Protocol):
    """Reads one stream of a child."""

    def __init__(self, child: Child, fd: int) -> None:
        self._child, self._fd = child, fd

    def data_received(self, data: bytes) -> None:
        self._child.add_output(self._fd, data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._child.end_output(self._fd)


async def start(
    child: Child,
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    stdin: IO[bytes],
    user: ChildUser | None,
) -> asyncio.SubprocessTransport:
    """Starts a child in a process group of its own; `end` ends it. OSError if it cannot be
    started."""
    identity: dict[str, Any] = {"env": dict(environment)}
    if user is not None:
        identity = {"user": user.uid, "group": user.gid, "extra_groups": ()}
        identity["umask"] = _UMASK
        identity["env"] = user.environment_of(environment)
        os.fchown(stdin.fileno(), user.uid, user.gid)  # it may be opened as /dev/stdin
    try:
        with contextlib.ExitStack() as opened:
            writers = [await _open_stream(child, fd, user, opened) for fd in _STREAMS]
            cwd = opened.enter_context(entered_as(user, cwd))
            return await _start_with(child, command, cwd, (stdin, *writers), identity)
    except BaseException:
        await child.close_output()
        raise


async def _open_stream(
    child: Child, fd: int, user: ChildUser | None, opened: contextlib.ExitStack
) -> IO[bytes]:
    """The end of a pipe that the child writes to. The pipe belongs to the child's user, who may
    open it as /dev/stdout or /dev/stderr."""
    read_end, write_end = os.pipe()
    reader, writer = os.fdopen(read_end, "rb", 0), os.fdopen(write_end, "wb", 0)
    opened.enter_context(writer)
    if user is not None:
        os.fchown(write_end, user.uid, user.gid)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: _Stream(child, fd), reader)
    child.readers.append(transport)
    return writer


async def _start_with(
    child: Child,
    command: Sequence[str],
    cwd: Path,
    streams: tuple[IO[bytes], ...],
    identity: dict[str, Any],
) -> asyncio.SubprocessTransport:
    stdin, stdout, stderr = streams
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            start_new_session=True,
            **identity,
        )
    )
    # A cancellation waits for the start: asyncio itself would kill the child alone, not what the
    # child has started by then.
    cancelled = False
    while not starting.done():
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError:
            cancelled = True
    error = starting.exception()
    if cancelled:
        if error is None:
            await end(child, starting.result()[0])
        raise asyncio.CancelledError
    if isinstance(error, ValueError):
        raise _unusable(error) from None
    transport = starting.result()[0]
    resources.end_first(transport.get_pid())
    return transport


async def end(child: Child, transport: asyncio.SubprocessTransport) -> int:
    """Reads the output that is still to come, then kills the group, even when this is itself
    cancelled. The return code is negative for a signal."""
    group = transport.get_pid()
    try:
        if not child.exited.is_set():
            _signal_group(group, signal.SIGTERM)
            await _occurs(child.exited, GRACE)
        await _occurs(child.drained, DRAIN)
    finally:
        _signal_group(group, signal.SIGKILL)
        try:
            await _occurs(child.exited, GRACE)
            await _occurs(child.drained, DRAIN)
        finally:
            returncode = transport.get_returncode()
            transport.close()
            await child.close_output()
            await _occurs(child.closed, DRAIN)
    return -signal.SIGKILL if returncode is None else returncode


async def _occurs(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _signal_group(group: int, number: signal.Signals) -> None:
    # The group is gone already, or (macOS) consists of zombies: nothing is left to end.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _unusable(error: ValueError) -> OSError:
    return OSError(errno.EINVAL, f"the command cannot be passed to the system: {error}")


def hide_from_children() -> bool:
    """Makes the memory and the start environment (`/proc/PID/environ`) of this process, with its
    tokens, unreadable for children of the same user. True where the system supports it (Linux);
    root with CAP_SYS_PTRACE can still read them."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
