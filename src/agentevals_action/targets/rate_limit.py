"""How fast a target is called: calls at once, calls a minute, and a pause of all its calls when it
asks for one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentevals_action.errors import AttemptError, TargetDead

_MINUTE = 60.0
#: Seconds that a target may refuse all calls for its rate limit; then it is given up, since a run
#: must end.
PATIENCE = 300.0


class RateLimit:
    """What all calls to one target share. `max_concurrency` calls run at once,
    `requests_per_minute` begin within any 60 seconds; None is no limit."""

    def __init__(self, max_concurrency: int | None, requests_per_minute: int | None) -> None:
        self._slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self._per_minute = requests_per_minute
        self._begun: deque[float] = deque()
        self._paused_until = 0.0
        self._refused_since: float | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One of the calls at once, for as long as it lasts."""
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield

    async def turn(self) -> None:
        """Waits until a call may begin, and counts it as begun."""
        loop = asyncio.get_running_loop()
        while (wait := self._wait(loop.time())) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait)
        if self._per_minute:
            self._begun.append(loop.time())

    def limited(self, seconds: float, refusal: AttemptError) -> None:
        """Lets no call begin for so long, since the target asks for it; TargetDead when it answers
        nobody for too long."""
        now = asyncio.get_running_loop().time()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now + seconds - self._refused_since > PATIENCE:
            raise TargetDead(
                f"{refusal}; it would have to be waited for more than {PATIENCE:g} s",
                "lower `max_concurrency`, or set `requests_per_minute`",
            )
        self._paused_until = max(self._paused_until, now + seconds)

    def succeeded(self) -> None:
        """The target answers: its patience is as long as ever."""
        self._refused_since = None

    def _wait(self, now: float) -> float:
        while self._begun and self._begun[0] <= now - _MINUTE:
            self._begun.popleft()
        full = self._per_minute is not None and len(self._begun) >= self._per_minute
        return max(self._paused_until - now, self._begun[0] + _MINUTE - now if full else 0.0)
