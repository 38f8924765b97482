"""Which samples have to wait for which: turns of a conversation, and tests that share a folder, go
one after another."""

import asyncio
from collections.abc import Hashable
from types import TracebackType
from typing import TYPE_CHECKING

from agentevals_action.model.suite import Suite, Test

if TYPE_CHECKING:
    from agentevals_action.execution.workspaces.pool import Workspaces

#: Samples that wait at once; those behind them are not read yet.
_MOST_WAITING = 256


class Turn:
    """One sample's turn: entered when all before it are over, and over itself when it is left,
    however that happens."""

    def __init__(
        self, before: list[asyncio.Event], over: asyncio.Event, room: asyncio.Semaphore
    ) -> None:
        self._before, self._over, self._room = before, over, room

    async def __aenter__(self) -> None:
        try:
            for event in self._before:
                await event.wait()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._over.set()
        self._room.release()


class Lanes:
    """The lanes of one run. Samples must be placed in suite order."""

    def __init__(self, workspaces: "Workspaces") -> None:
        self._workspaces = workspaces
        self._last: dict[Hashable, asyncio.Event] = {}
        self._room = asyncio.Semaphore(_MOST_WAITING)

    async def place(self, suite: Suite, test: Test, sample: int) -> Turn | None:
        """The turn of a sample behind those before it in its lanes; None when it has none and may
        run at any time."""
        lanes = self._lanes(suite, test, sample)
        if not lanes:
            return None
        await self._room.acquire()
        before = [event for lane in lanes if (event := self._last.get(lane)) and not event.is_set()]
        over = asyncio.Event()
        self._last.update(dict.fromkeys(lanes, over))
        return Turn(before, over, self._room)

    def _lanes(self, suite: Suite, test: Test, sample: int) -> list[Hashable]:
        lanes: list[Hashable] = []
        if (
            test.workspace is not None
            and (shared := self._workspaces.lane(suite, test)) is not None
        ):
            lanes.append(shared)
        if test.conversation_id is not None:
            lanes.append((suite.root, suite.path, test.conversation_id, sample))
        return lanes
