"""The retries of requests to GitHub, within the waiting time of one run."""

import time
from collections.abc import Callable
from typing import Any

import github
from urllib3 import BaseHTTPResponse, Retry
from urllib3.exceptions import MaxRetryError, ResponseError, TimeoutError

from agentevals_action.reports.markdown import github_limits as limits

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
    """Repeats reads and updates after a 5xx or without a reply, and every request after a rate
    limit; creations are repeated by `GitHubApi.repeat`.

    PyGithub's own retry does not look at 429 without `Retry-After`, and does not limit the time of
    all requests together."""

    def __init__(self, waiting: WaitingTime, **options: Any) -> None:
        self._waiting = waiting
        defaults: dict[str, Any] = {
            "backoff_factor": 1.0,
            "backoff_jitter": 0.25,
            "secondary_rate_wait": limits.SECONDARY_LIMIT_SECONDS,
            "status_forcelist": [408, *range(500, 600)],
            "allowed_methods": frozenset({"GET", "PATCH"}),
            "raise_on_status": False,
        }
        super().__init__(**(defaults | options))

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
        if asked is not None or response.status != 429:
            return asked
        reset = response.headers.get("x-ratelimit-reset", "")
        if response.headers.get("x-ratelimit-remaining") != "0" or not reset.isdigit():
            return limits.SECONDARY_LIMIT_SECONDS
        return max(0.0, float(reset) - time.time()) + 1.0  # the reset may be at the second's end

    def increment(  # type: ignore[override]  # the return type is that of GithubRetry
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        **context: Any,
    ) -> Retry:
        """The retry after an attempt; MaxRetryError if there is none."""
        if isinstance(error, TimeoutError):
            self._waiting.left -= REQUEST_SECONDS
        self.max_rate_limit_wait = self._waiting.left
        try:
            retry = super().increment(method, url, response, error, **context)  # type: ignore[arg-type]  # as urllib3 calls it
        except MaxRetryError as exhausted:
            if response is not None and response.status == 403:  # GithubRetry has read its body
                data = {"message": "rate limit exceeded"}
                raise github.RateLimitExceededException(403, data) from exhausted
            raise
        if self._seconds(retry, response) > self._waiting.left:
            reason = error or ResponseError("no waiting time is left")
            raise MaxRetryError(context["_pool"], url or "", reason)
        return retry

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:
        """Waits for the next attempt."""
        self._waiting.wait(self._seconds(self, response))

    @staticmethod
    def _seconds(retry: Retry, response: BaseHTTPResponse | None) -> float:
        asked = retry.get_retry_after(response) if response is not None else None
        return retry.get_backoff_time() if asked is None else asked
