"""The retries of requests to GitHub, within the waiting time of one run."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import github
from urllib3 import BaseHTTPResponse, Retry
from urllib3.exceptions import MaxRetryError, ResponseError, TimeoutError

from agentevals_action.model import github_limits as limits

REQUEST_SECONDS = 15
#: Seconds for the last request of a run that a signal ends: GitHub's runner kills it after 10 s.
LAST_SECONDS = 4
#: Seconds that all requests of a run together may wait for GitHub.
WAITING_SECONDS = 240.0


class WaitingTime:
    """The seconds that a run may still wait for GitHub."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self.left = WAITING_SECONDS

    def wait(self, seconds: float) -> bool:
        """Waits; returns False at once if the time left is too short."""
        if seconds > self.left:
            return False
        self.left -= seconds
        if seconds:
            self._sleep(seconds)
        return True


class BoundedRetry(github.GithubRetry):
    """Repeats reads after a 5xx or without a reply, and every request after a rate limit.

    PyGithub's own retry does not look at 429 without `Retry-After`, and does not limit the time of
    all requests together. Writes are repeated by `GitHubApi.write`."""

    def __init__(self, waiting: WaitingTime, **options: Any) -> None:
        self._waiting = waiting
        super().__init__(**options)

    def new(self, **changes: Any) -> "BoundedRetry":
        """A copy for the next attempt."""
        return super().new(waiting=self._waiting, **changes)

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether a reply may be repeated; GithubRetry decides on a 403 by its content."""
        limited = status_code in (403, 429)
        return limited or super().is_retry(method, status_code, has_retry_after)

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """The seconds that GitHub asks for."""
        asked = super().get_retry_after(response)
        if asked is None and response.status == 429:
            return _seconds_to_reset(response.headers) or limits.SECONDARY_LIMIT_SECONDS
        return asked

    def increment(  # type: ignore[override]  # the return type is that of GithubRetry
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: TracebackType | None = None,
    ) -> Retry:
        """The retry after an attempt; MaxRetryError if there is none."""
        if isinstance(error, TimeoutError):
            self._waiting.left -= REQUEST_SECONDS
        self.max_rate_limit_wait = self._waiting.left
        try:
            retry = super().increment(method, url, response, error, _pool, _stacktrace)  # type: ignore[arg-type]  # as urllib3 calls it
        except MaxRetryError as exhausted:
            if response is not None and response.status == 403:  # GithubRetry has read its body
                data = {"message": "rate limit exceeded"}
                raise github.RateLimitExceededException(403, data) from exhausted
            raise
        asked = self.get_retry_after(response) if response is not None else None
        if max(asked or 0.0, retry.get_backoff_time()) > self._waiting.left:
            raise MaxRetryError(_pool, url, error or ResponseError("no waiting time is left"))
        return retry

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:
        """Waits for the next attempt."""
        asked = self.get_retry_after(response) if response is not None else None
        self._waiting.wait(self.get_backoff_time() if asked is None else asked)


def _seconds_to_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until the hourly limit is reset; None if it is not exceeded."""
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") != "0" or not reset.isdigit():
        return None
    return max(0.0, float(reset) - time.time()) + 1.0  # the reset is at any moment of that second
