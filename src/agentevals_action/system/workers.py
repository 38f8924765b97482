"""Workers: child processes that read a line and answer with a line, again and again, so that a
program whose start takes seconds starts once for many calls."""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.redaction import redact

#: Bytes of the end of standard error that are kept.
_ERRORS_KEPT = 64 * 1024
#: Starts at once: a start keeps a core busy, and what waits for it gets the first free worker.
_STARTS = max(4, os.cpu_count() or 1)
#: Workers of a run. The agents of head and base at a concurrency of 8 fit.
LIMIT = 16


@dataclass(frozen=True)
class Program:
    """What a worker runs: `environment` are pairs of names and values, `user` is the child's."""

    words: tuple[str, ...]
    folder: Path
    environment: tuple[tuple[str, str], ...]
    user: ChildUser | None = None


class Ended(Exception):
    """A worker that will not answer: its line was too long, or it wrote `more` lines than it was
    asked for, or it ended with `returncode` (negative for a signal), or it closed its standard
    output (None)."""

    def __init__(self, too_long: bool, returncode: int | None, *, more: bool = False) -> None:
        super().__init__("the worker did not answer")
        self.too_long, self.returncode, self.more = too_long, returncode, more


class _Lines(process.Child):
    """Passes on the lines of standard output, and keeps the end of standard error.

    Attack: a worker that writes without an end fills the memory of the action. It is asked for one
    line at a time, so that nothing is read after a second one."""

    def __init__(self) -> None:
        super().__init__()
        #: Lines without their end; None when no more come.
        self.lines = asyncio.Queue[bytes | None]()
        #: Lines in it.
        self.unread = 0
        self.errors = bytearray()
        self.too_long = False
        self._line = bytearray()
        self._stopped = False

    def add_output(self, fd: int, data: bytes) -> None:
        """Splits standard output into lines."""
        if fd != 1:
            self.errors += data
            del self.errors[:-_ERRORS_KEPT]
            return
        if self._stopped:
            return
        *ends, rest = data.split(b"\n", 2)
        for end in ends:
            self.lines.put_nowait(bytes(self._line + end))
            self._line.clear()
            self.unread += 1
        self._line += rest
        self.too_long = len(self._line) > process.OUTPUT_LIMIT
        if self.too_long or self.unread > 1:
            self._stopped = True
            self.readers[0].pause_reading()
            self.lines.put_nowait(None)

    def end_output(self, fd: int) -> None:
        """Notes that no line will come any more."""
        super().end_output(fd)
        if fd == 1:
            self.lines.put_nowait(None)

    def process_exited(self) -> None:
        """Waits for the last lines, but not for processes that hold the stream open."""
        super().process_exited()
        asyncio.get_running_loop().call_later(process.DRAIN, self.lines.put_nowait, None)


