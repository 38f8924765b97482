"""Runs samples that share a workspace or a conversation one after another."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager


class Ordering:
    """The order of the samples of one run. Each sample names the keys of what it shares."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Event] = {}

    def enqueue(self, keys: Sequence[Hashable]) -> AbstractAsyncContextManager[None]:
        """The place of the next sample in suite order: it is entered when every earlier sample with
        one of these keys is done. Each place must be entered, or later samples wait for ever."""
        before = [event for key in keys if (event := self._last.get(key))]
        done = asyncio.Event()
        self._last.update(dict.fromkeys(keys, done))
        return _place(before, done)


@asynccontextmanager
async def _place(before: Sequence[asyncio.Event], done: asyncio.Event) -> AsyncIterator[None]:
    try:
        for event in before:
            await event.wait()
        yield
    finally:
        done.set()
