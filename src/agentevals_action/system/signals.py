"""SIGINT and SIGTERM become `Interrupted`, in plain code and in an event loop, so that everything
that was begun is put away."""

import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from agentevals_action.errors import AgentEvalsError, Interrupted

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Seconds until a signal that came within an import is raised after all, if the import is over.
_AGAIN = 0.005
_IMPORT = "<frozen importlib._bootstrap>"
#: The signal for which Interrupted is raised, once there was one.
_received: list[signal.Signals] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, the first signal raises Interrupted in the main thread and later ones are ignored, so
    that they cannot stop the tidying.

    Where what is raised is lost, as in a destructor, it is raised again when an event loop begins,
    and at the latest at the end."""
    _received.clear()
    before = {
        number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGCHLD, signal.SIGALRM)
    }
    # A process that was started with it ignored (some supervisors do) does not hear how its
    # children end.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _listen()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in _received:
            raise Interrupted(number.name) from None


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end; on a signal it is cancelled, has tidied up, and Interrupted is
    raised. What a group of tasks ended in is raised as itself when it is a failure that a user can
    mend."""
    import asyncio

    try:
        return asyncio.run(_cancelled_by_signal(main))
    except BaseExceptionGroup as group:
        if (told := _first(group)) is not None:
            raise told from group
        raise


def _first(group: BaseExceptionGroup[BaseException]) -> AgentEvalsError | None:
    """The first failure of a group in which there is nothing but failures that a user can mend."""
    mendable, others = group.split(AgentEvalsError)
    error: BaseException | None = None if others else mendable
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, AgentEvalsError) else None


async def _cancelled_by_signal(main: Coroutine[Any, Any, T]) -> T:
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()

    listening = signal.getsignal(signal.SIGTERM) is _raise
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _received:
        stop(number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0].name) from None
        raise
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if received:
            _ignore()
        elif listening:
            _listen()


def _listen() -> None:
    for number in _SIGNALS:
        signal.signal(number, _raise)


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _raise(number: int, frame: FrameType | None) -> None:
    _ignore()
    _received.append(signal.Signals(number))
    _raise_outside_imports(signal.SIGALRM, frame)


def _raise_outside_imports(number: int, frame: FrameType | None) -> None:
    """Interrupted; within an import a little later: it would be lost there, come out as another
    error, or crash a library in C."""
    while frame:
        if frame.f_code.co_filename == _IMPORT:
            signal.signal(number, _raise_outside_imports)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            return
        frame = frame.f_back
    raise Interrupted(_received[0].name)
