"""The event loop of the program, which SIGINT and SIGTERM cancel, so that cleanup runs. A SIGINT
during the cleanup ends the process, and no thread keeps it from its end."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, NoReturn, TypeVar

from agentevals_action.errors import Interrupted, unwrapped

log = logging.getLogger(__name__)

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Seconds for threads that work on when the event loop ends, and their name.
_WORKER_SECONDS, _WORKER = 2.0, "agentevals-worker"
#: The signal that ends this process.
_received: list[signal.Signals] = []


def is_ending() -> bool:
    """Whether a signal ends this process: from then on only cleanup is to be done, and quickly.
    GitHub's runner kills it 10 s after the signal."""
    return bool(_received)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. A signal cancels it; when its cleanup is done, Interrupted is
    raised. A SIGTERM after that is ignored, so that it cannot stop the cleanup; a SIGINT ends the
    process."""
    # Some supervisors start programs with SIGCHLD ignored: then every child seems to end with 0.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        with asyncio.Runner() as runner, unwrapped():
            runner.get_loop().set_default_executor(_Threads())
            return runner.run(_run_until_signal(main))
    finally:
        for number in SIGNALS:
            signal.signal(number, end_at_once)


async def in_thread(function: Callable[..., T], *values: Any) -> T:
    """Runs a function that writes in a thread. A cancellation waits for its end, at most 2 s:
    nothing is written after the cleanup, and the cleanup itself is complete."""
    work = asyncio.create_task(asyncio.to_thread(function, *values))
    await until_done(work, _WORKER_SECONDS)
    return work.result()


async def until_done(work: asyncio.Task[Any], seconds: float | None = None) -> None:
    """Waits for the end of a task. A cancellation takes effect after it, or after `seconds`."""
    cancelled = False
    while not work.done():
        try:
            await asyncio.wait([work], timeout=seconds if cancelled or is_ending() else None)
        except asyncio.CancelledError:
            cancelled = True
        else:
            break
    if cancelled or not work.done():
        raise asyncio.CancelledError


async def _run_until_signal(main: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)

    def cancel(number: signal.Signals) -> None:
        if not _received:
            _received.append(number)
            signal.signal(signal.SIGINT, end_at_once)
            task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, cancel, number)
    try:
        return await task
    except Exception:
        if _received:
            log.warning("the cleanup failed", exc_info=True)
        raise
    finally:
        if _received:
            raise Interrupted(_received[0].name)


class _Threads(ThreadPoolExecutor):
    """Starts a thread for each call, so that none waits for a server that another one asks. If the
    machine has no thread left, the function runs at once: how the run ended is still written."""

    def submit(self, function: Callable[..., T], /, *values: Any, **named: Any) -> Future[T]:
        """The future result of a function."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                future.set_result(function(*values, **named))
            except BaseException as error:  # the future passes it on
                future.set_exception(error)

        try:
            threading.Thread(target=work, name=_WORKER, daemon=True).start()
        except RuntimeError:
            work()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Waits a limited time for the threads: a request that is not answered, or the removal of
        many files, would delay the end of the run."""
        deadline = time.monotonic() + _WORKER_SECONDS
        for thread in threading.enumerate():
            if thread.name == _WORKER:
                thread.join(max(0.0, deadline - time.monotonic()))


def end_at_once(number: int, _frame: FrameType | None = None) -> NoReturn:
    """A handler of signals that ends the process. One is needed: without it, the kernel does not
    deliver the signal to the first process of a container."""
    os._exit(128 + number)


def end_process(code: int) -> NoReturn:
    """Ends the process with an exit code, at once: the interpreter would wait for threads that
    `run` left behind, and free all memory one object at a time (0.2 s). Only if warnings are asked
    for does it do so, since it then reports what was left open."""
    waits = any(thread.name == _WORKER for thread in threading.enumerate())
    try:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # closed or full
        os._exit(code)
    if sys.warnoptions and not waits and not is_ending():
        sys.exit(code)
    os._exit(code)
