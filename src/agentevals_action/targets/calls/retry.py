"""The retries of one call: how often, and how long to wait in between."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NoReturn

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_exponential

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.model.trace import Trace
from agentevals_action.targets.calls.rate_limit import PATIENCE, RateLimit

#: Maximum wait of our own backoff in seconds; a server may request more.
MAX_BACKOFF = 30.0


class Retries:
    """Repeats a call after a TransientError.

    `retries` counts repetitions; `seconds` is the time limit for all calls and the backoff between
    them; `backoff` is the first wait in seconds. A rate limit (429) uses neither a repetition nor
    time: it delays all calls to the target, for at most `PATIENCE` seconds per call."""

    def __init__(self, retries: int, seconds: float, backoff: float, rate_limit: RateLimit) -> None:
        self._retries, self._seconds_left = retries, seconds
        self._exponential = wait_exponential(multiplier=backoff, max=MAX_BACKOFF)
        self._rate_limit = rate_limit
        self._failures = 0
        self._patience = PATIENCE

    async def run(self, call: Callable[[], Awaitable[Trace]]) -> Trace:
        """The result of the first call that succeeds; AttemptError if there is none, TargetDead if
        the target requests too long a pause."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            wait=self._wait,
            stop=self._is_over,
            sleep=self._sleep,
            retry_error_callback=self._give_up,
        )
        return await retrying(call)

    async def timed(self, call: Callable[[float], Awaitable[Trace]]) -> tuple[Trace, float]:
        """Calls with the seconds that are left, and deducts the time it takes; the result and its
        milliseconds."""
        started = monotonic()
        try:
            trace = await call(self._seconds_left)
        finally:
            seconds = monotonic() - started
            self._seconds_left = max(self._seconds_left - seconds, 0.0)
        return trace, seconds * 1000

    def _wait(self, state: RetryCallState) -> float:
        """The seconds to sleep. A pause that the target requests delays all of its calls instead:
        the rate limit waits."""
        error = _error(state)
        backoff = self._exponential(state) * random.uniform(0.5, 1)  # noqa: S311  # no secret
        if error.limited:
            pause = max(backoff, error.retry_after or 0.0)
            self._patience -= pause
        else:
            self._failures += 1
            if error.retry_after is None or self._failures > self._retries:
                return backoff
            pause = error.retry_after
        self._rate_limit.pause(pause, error)
        return 0.0

    def _is_over(self, state: RetryCallState) -> bool:
        if _error(state).limited:
            return self._patience < 0
        return self._failures > self._retries or state.upcoming_sleep >= self._seconds_left

    async def _sleep(self, seconds: float) -> None:
        self._seconds_left -= seconds
        await asyncio.sleep(seconds)

    def _give_up(self, state: RetryCallState) -> NoReturn:
        error, calls = _error(state), state.attempt_number
        problem = f"{error} (after {calls} calls)" if calls > 1 else str(error)
        if not error.limited and self._failures <= self._retries:
            problem += f"; no time is left to wait {state.upcoming_sleep:.1f} s and retry"
        raise AttemptError("target", problem, error.hint) from None


def _error(state: RetryCallState) -> TransientError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, TransientError):
        raise TypeError(f"{error!r} is not retried")
    return error
