"""Workers: child processes that read a line and answer with a line, again and again, so that a
program whose start takes seconds starts once for many calls."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import BinaryIO

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.program import Program

#: Starts at once: a start keeps a core busy, and a call that waits for it may find a free worker.
_STARTS = max(4, os.cpu_count() or 1)
#: Workers of a run. The agents of head and base at a concurrency of 8 fit.
LIMIT = 16


class WorkerEnded(Exception):
    """A worker that will not answer; the message is a sentence about it."""


class RequestUnread(WorkerEnded):
    """A worker that answered earlier requests and ended before it read this one, which can be sent
    to another worker."""


class Worker:
    """A running worker; `start` makes it. What is written to `stdin` is read from `requests`.
    `noun` begins the sentences about it."""

    def __init__(
        self,
        running: process.LongChild,
        stdin: asyncio.WriteTransport,
        requests: BinaryIO,
        noun: str,
    ) -> None:
        self._running, self._stdin, self._requests = running, stdin, requests
        self._noun, self._has_answered = noun, False

    @classmethod
    async def start(cls, program: Program, noun: str = "the worker") -> "Worker":
        """Starts a program; OSError if it cannot be started."""
        read_end, write_end = os.pipe()
        requests = os.fdopen(read_end, "rb", 0)
        # The transport owns the other end, also when the child cannot be started.
        stdin, _ = await asyncio.get_running_loop().connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(write_end, "wb", 0)
        )
        try:
            child = await process.Child.start(program, requests)
        except BaseException:
            stdin.close()
            requests.close()
            raise
        return cls(process.LongChild(child, child.errors), stdin, requests, noun)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._running.child.returncode is None

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error since the last question."""
        return self._running.written

    async def ask(self, line: bytes) -> bytes:
        """Sends a line (without its end), and returns the next line that the worker writes. After
        WorkerEnded (RequestUnread), or a cancellation, it can only be ended."""
        self._running.forget()
        self.send(line)
        try:
            answer = await self.next_line()
        except WorkerEnded as ended:
            if self._has_answered and self._take_back() == len(line) + 1:
                raise RequestUnread(str(ended)) from None
            raise
        self._has_answered = True
        return answer

    def send(self, line: bytes) -> None:
        """Sends a line (without its end)."""
        self._stdin.write(line + b"\n")

    def _take_back(self) -> int:
        """The number of bytes that no process has read, and that none can read from now on."""
        unread = self._stdin.get_write_buffer_size()
        os.set_blocking(self._requests.fileno(), False)
        with suppress(BlockingIOError):
            while data := os.read(self._requests.fileno(), process.OUTPUT_LIMIT):
                unread += len(data)
        self._stdin.abort()
        return unread

    async def next_line(self) -> bytes:
        """The next line that it writes. WorkerEnded if it ends, or writes a line that is too
        long: it is not read."""
        try:
            line = await self._running.child.output.readline()
        except ValueError:
            limit = process.OUTPUT_LIMIT // 1024**2
            raise WorkerEnded(f"{self._noun} wrote more than {limit} MB") from None
        if not line.endswith(b"\n"):
            end = await self._running.find_end(process.DRAIN) or "closed its standard output"
            raise WorkerEnded(f"{self._noun} {end}")
        return line.removesuffix(b"\n")

    async def end(self, grace: float = 0) -> None:
        """Ends its process group. A worker that ends by itself when its input does has `grace`
        seconds for that."""
        if not self._stdin.is_closing():
            self._stdin.close() if grace else self._stdin.abort()
        try:
            await self._running.child.wait(grace)
        finally:
            self._requests.close()
            await self._running.end()


#: Makes a started worker ready for calls; AttemptError if it never will be.
OnStart = Callable[[Worker], Awaitable[None]]


class Workers:
    """The workers of a run. A call uses a worker alone; `limit` of them are kept for later calls,
    the ones that were idle for the longest time end first."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._running: dict[Worker, Program] = {}
        self._idle: list[Worker] = []  # by the time of their last use
        self._starts = asyncio.Semaphore(_STARTS)
        #: Programs of which a worker was ready once: a later start that fails is an accident.
        self._working: set[Program] = set()
        self._failures: dict[Program, AttemptError] = {}

    @asynccontextmanager
    async def lend(
        self, program: Program, on_start: OnStart | None = None
    ) -> AsyncIterator[Worker]:
        """A worker of a program, ready for a call. An exception in the block ends it.

        Raises the AttemptError of `on_start`; if no worker of the program was ever ready, for
        every later call as well. OSError if it cannot be started."""
        worker = await self._take(program) or await self._start(program, on_start)
        try:
            yield worker
        except BaseException:
            await self._end(worker)
            raise
        self._idle.append(worker)

    async def _take(self, program: Program) -> Worker | None:
        """The idle worker of a program that was used last."""
        idle = [worker for worker in self._idle if self._running[worker] == program]
        while idle:
            self._idle.remove(worker := idle.pop())
            if worker.is_running:
                return worker
            await self._end(worker)
        return None

    async def _start(self, program: Program, on_start: OnStart | None) -> Worker:
        async with self._starts:
            if failure := self._failures.get(program):
                raise failure.copy()
            if free := await self._take(program):
                return free
            while len(self._running) >= self._limit and self._idle:
                await self._end(self._idle.pop(0))
            worker = await Worker.start(program)
            self._running[worker] = program
            try:
                if on_start:
                    await on_start(worker)
            except BaseException as error:
                if isinstance(error, AttemptError) and program not in self._working:
                    self._failures[program] = error
                await self._end(worker)
                raise
            self._working.add(program)
            return worker

    async def _end(self, worker: Worker) -> None:
        self._running.pop(worker, None)
        await worker.end()

    async def close(self) -> None:
        """Ends all workers. None may be in use; a later call starts new ones."""
        running = [*self._running]
        self._running, self._idle = {}, []
        await asyncio.gather(*(worker.end(process.GRACE) for worker in running))
