"""Workers: child processes that read a line and answer with a line, again and again, so that a
program whose start takes seconds starts once for many calls."""

import asyncio
import contextlib
import os
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


class WorkerEnded(Exception):
    """A worker that will not answer; the message is a sentence about it."""


class _Output(process.Child):
    """The output of a worker: what is not read of standard output, and the end of standard error.

    A worker that writes without an end must not fill the memory: its output is read up to the
    limit."""

    def __init__(self) -> None:
        super().__init__()
        self.unread, self.errors = bytearray(), bytearray()
        self.ended = False
        self.changed = asyncio.Event()

    def add_output(self, fd: int, data: bytes) -> None:
        """Keeps what the worker writes."""
        if fd != 1:
            self.errors += data
            del self.errors[:-_ERRORS_KEPT]
            return
        self.unread += data
        if self.is_too_long:
            self.readers[0].pause_reading()
        self.changed.set()

    @property
    def is_too_long(self) -> bool:
        """Whether more is unread than an answer may have."""
        return len(self.unread) > process.OUTPUT_LIMIT

    def end_output(self, fd: int) -> None:
        """Notes that nothing will come any more."""
        super().end_output(fd)
        if fd == 1:
            self._end()

    def process_exited(self) -> None:
        """Waits for the last lines, but not for processes that hold the stream open."""
        super().process_exited()
        asyncio.get_running_loop().call_later(process.DRAIN, self._end)

    def _end(self) -> None:
        self.ended = True
        self.changed.set()


class Worker:
    """A running worker; `start` makes it."""

    def __init__(
        self, child: _Output, transport: asyncio.SubprocessTransport, stdin: asyncio.WriteTransport
    ) -> None:
        self._child, self._transport, self._stdin = child, transport, stdin

    @classmethod
    async def start(cls, program: Program) -> "Worker":
        """Starts a program; OSError if it cannot be started."""
        child = _Output()
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
    def is_ready(self) -> bool:
        """Whether the process runs and wrote nothing that nobody asked for: it would be taken for
        the next answer."""
        return not self._child.exited.is_set() and not self._child.unread

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error since the last question."""
        return redact(self._child.errors.decode("utf-8", "replace"))

    async def ask(self, line: bytes) -> bytes:
        """Sends a line (without its end), and returns the line that the worker writes. After
        WorkerEnded, or a cancellation, it can only be ended."""
        self._child.errors.clear()
        self._stdin.write(line + b"\n")
        answer = await self.next_line()
        if self._child.unread:
            raise WorkerEnded("the worker wrote more than its answer to its standard output")
        return answer

    async def next_line(self) -> bytes:
        """The next line that it writes; raises as `ask` does."""
        child = self._child
        while b"\n" not in child.unread:
            if child.is_too_long:
                limit = process.OUTPUT_LIMIT // 1024**2
                raise WorkerEnded(f"the worker wrote more than {limit} MB")
            if child.ended:
                raise WorkerEnded(f"the worker {await self._describe_end()}")
            child.changed.clear()
            await child.changed.wait()
        line, _, rest = bytes(child.unread).partition(b"\n")
        child.unread[:] = rest
        return line

    async def _describe_end(self) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(process.DRAIN):
                await self._child.exited.wait()
        code = self._transport.get_returncode()
        return "closed its standard output" if code is None else process.describe_end(code)

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
OnStart = Callable[[Worker], Awaitable[None]]


async def _is_ready_at_once(_worker: Worker) -> None:
    return


@dataclass
class _Pool:
    """The workers of one program. `free` has workers that nobody uses, and the errors of starts for
    the calls that wait (`waiting`). There are never fewer of them, with those that start
    (`starting`), than calls that wait. Once a worker was ready (`works`), a start that fails is an
    accident; before, it is the `failure` of all calls."""

    program: Program
    on_start: OnStart
    free: asyncio.LifoQueue[Worker | Exception] = field(default_factory=asyncio.LifoQueue)
    waiting: int = 0
    starting: int = 0
    works: bool = False
    failure: AttemptError | None = None

    @property
    def unserved(self) -> int:
        """The number of calls that wait for a start."""
        return self.waiting - self.free.qsize()


class Workers:
    """The workers of a run, `limit` processes in total. A call uses a worker alone. Workers start
    when calls wait for one; the ones that were idle for the longest time end for them."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pools: dict[Program, _Pool] = {}
        self._running: set[Worker] = set()
        self._idle: dict[Worker, None] = {}  # by the time of their last use
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_STARTS)

    @asynccontextmanager
    async def lend(
        self, program: Program, on_start: OnStart = _is_ready_at_once
    ) -> AsyncIterator[Worker]:
        """A worker of a program, ready for a call. An exception in the block ends it.

        Raises the AttemptError of `on_start`; if no worker of the program was ever ready, for
        every later call as well. OSError if it cannot be started."""
        pool = self._pools.setdefault(program, _Pool(program, on_start))
        worker = await self._take(pool)
        try:
            yield worker
        except BaseException:
            await self._end(worker)
            raise
        self._release(pool, worker)

    async def _take(self, pool: _Pool) -> Worker:
        pool.waiting += 1
        try:
            while True:
                if pool.failure is not None:
                    raise pool.failure.copy()
                for _ in range(pool.unserved - pool.starting):
                    pool.starting += 1
                    task = asyncio.create_task(self._start(pool))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                taken = await pool.free.get()
                if isinstance(taken, Exception):
                    raise taken
                self._idle.pop(taken, None)
                if taken in self._running and taken.is_ready:
                    return taken
                await self._end(taken)
        finally:
            pool.waiting -= 1

    async def _start(self, pool: _Pool) -> None:
        """Starts a worker unless other workers are enough for the calls that wait."""
        try:
            async with self._slots:
                if pool.failure is not None or pool.unserved < pool.starting:
                    return
                await self._make_room()
                worker = await Worker.start(pool.program)
                self._running.add(worker)
                try:
                    await pool.on_start(worker)
                except BaseException:
                    await self._end(worker)
                    raise
        except Exception as error:  # the calls raise it
            if isinstance(error, AttemptError) and not pool.works:
                pool.failure = error
                for _ in range(pool.unserved):
                    pool.free.put_nowait(error.copy())
            elif pool.unserved > 0:
                pool.free.put_nowait(error)
        else:
            pool.works = True
            self._release(pool, worker)
        finally:
            pool.starting -= 1

    async def _make_room(self) -> None:
        """Ends idle workers, the least recently used first, so that one more can start."""
        while len(self._running) >= self._limit and self._idle:
            worker = next(iter(self._idle))
            del self._idle[worker]
            await self._end(worker)

    def _release(self, pool: _Pool, worker: Worker) -> None:
        self._idle[worker] = None
        pool.free.put_nowait(worker)

    async def _end(self, worker: Worker) -> None:
        self._running.discard(worker)
        await worker.end()

    async def close(self) -> None:
        """Ends all workers. None may be in use; a later call starts new ones."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        running, self._running = self._running, set()
        self._pools, self._idle = {}, {}
        await asyncio.gather(*(worker.end(process.GRACE) for worker in running))
