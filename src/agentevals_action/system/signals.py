"""SIGINT and SIGTERM as `Interrupted`, in plain code and in an event loop, so that cleanup runs. A
SIGINT during the cleanup ends the process, and no thread keeps it from its end."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

from agentevals_action.errors import AgentEvalsError, Interrupted

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Seconds that an event loop has to react to a signal. A call that blocks the loop, as the opening
#: of a FIFO does, is interrupted after them. GitHub's runner waits 7.5 s before it sends SIGTERM.
_LOOP_SECONDS = 2.0
#: Seconds for threads that work on when the event loop ends, and the prefix of their names.
_WORKER_SECONDS, _WORKER = 2.0, "agentevals-worker"


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block the first signal raises Interrupted in the main thread. A SIGTERM after it
    is ignored, so that it cannot stop the cleanup; a SIGINT after it ends the process."""
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGCHLD)}
    # Some supervisors start programs with SIGCHLD ignored: then every child seems to end with 0.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _handle_with(_raise)
    try:
        yield
    finally:
        if not is_ending():
            for number, handler in before.items():
                signal.signal(number, handler)


def is_ending() -> bool:
    """Whether a signal ends this process: from then on only cleanup is to be done, and quickly.
    GitHub's runner kills it 10 s after the signal."""
    return signal.getsignal(signal.SIGINT) is _end


def end_process(code: int) -> NoReturn:
    """Ends the process with an exit code, at once: the interpreter would wait for threads that
    `run` left behind, or that a signal interrupted while it was started, and free all memory one
    object at a time (0.2 s). Only if warnings are asked for does it do so, since it then reports
    what was left open."""
    waits = any(one.name.startswith(_WORKER) for one in threading.enumerate())
    if sys.warnoptions and not waits and not is_ending():
        sys.exit(code)
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed or full
            stream.flush()
    os._exit(code)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. A signal cancels it; when its cleanup is done, Interrupted is
    raised. If a group of tasks failed only with errors that a user can fix, the first of them is
    raised instead of the group."""
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(_run_until_signal(main))
    except BaseExceptionGroup as group:
        matched, others = group.split(AgentEvalsError)
        error = _first(group.subgroup(Interrupted)) or (None if others else _first(matched))
        if error is not None:
            raise error from group
        raise


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that waits a limited time for the threads of `asyncio.to_thread`. A request
    that is not answered, or the removal of many files, would delay the end of the run."""

    def __init__(self) -> None:
        super().__init__()
        self._workers = ThreadPoolExecutor(thread_name_prefix=_WORKER)
        self.set_default_executor(self._workers)

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ARG002  # asyncio's signature, 300 s
    ) -> None:
        deadline = time.monotonic() + _WORKER_SECONDS
        self._workers.shutdown(wait=False, cancel_futures=True)
        for thread in threading.enumerate():
            if thread.name.startswith(_WORKER):
                thread.join(max(0.0, deadline - time.monotonic()))


def _first(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run_until_signal(main: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)
    received: list[signal.Signals] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        _expect_second()
        received.append(signal.Signals(number))
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, _LOOP_SECONDS)
        loop.call_soon_threadsafe(cancel)

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Interrupted(received[0].name)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        task.cancel()

    before = {number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGALRM)}
    _handle_with(stop)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0].name) from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not received:
            for number, handler in before.items():
                signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    _expect_second()
    raise Interrupted(signal.Signals(number).name)


def _expect_second() -> None:
    """A handler is needed to end: without one, the kernel does not deliver SIGINT to the first
    process of a container."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)


def _handle_with(handler: Handler) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
