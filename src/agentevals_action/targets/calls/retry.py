"""When calls to one target begin: the rate of all calls, and the retries of one call."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.formatting import counted
from agentevals_action.model.trace import Trace

#: Maximum wait of our own backoff in seconds; a server may request more.
MAX_BACKOFF = 30.0
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


class Retries:
    """Repeats a call after a TransientError.

    `retries` counts repetitions; `seconds` is the time limit for all calls and the backoff between
    them, of which `seconds_left` is left; `backoff` is the first wait in seconds. A rate limit
    (429) uses neither a repetition nor time: it delays all calls to the target, for at most
    `PATIENCE` seconds per call."""

    def __init__(self, retries: int, seconds: float, backoff: float, rate_limit: RateLimit) -> None:
        self._retries, self.seconds_left = retries, seconds
        self._backoff, self._rate_limit = backoff, rate_limit
        self._calls = self._failures = 0
        self._patience = PATIENCE

    def deduct(self, seconds: float) -> None:
        """Takes the time of a call from what is left."""
        self.seconds_left = max(self.seconds_left - seconds, 0.0)

    async def run(self, call: Callable[[], Awaitable[Trace]]) -> Trace:
        """The result of the first call that succeeds; AttemptError if there is none, TargetDead if
        the target requests too long a pause."""
        while True:
            try:
                return await call()
            except TransientError as error:
                await self._wait(error)

    async def _wait(self, error: TransientError) -> None:
        """Waits before the next call. A pause that the target requests delays all of its calls
        instead: the rate limit waits."""
        self._calls += 1
        longest = min(self._backoff * 2 ** (self._calls - 1), MAX_BACKOFF)
        backoff = longest * random.uniform(0.5, 1)  # noqa: S311  # no secret
        if error.limited:
            pause = max(backoff, error.retry_after or 0.0)
            self._patience -= pause
            self._rate_limit.pause(pause, error)
            if self._patience < 0:
                raise self._given_up(error)
            return
        self._failures += 1
        if self._failures > self._retries:
            raise self._given_up(error)
        if error.retry_after is not None:
            self._rate_limit.pause(error.retry_after, error)
            backoff = 0.0
        if backoff >= self.seconds_left:
            raise self._given_up(error, f", with no time left to wait {backoff:.1f} s and retry")
        self.deduct(backoff)
        await asyncio.sleep(backoff)

    def _given_up(self, error: TransientError, reason: str = "") -> AttemptError:
        problem = str(error)
        if self._calls > 1 or reason:  # at the beginning: a program's output may be at the end
            problem = f"after {counted(self._calls, 'call')}{reason}, {problem}"
        return AttemptError("target", problem, error.hint)