class Worker:
    """A running worker; `start` makes it."""

    def __init__(
        self, child: _Lines, transport: asyncio.SubprocessTransport, stdin: asyncio.WriteTransport
    ) -> None:
        self._child, self._transport, self._stdin = child, transport, stdin

    @classmethod
    async def start(cls, program: Program) -> "Worker":
        """Starts a program; OSError if it cannot be started."""
        child = _Lines()
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb", 0) as reader:
            # The transport owns the other end, also when the child cannot be started.
            stdin, _ = await asyncio.get_running_loop().connect_write_pipe(
                asyncio.BaseProtocol, os.fdopen(write_end, "wb", 0)
            )
            try:
                transport = await process.start(
                    child,
                    program.words,
                    program.folder,
                    dict(program.environment),
                    reader,
                    program.user,
                )
            except BaseException:
                stdin.close()
                raise
        return cls(child, transport, stdin)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return not self._child.exited.is_set()

    @property
    def wrote_more(self) -> bool:
        """Whether it wrote a line that nobody asked for: it would be taken for the next answer."""
        return self._child.unread > 0

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error since the last question."""
        return redact(self._child.errors.decode("utf-8", "replace"))

    async def ask(self, line: bytes) -> bytes:
        """Sends a line (without its end), and returns the next one that the worker writes. After
        Ended, or a cancellation, it can only be ended."""
        self._child.errors.clear()
        self._stdin.write(line + b"\n")
        answer = await self.next_line()
        if self.wrote_more:
            raise Ended(False, None, more=True)
        return answer

    async def next_line(self) -> bytes:
        """The next line that it writes; raises as `ask` does."""
        line = await self._child.lines.get()
        if line is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(process.DRAIN):
                    await self._child.exited.wait()
            raise Ended(self._child.too_long, self._transport.get_returncode())
        self._child.unread -= 1
        return line

    async def end(self, grace: float = 0) -> None:
        """Ends its process group. A worker that ends by itself when its input does has `grace`
        seconds for that."""
        if not self._stdin.is_closing():
            self._stdin.close() if grace else self._stdin.abort()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._child.exited.wait()
        finally:
            await process.end(self._child, self._transport)


#: Makes a started worker ready for calls; AttemptError if it never will be.
Open = Callable[[Worker], Awaitable[None]]


@dataclass
class _Group:
    """The workers of one program that nobody uses, the calls that wait for one, and the number of
    workers that start. Once one was ready (`works`), a start that fails is an accident; before, it
    is the `failure` of all calls."""

    idle: list[Worker] = field(default_factory=list)
    waiting: deque[asyncio.Future[Worker]] = field(default_factory=deque)
    starting: int = 0
    works: bool = False
    failure: AttemptError | None = None


class Workers:
    """The workers of a run, `limit` processes in total. A call uses a worker alone. Workers start
    when calls wait for one; the ones that were idle for the longest time end for them."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._groups: dict[Program, _Group] = {}
        self._running: dict[Worker, None] = {}  # by the time of their last use
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_STARTS)

    @asynccontextmanager
    async def lend(
        self, program: Program, open_worker: Open | None = None
    ) -> AsyncIterator[Worker]:
        """A worker of a program, ready for a call. An exception in the block ends it.

        Raises the AttemptError of `open_worker`; if no worker of the program was ever ready, for
        every later call as well. OSError if it cannot be started."""
        worker = await self._take(program, open_worker)
        try:
            yield worker
        except BaseException:
            self._running.pop(worker, None)
            await worker.end()
            raise
        self._hand_over(self._groups[program], worker)

    async def _take(self, program: Program, open_worker: Open | None) -> Worker:
        group = self._groups.setdefault(program, _Group())
        while group.idle:
            worker = group.idle.pop()
            if worker.is_running and not worker.wrote_more:
                return worker
            await self._end(worker)
        if group.failure is not None:
            raise group.failure.copy()
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        group.waiting.append(future)
        task = asyncio.create_task(self._start(program, group, open_worker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            worker = await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._hand_over(group, future.result())
            raise
        return worker

    async def _start(self, program: Program, group: _Group, open_worker: Open | None) -> None:
        """Starts a worker unless those that start are enough for the calls that wait."""
        async with self._slots:
            if group.failure is not None or len(_unserved(group)) <= group.starting:
                return
            group.starting += 1
            try:
                await self._make_room()
                worker = await Worker.start(program)
                self._running[worker] = None
                if open_worker is not None:
                    await self._open(worker, open_worker)
            except Exception as error:  # the calls raise it
                _fail(group, error)
            else:
                group.works = True
                self._hand_over(group, worker)
            finally:
                group.starting -= 1

    async def _open(self, worker: Worker, open_worker: Open) -> None:
        try:
            await open_worker(worker)
        except BaseException:
            await self._end(worker)
            raise

    async def _make_room(self) -> None:
        """Ends idle workers, the least recently used first, so that one more can start."""
        idle = {worker: group for group in self._groups.values() for worker in group.idle}
        for worker in [one for one in self._running if one in idle]:
            if len(self._running) < self._limit:
                return
            idle[worker].idle.remove(worker)
            await self._end(worker)

    def _hand_over(self, group: _Group, worker: Worker) -> None:
        """Gives a worker that is free to the call that waits for the longest time."""
        if waiting := _unserved(group):
            waiting[0].set_result(worker)
        else:
            self._running[worker] = self._running.pop(worker, None)
            group.idle.append(worker)

    async def _end(self, worker: Worker) -> None:
        self._running.pop(worker, None)
        await worker.end()

    async def close(self) -> None:
        """Ends all workers. None may be in use; a later call starts new ones."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        running, self._running, self._groups = list(self._running), {}, {}
        await asyncio.gather(*(worker.end(process.GRACE) for worker in running))


def _unserved(group: _Group) -> deque[asyncio.Future[Worker]]:
    """The calls that still wait; those that were served or cancelled are removed."""
    group.waiting = deque(future for future in group.waiting if not future.done())
    return group.waiting


def _fail(group: _Group, error: Exception) -> None:
    """Passes on the error of a start: to all calls if every other start will fail, too."""
    waiting = _unserved(group)
    if isinstance(error, AttemptError) and not group.works:
        group.failure = error
        for future in waiting:
            future.set_exception(error.copy())
    elif waiting:
        waiting[0].set_exception(error)
