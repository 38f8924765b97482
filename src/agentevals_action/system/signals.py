"""SIGINT and SIGTERM as `Interrupted`, in plain code and in an event loop, so that cleanup runs."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from agentevals_action.errors import AgentEvalsError, Interrupted

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block the first signal raises Interrupted in the main thread. Later signals are
    ignored, so that they cannot stop the cleanup."""
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, signal.SIGCHLD)}
    # Some supervisors start programs with SIGCHLD ignored: then every child seems to end with 0.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _handle_with(_raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. A signal cancels it; when its cleanup is done, Interrupted is
    raised. If a group of tasks failed only with errors that a user can fix, the first of them is
    raised instead of the group."""
    try:
        return asyncio.run(_run_until_signal(main))
    except BaseExceptionGroup as group:
        if (error := _first_user_error(group)) is not None:
            raise error from group
        raise


def _first_user_error(group: BaseExceptionGroup[BaseException]) -> AgentEvalsError | None:
    matched, others = group.split(AgentEvalsError)
    error: BaseException | None = None if others else matched
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, AgentEvalsError) else None


async def _run_until_signal(main: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0].name) from None
        raise
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN if received else handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    _handle_with(signal.SIG_IGN)
    raise Interrupted(signal.Signals(number).name)


def _handle_with(handler: Any) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
