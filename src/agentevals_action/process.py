"""Every child process: the environment that it is given, time limit, process group killed, output bounded."""

import asyncio
import contextlib
import ctypes
import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

from agentevals_action.child import CHUNK, Child, Tell, place, write

#: Bytes of standard output, and of standard error, that `run` keeps; the child is drained beyond it.
OUTPUT_LIMIT = 10 * 1024 * 1024
#: Bytes of each stream that `call` takes: lists of files are longer than texts, and half a list would be a wrong answer.
CALL_LIMIT = 256 * 1024 * 1024
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Seconds that output is awaited from processes which outlive the child and hold its pipes open.
MOMENT = 0.5

Env = Mapping[str, str]
_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


class Completed(Struct, frozen=True):
    """A child that ended. `returncode` is negative for a signal; texts are UTF-8 with replacement and bounded."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False
    duration_ms: float = 0.0


class CompletedBytes(Struct, frozen=True):
    """A child of `call` that ended: raw bytes, for git."""

    returncode: int
    stdout: bytes
    stderr: bytes


async def run(
    command: Sequence[str], *, cwd: Path, environment: Env, timeout: float, stdin: str = "", limit: int = OUTPUT_LIMIT, tell: Tell = None
) -> Completed:
    """Runs a child in its own process group to its end or its time limit (seconds), keeping `limit` bytes of each stream; OSError when it
    cannot be started. When it returns or is cancelled, nothing of the group is left; a process that made a session of its own is not in it.
    """
    leave = await place()
    started = time.monotonic()
    try:
        child = Child(_popen(command, cwd, environment), leave, limit, tell)
    except (OSError, ValueError) as error:
        leave()
        raise error if isinstance(error, OSError) else _unusable(error) from None
    try:
        child.listen(stdin.encode("utf-8", "replace"))
        timed_out = not await _within(timeout, child.exited)
        duration_ms = (time.monotonic() - started) * 1000
    finally:
        returncode = await _end(child)
    return Completed(returncode, child.text(1), child.text(2), timed_out, child.truncated, duration_ms)


async def _end(child: Child) -> int:
    """Takes what output is still to come, then ends the whole group; the killing happens even when this is itself cancelled."""
    group = child.process.pid
    try:
        if not child.exited.is_set():
            _signal_group(group, signal.SIGTERM)
            await _within(GRACE, child.exited)
        await _within(MOMENT, child.drained)
    finally:
        _signal_group(group, signal.SIGKILL)
        try:
            await _within(GRACE, child.exited)
            await _within(MOMENT, child.drained)
        finally:
            # What is still unread by then has no reader worth waiting for.
            returncode = child.close()
    return returncode


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Whether it happens within that time."""
    if not event.is_set():  # most have happened, and a time limit costs more than the look
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
    return event.is_set()


def _signal_group(group: int, number: signal.Signals) -> None:
    # Gone already, or (macOS) nothing but zombies: either way there is nothing to end.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def call(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float, stdin: bytes = b"") -> CompletedBytes:
    """The same for a caller that waits (git); raw bytes, never cut.

    OSError when it cannot be started or writes more than 256 MB, TimeoutError (an OSError too) past the time limit.
    """
    started: list[subprocess.Popen[bytes]] = []
    failed: list[Exception] = []
    # A signal's handler raises in the main thread; were it inside Popen, a child would run that nobody knows. An event tells the
    # end of the thread, since a `join` that is interrupted takes the thread for ended (python/cpython#90882).
    begun = threading.Event()

    def start() -> None:
        try:
            started.append(_popen(command, cwd, environment))
        except (OSError, ValueError) as error:
            failed.append(error)
        finally:
            begun.set()

    deadline = time.monotonic() + timeout
    try:
        threading.Thread(target=start).start()
        begun.wait()
        for error in failed:
            raise error if isinstance(error, OSError) else _unusable(error)
        stdout, stderr = _exchange(started[0], stdin, deadline)
        returncode = started[0].wait(max(deadline - time.monotonic(), MOMENT))
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{command[0]} did not end within {timeout:g} s") from None
    finally:
        begun.wait(GRACE)  # bounded: a signal may have come before the thread was there
        for process in started:
            _end_now(process)
    return CompletedBytes(returncode, stdout, stderr)


def _popen(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the exit code of every child would be 0
        raise OSError(errno.ECHILD, "how a child ends cannot be told, since SIGCHLD is ignored")
    pipe = subprocess.PIPE
    return subprocess.Popen(list(command), cwd=cwd, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)


def _unusable(error: Exception) -> OSError:
    return OSError(errno.EINVAL, f"the command cannot be passed to the system: {error}")


def _end_now(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:  # git removes its lock files when asked to end
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _exchange(process: subprocess.Popen[bytes], stdin: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Feeds and drains a child until its pipes close, or a moment after its end; TimeoutExpired past the deadline."""
    pending = memoryview(stdin)
    streams = (cast(IO[bytes], process.stdout), cast(IO[bytes], process.stderr))
    kept = {stream: bytearray() for stream in streams}
    feed = cast(IO[bytes], process.stdin)
    os.set_blocking(feed.fileno(), False)
    ended = None
    with selectors.DefaultSelector() as selector:
        selector.register(feed, selectors.EVENT_WRITE)
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while any(stream in selector.get_map() for stream in streams):
            now = time.monotonic()
            if ended is None and process.poll() is not None:
                ended = now
            if now >= deadline:
                raise subprocess.TimeoutExpired(process.args, 0)
            if ended is not None and now - ended > MOMENT:
                break
            for key, _ in selector.select(min(deadline - now, MOMENT / 5)):
                if key.fileobj is feed:
                    pending = write(feed, pending)
                    if not pending:
                        selector.unregister(feed)
                        feed.close()
                elif not _read(cast(IO[bytes], key.fileobj), kept):
                    selector.unregister(key.fileobj)
    return bytes(kept[streams[0]]), bytes(kept[streams[1]])


def _read(stream: IO[bytes], kept: dict[IO[bytes], bytearray]) -> bool:
    data = os.read(stream.fileno(), CHUNK)
    kept[stream] += data
    if len(kept[stream]) > CALL_LIMIT:
        raise OSError(errno.EFBIG, f"the command wrote more than {CALL_LIMIT} bytes")
    return bool(data)


def hide_from_children() -> bool:
    """Makes this process's memory and start environment (`/proc/PID/environ`), tokens and all, unreadable for children of the same
    user; True where the system does that (Linux), root with CAP_SYS_PTRACE excepted."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
