"""The rate of calls to one target: calls at once, calls per minute, and pauses that it requests."""

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext

from agentevals_action.errors import AttemptError, TargetDead

_MINUTE = 60.0
#: Seconds for which a target may refuse all calls because of its rate limit. A run must end.
PATIENCE = 300.0


class RateLimit:
    """The limits that all calls to one target share. `max_concurrency` calls run at once,
    `requests_per_minute` begin within any 60 seconds; None is no limit."""

    def __init__(self, max_concurrency: int | None, requests_per_minute: int | None) -> None:
        #: Held by each of the concurrent calls.
        self.slot: AbstractAsyncContextManager[None] = (
            asyncio.Semaphore(max_concurrency) if max_concurrency else nullcontext()
        )
        self._per_minute = requests_per_minute
        self._begun: deque[float] = deque()
        self._paused_until = 0.0
        self._refused_since: float | None = None

    async def turn(self) -> None:
        """Waits until a call may begin, and counts it."""
        loop = asyncio.get_running_loop()
        while (wait := self._wait(loop.time())) > 0:  # noqa: ASYNC110  # other calls may prolong it
            await asyncio.sleep(wait)
        if self._per_minute:
            self._begun.append(loop.time())

    def pause(self, seconds: float, refusal: AttemptError) -> None:
        """Lets no call begin for some seconds, as the target requests; TargetDead if it has refused
        all calls for too long."""
        now = asyncio.get_running_loop().time()
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now + seconds - self._refused_since > PATIENCE:
            raise TargetDead(
                f"{refusal}; the wait would exceed {PATIENCE:g} s",
                "lower `max_concurrency`, or set `requests_per_minute`",
            )
        self._paused_until = max(self._paused_until, now + seconds)

    def succeeded(self) -> None:
        """The target answers: the time of refusals starts again from zero."""
        self._refused_since = None

    def _wait(self, now: float) -> float:
        while self._begun and self._begun[0] <= now - _MINUTE:
            self._begun.popleft()
        full = self._per_minute is not None and len(self._begun) >= self._per_minute
        return max(self._paused_until - now, self._begun[0] + _MINUTE - now if full else 0.0)
