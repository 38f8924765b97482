"""Coroutines for tests, which wait for them."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class Waiting:
    """Gives the coroutine functions of an object as functions that wait for the result."""

    def __init__(self, subject: Any) -> None:
        self._subject = subject

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._subject, name)
        return lambda *values, **named: asyncio.run(function(*values, **named))


@contextmanager
def entered(manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """The block of `async with`, in an event loop of its own."""
    with asyncio.Runner() as runner:
        value = runner.run(_enter(manager))
        try:
            yield value
        except BaseException:
            if not runner.run(_exit(manager, *sys.exc_info())):
                raise
        else:
            runner.run(_exit(manager, None, None, None))


async def _enter(manager: AbstractAsyncContextManager[T]) -> T:
    return await manager.__aenter__()


async def _exit(manager: AbstractAsyncContextManager[Any], *error: Any) -> bool | None:
    return await manager.__aexit__(*error)
