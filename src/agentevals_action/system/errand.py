"""A child that the caller waits for (git), and how every child is begun and its group ended."""

import _thread
import contextlib
import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

#: Bytes of each stream that `call` takes: lists of files are longer than texts, and half a list
#: would be a wrong answer.
CALL_LIMIT = 256 * 1024 * 1024
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Seconds that output is awaited from processes which outlive the child and hold its pipes open.
MOMENT = 0.5
#: Bytes that are read or written at once: what a pipe holds on Linux.
CHUNK = 65536


@dataclass(frozen=True)
class CompletedBytes:
    """A child of `call` that ended: raw bytes, for git."""

    returncode: int
    stdout: bytes
    stderr: bytes


def call(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
) -> CompletedBytes:
    """Runs a child in its own process group to its end, beyond which nothing of the group is left;
    raw bytes, never cut.

    OSError when it cannot be started or writes more than 256 MB, TimeoutError (an OSError too) past
    the time limit."""
    started: list[subprocess.Popen[bytes]] = []
    failed: list[Exception] = []
    # A signal's handler raises in the main thread; were it inside Popen, a child would run that
    # nobody knows. Neither Thread nor Event: they are of Python, and one that is interrupted may
    # leave a lock held for which others, and the interpreter's exit, wait for ever.
    begun = _thread.allocate_lock()
    begun.acquire()

    def start() -> None:
        try:
            started.append(begin(command, cwd, environment))
        except (OSError, ValueError) as error:
            failed.append(error)
        finally:
            begun.release()

    deadline = time.monotonic() + timeout
    try:
        _thread.start_new_thread(start, ())
        begun.acquire()
        for error in failed:
            raise error if isinstance(error, OSError) else unusable(error)
        stdout, stderr = _exchange(started[0], stdin, deadline)
        returncode = started[0].wait(max(deadline - time.monotonic(), MOMENT))
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{command[0]} did not end within {timeout:g} s") from None
    finally:
        if (
            not started and not failed
        ):  # bounded: a signal may have come before the thread was there
            begun.acquire(timeout=GRACE)
        for process in started:
            _end_now(process)
    return CompletedBytes(returncode, stdout, stderr)


def _end_now(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:  # git removes its lock files when asked to end
        signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _exchange(
    process: subprocess.Popen[bytes], stdin: bytes, deadline: float
) -> tuple[bytes, bytes]:
    """Feeds and drains a child until its pipes close, or a moment after its end; TimeoutExpired
    past the deadline."""
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


def begin(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a child as the leader of a process group of its own; OSError, or ValueError, when it
    cannot be started."""
    if (
        signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    ):  # the exit code of every child would be 0
        raise OSError(errno.ECHILD, "how a child ends cannot be told, since SIGCHLD is ignored")
    pipe = subprocess.PIPE
    return subprocess.Popen(
        list(command),
        cwd=cwd,
        env=dict(environment),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )


def unusable(error: Exception) -> OSError:
    """The OSError that a command which cannot be passed to the system is."""
    return OSError(errno.EINVAL, f"the command cannot be passed to the system: {error}")


def signal_group(group: int, number: signal.Signals) -> None:
    """Sends a signal to all of a child's group that is left."""
    # Gone already, or (macOS) nothing but zombies: either way there is nothing to end.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def write(feed: IO[bytes], pending: memoryview) -> memoryview:
    """Gives a child that can take it a piece of its standard input; what is left of it, nothing for
    a child that takes no more."""
    try:
        return pending[os.write(feed.fileno(), pending[:CHUNK]) :] if pending else pending
    except BlockingIOError:
        return pending
    except BrokenPipeError:  # a child need not read what it is given
        return pending[:0]
