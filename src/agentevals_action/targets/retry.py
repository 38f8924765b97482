"""One call's tries: what they take of its time limit, how long is waited between them, when it is
enough."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from agentevals_action.errors import AttemptError, TransientError
from agentevals_action.targets.rate_limit import PATIENCE, RateLimit

#: Seconds that our own backoff waits at most; what a server asks for may be longer.
MAX_BACKOFF = 30.0


class Tries:
    """`limit` are the seconds for all tries of a call together, `retries` how often it is repeated
    after a failure, `backoff` the first wait between tries in seconds. Waiting for a target's rate
    limit counts to neither: it is the target that is slow, not the test."""

    def __init__(self, retries: int, limit: float, backoff: float) -> None:
        self.limit = limit
        self.last_ms = 0.0
        self._left = limit
        self._retries, self._backoff = retries, backoff
        self._failures, self._refusals = 0, 0
        self._patience = PATIENCE

    @contextmanager
    def timed(self) -> Iterator[float]:
        """One try: the seconds left for it; what it took is gone from them."""
        started = monotonic()
        try:
            yield self._left
        finally:
            took = monotonic() - started
            self.last_ms = took * 1000
            self._left = max(self._left - took, 0.0)

    async def failed(self, error: TransientError, throttle: RateLimit) -> None:
        """Waits, or has the target's calls wait, before the next try; raises AttemptError when
        there is none, or no time for it, and TargetDead when the target asks for more patience than
        there is."""
        if error.limited:
            self._refusals += 1
            pause = max(self._pause(self._refusals), error.retry_after or 0.0)
            throttle.limited(pause, error)
            self._patience -= pause
            if self._patience < 0:
                raise AttemptError(
                    "target", f"{error} (after {self._refusals} tries)", error.hint
                ) from None
            return
        tries = f" (after {self._failures + 1} tries)" if self._failures else ""
        if self._failures == self._retries:
            raise AttemptError("target", f"{error}{tries}", error.hint) from None
        self._failures += 1
        if error.retry_after is not None:
            throttle.limited(error.retry_after, error)
            return
        pause = self._pause(self._failures)
        if pause >= self._left:
            raise AttemptError(
                "target",
                f"{error}{tries}; no time is left to wait {pause:.1f} s and try again",
                error.hint,
            ) from None
        self._left -= pause
        await asyncio.sleep(pause)

    def _pause(self, failures: int) -> float:
        return float(min(self._backoff * 2 ** (failures - 1), MAX_BACKOFF) * random.uniform(0.5, 1))  # noqa: S311
