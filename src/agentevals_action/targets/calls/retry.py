"""The retries of one call: how often, and how long to wait in between."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.formatting import counted
from agentevals_action.model.trace import Trace
from agentevals_action.targets.calls.rate_limit import PATIENCE, RateLimit

#: Maximum wait of our own backoff in seconds; a server may request more.
MAX_BACKOFF = 30.0


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
