"""One child of an event loop: when it may begin, fed and drained, its end told."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO, cast
from weakref import WeakKeyDictionary

from agentevals_action.system.errand import CHUNK, write

#: Seconds that a child is taken to be busy with its own beginning (an interpreter that loads): one
#: more begins at once than there are processors, so that none is idle while the next is started;
#: more would only take turns, which makes each dearer. Then it may wait for whom it likes, beside
#: any number of others.
BEGINNING = 0.05

#: Takes what a child writes, as far as it is kept, while it comes: 1 for standard output or 2 for
#: standard error, and bytes.
Tell = Callable[[int, bytes], None] | None

_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def place() -> Callable[[], None]:
    """Waits for a place among the children of this loop that begin, and takes it. What is given is
    called at the child's end; `BEGINNING` seconds from now the place is given back in any case."""
    loop = asyncio.get_running_loop()
    places = _places.get(loop)
    if places is None:
        places = _places[loop] = asyncio.Semaphore((os.cpu_count() or 1) + 1)
    await places.acquire()
    held: list[asyncio.TimerHandle] = []

    def leave() -> None:
        if held:
            held.pop().cancel()
            places.release()

    held.append(loop.call_later(BEGINNING, leave))
    return leave


class Child:
    """A child under way: takes its output up to the limit, and tells its end. It is reaped when it
    is closed: until then its number is no other process's, and its group can be signalled.

    asyncio's own children cost twice as much, have a socket for standard input (/dev/stdin cannot
    be opened then), and in some versions end only with their pipes, which a daemonised grandchild
    may hold open for ever."""

    def __init__(
        self, process: subprocess.Popen[bytes], ended: Callable[[], None], limit: int, tell: Tell
    ) -> None:
        self.output = {1: bytearray(), 2: bytearray()}
        self.limit, self.truncated, self.tell = limit, False, tell or (lambda _fd, _data: None)
        self.exited, self.drained = asyncio.Event(), asyncio.Event()
        self.process, self._ended = process, ended
        self._loop = asyncio.get_running_loop()
        self._pending, self._pidfd = memoryview(b""), -1
        self._open = {
            fd: cast(IO[bytes], stream)
            for fd, stream in enumerate((process.stdin, process.stdout, process.stderr))
        }

    def listen(self, stdin: bytes) -> None:
        """Feeds and drains it from now on, and waits for its end."""
        for stream in self._open.values():
            os.set_blocking(stream.fileno(), False)
        for fd in self.output:
            self._loop.add_reader(self._open[fd], self._take, fd)
        self._pending = memoryview(stdin)
        self._give()
        if self._pending:
            self._loop.add_writer(self._open[0], self._give)
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # not Linux, or a sandbox that knows no such call
            threading.Thread(target=self._wait, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def text(self, fd: int) -> str:
        """What is kept of its standard output (1) or standard error (2): UTF-8, with
        replacement."""
        return self.output[fd].decode("utf-8", "replace")

    def close(self) -> int:
        """Lets go of it, whatever it still writes or reads, and gives its exit code."""
        self._exit()
        for fd in tuple(self._open):
            self._close(fd)
        returncode = self.process.poll()
        return -signal.SIGKILL if returncode is None else returncode

    def _take(self, fd: int) -> None:
        try:
            data = os.read(self._open[fd].fileno(), CHUNK)
        except BlockingIOError:  # a child can read its own output: /dev/stdout
            return
        if not data:
            self._close(fd)
            return
        kept = self.output[fd]
        room = self.limit - len(kept)
        kept += data[:room]
        self.tell(fd, data[:room])
        self.truncated = self.truncated or len(data) > room

    def _give(self) -> None:
        self._pending = write(self._open[0], self._pending)
        if not self._pending:
            self._close(0)

    def _close(self, fd: int) -> None:
        stream = self._open.pop(fd)
        (self._loop.remove_reader if fd else self._loop.remove_writer)(stream)
        stream.close()
        if self._open.keys().isdisjoint(self.output):
            self.drained.set()

    def _wait(self) -> None:
        self.process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
            self._loop.call_soon_threadsafe(self._exit)

    def _exit(self) -> None:
        self.exited.set()
        self._ended()
        if self._pidfd != -1:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
