"""GitHub's API through PyGithub: one connection, bounded waiting, failures told apart, nothing
created twice."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import github
from github.Repository import Repository

from agentevals_action import __version__
from agentevals_action.errors import HostError
from agentevals_action.github import limits

T = TypeVar("T")

ATTEMPTS = 4
REQUEST_SECONDS = 15
#: Seconds that a run may lose altogether by waiting for GitHub and for answers that do not come.
WAITING_SECONDS = 240.0
_FIRST_PAUSE = 1.0

_LIMIT_WORDS = (
    "rate limit",
    "abuse detection",
    "wait a few minutes",
    "retry your request again later",
)


@dataclass(frozen=True)
class Target:
    """Where a report goes, and whose it is.

    `head_sha` is the commit that carries the check and that the comment speaks of, `base` the base
    branch's tip (SHA or name), `pull` the pull request's number, None when there is none.
    `check_name` None means no check. `run_id` and `run_attempt` order the runs. `without_secrets`
    says why the token may have no more than reading rights (a fork, Dependabot), empty when it
    should have them."""

    repository: str
    head_sha: str
    token: str | None = field(default=None, repr=False)
    api_url: str = "https://api.github.com"
    graphql_url: str = "https://api.github.com/graphql"
    pull: int | None = None
    base: str | None = None
    check_name: str | None = None
    comment_id: str = "agentevals"
    run_id: int = 0
    run_attempt: int = 1
    run_url: str | None = None
    without_secrets: str = ""


class Trouble(HostError):
    """GitHub did not do what it was asked; `str()` is what it said.

    `kind`: `forbidden` (401, 403, 404), `limited` (429 and its kin), `invalid` (other 4xx), `down`
    (5xx, no answer, one that is not GitHub's). `status` is None when nothing answered, `wait` the
    seconds that GitHub asks for. After `down`, a write may have happened."""

    def __init__(
        self,
        kind: Literal["forbidden", "limited", "invalid", "down"],
        message: str,
        status: int | None = None,
        wait: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.wait = wait


class GitHubApi:
    """One connection, and the patience that a run has with it. `sleep` takes seconds."""

    def __init__(self, target: Target, sleep: Callable[[float], None] = time.sleep) -> None:
        self._target = target
        self._sleep = sleep
        self._patience = WAITING_SECONDS

    @cached_property
    def _github(self) -> github.Github:
        if not self._target.token:
            raise Trouble("forbidden", "no token was given", 401)
        # PyGithub's own repetitions are off: it would send a POST again after a 5xx, and a comment
        # would stand twice.
        return github.Github(
            auth=github.Auth.Token(self._target.token),
            base_url=self._target.api_url,
            user_agent=f"agentevals-action/{__version__}",
            timeout=REQUEST_SECONDS,
            per_page=limits.PAGE,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
        )

    @property
    def repository(self) -> Repository:
        """The repository, nothing asked of it yet; to be used inside `ask` alone."""
        return self._github.get_repo(self._target.repository)

    def pause(self) -> None:
        """Waits between two writes of a series, as GitHub wants it."""
        self._sleep(limits.SECONDS_BETWEEN_WRITES)

    def wait(self, seconds: float) -> bool:
        """Waits for others; False, at once, when that is longer than is left to wait in this
        run."""
        if seconds > self._patience:
            return False
        self._patience -= seconds
        self._sleep(seconds)
        return True

    def ask(self, call: Callable[[], T], landed: Callable[[], T | None] | None = None) -> T:
        """What `call` gives; repeated with growing pauses, or those that GitHub asks for, while
        there is hope. Raises Trouble.

        A call that creates something gives `landed`: after a failure that leaves open whether it
        took place, it looks for what the call would have made, and only where it finds nothing the
        call is repeated."""
        attempt = 0
        while True:
            began = time.monotonic()
            try:
                return call()
            except (
                Exception
            ) as error:  # an answer that is not GitHub's makes PyGithub raise anything at all
                trouble, cause = _trouble(error), error
            self._patience -= time.monotonic() - began
            attempt += 1
            hope = (
                trouble.kind in ("limited", "down")
                and attempt < ATTEMPTS
                and self._wait_after(trouble, attempt)
            )
            if landed is not None and trouble.kind == "down" and (found := landed()) is not None:
                return found
            if not hope:
                raise trouble from cause

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """The `data` of a GraphQL answer; a query or a mutation that may be repeated. Raises
        Trouble."""

        def call() -> Mapping[str, Any]:
            body = {"query": query, "variables": dict(variables)}
            _, answer = self._github.requester.requestJsonAndCheck(
                "POST", self._target.graphql_url, input=body
            )
            if errors := answer.get("errors"):
                raise _graphql_trouble(errors[0])
            data: Mapping[str, Any] = answer["data"]
            return data

        return self.ask(call)

    def _wait_after(self, trouble: Trouble, attempt: int) -> bool:
        """Waits after so many attempts; False when that would take longer than is left to wait in
        this run."""
        pause = _FIRST_PAUSE * 2 ** (attempt - 1)
        seconds = trouble.wait if trouble.wait is not None else pause + random.uniform(0, pause / 4)  # noqa: S311
        return self.wait(seconds)


def _trouble(error: Exception) -> Trouble:
    if isinstance(error, Trouble):
        return error
    if not isinstance(error, github.GithubException):
        return Trouble("down", f"no answer of GitHub's ({type(error).__name__})")
    words = _words(error.data)
    wait = _asked_wait(error.status, error.headers or {}, words)
    if wait is not None:
        return Trouble("limited", words, error.status, wait)
    if error.status in (401, 403, 404):
        return Trouble("forbidden", words, error.status)
    if error.status >= 500 or error.status == 408:
        return Trouble("down", words, error.status)
    return Trouble("invalid", words, error.status)


def _words(data: object) -> str:
    """GitHub's own message with the first of its details, on one line."""
    if not isinstance(data, Mapping):
        return "no reason given"
    details = data.get("errors")
    first = details[0] if isinstance(details, list) and details else None
    detail = first.get("message") if isinstance(first, Mapping) else first
    words = ", ".join(str(part) for part in (data.get("message"), detail) if part)
    return " ".join(words.split())[:200] or "no reason given"


def _asked_wait(status: int, headers: Mapping[str, str], words: str) -> float | None:
    """Seconds that a refusal for too many requests asks for; None when it is none.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
    """
    if status not in (403, 429):
        return None
    after = headers.get("retry-after", "")
    if after.isdigit():
        return float(after)
    if (
        headers.get("x-ratelimit-remaining") == "0"
        and (reset := headers.get("x-ratelimit-reset", "")).isdigit()
    ):
        return (
            max(0.0, float(reset) - time.time()) + 1.0
        )  # it is reset at some moment of that second
    if status == 429 or any(part in words.lower() for part in _LIMIT_WORDS):
        return limits.SECONDARY_LIMIT_SECONDS
    return None


def _graphql_trouble(error: Mapping[str, Any]) -> Trouble:
    """GraphQL answers 200 whatever happened."""
    words = " ".join(str(error.get("message", "no reason given")).split())[:200]
    match error.get("type"):
        case "FORBIDDEN" | "NOT_FOUND" | "INSUFFICIENT_SCOPES":
            return Trouble("forbidden", words, 403)
        case "RATE_LIMITED":
            return Trouble("limited", words, 403, limits.SECONDARY_LIMIT_SECONDS)
    return Trouble("invalid", words, 200)
