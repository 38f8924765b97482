"""GitHub's API: PyGithub's objects, its failures as one error, and notices about them."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import github
from github.CheckRun import CheckRun
from github.IssueComment import IssueComment

from agentevals_action import __version__
from agentevals_action.errors import HostError
from agentevals_action.formatting import cut_line
from agentevals_action.github.retry import LAST_SECONDS, REQUEST_SECONDS, BoundedRetry, WaitingTime
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.reports.markdown import github_limits as limits

C = TypeVar("C", CheckRun, IssueComment)
T = TypeVar("T")

#: Seconds before each repetition of a creation, plus up to a quarter of it at random.
_PAUSES = (1.0, 2.0, 4.0)
#: What PyGithub raises for no reply (`OSError`) and for replies that it cannot read.
_UNREADABLE = (
    github.BadAttributeException,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
#: GitHub's reasons for a 403 that no permission changes.
_CLOSED = ("locked", "archived")
_GRAPHQL_REFUSALS = ("FORBIDDEN", "NOT_FOUND", "INSUFFICIENT_SCOPES")


class ApiError(HostError):
    """GitHub did not do what a request asks for; `str()` is the reason.

    `kind`: `forbidden` (401, 403, 404), `limited` (a rate limit), `rejected` (another 4xx) or
    `unavailable` (5xx, no reply, an unexpected reply: a write may have taken effect). `status` is
    None without a reply."""

    def __init__(
        self,
        kind: Literal["forbidden", "limited", "rejected", "unavailable"],
        message: str,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status

    def explain(self, problem: str, permission: str, without_secrets: str = "") -> str:
        """A sentence with the problem, its reason and the permission to grant."""
        reply = f"{self.status}: {self}" if self.status else str(self)
        if self.kind == "limited":
            reason = (
                f"GitHub limits the requests of this token, for longer than a run waits ({reply})."
            )
        elif self.kind == "unavailable":
            reason = f"GitHub did not respond correctly ({reply})."
        elif self.kind == "rejected" or any(word in str(self) for word in _CLOSED):
            reason = f"GitHub refused it ({reply})."
        elif self.status == 401:
            reason = (
                f"GitHub does not accept the token ({self}). Set `github-token` to a valid one."
            )
        else:
            reason = (
                f"the token lacks `{permission}` (GitHub replied {reply}). "
                f"{_advice(permission, without_secrets)}"
            )
        return f"{problem}: {reason}"


@contextmanager
def api_errors() -> Iterator[None]:
    """Turns what PyGithub raises in the block into an ApiError."""
    try:
        yield
    except ApiError:
        raise
    except github.GithubException as error:
        raise _api_error(error) from error
    except _UNREADABLE as error:
        raise ApiError("unavailable", f"no valid reply ({type(error).__name__})") from error


@contextmanager
def as_host_errors(problem: str, permission: str) -> Iterator[None]:
    """Turns what PyGithub raises in the block into a HostError with the permission to grant."""
    try:
        with api_errors():
            yield
    except ApiError as error:
        raise HostError(error.explain(problem, permission).rstrip(".")) from error


def _advice(permission: str, without_secrets: str) -> str:
    if not without_secrets:
        return f"Add `{permission}` to the `permissions:` of the job."
    reason = without_secrets[0].upper() + without_secrets[1:]
    if "fork" in without_secrets:
        return (
            f"{reason}, and its token is read-only, whatever the workflow grants: "
            "the job summary has the report."
        )
    return (
        f"{reason}, and its token is read-only by default: "
        f"add `{permission}` to the `permissions:` of the job."
    )


class GitHubApi:
    """The connection of one run. `repository` is PyGithub's object, which is read when it is used:
    use it and what it returns within `api_errors`.

    `without_secrets` is the reason why the token may be read-only (a fork, Dependabot), empty
    otherwise. `sleep` takes seconds. With `is_last`, every request is short and sent once.
    `notices` collects what could not be read or written, one sentence each."""

    def __init__(
        self,
        runner: RunnerEnvironment,
        token: str | None,
        sleep: Callable[[float], None] = time.sleep,
        *,
        without_secrets: str = "",
        is_last: bool = False,
    ) -> None:
        self.notices: dict[str, None] = {}
        self._without_secrets = without_secrets
        self._pauses = () if is_last else _PAUSES
        self._waiting = WaitingTime(sleep)
        client = github.Github(
            auth=github.Auth.Token(token) if token else None,
            base_url=runner.api_url,
            user_agent=f"agentevals-action/{__version__}",
            timeout=LAST_SECONDS if is_last else REQUEST_SECONDS,
            per_page=limits.PAGE,
            verify=runner.authorities or True,
            retry=BoundedRetry(self._waiting, total=len(self._pauses)),
            # A run writes about five times: a second between all of them would delay every job.
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
        )
        self._requester = client.requester
        self.full_name = runner.repository
        self.repository = client.get_repo(runner.repository)

    def notice(self, sentence: str) -> None:
        """Adds a sentence for the reader of the run."""
        self.notices[sentence] = None

    def report(self, problem: str, error: ApiError, permission: str) -> None:
        """Adds a notice about a request that failed."""
        self.notice(error.explain(problem, permission, self._without_secrets))

    def wait(self, seconds: float) -> bool:
        """Waits; returns False at once if the run may not wait that long."""
        return self._waiting.wait(seconds)

    def create(self, send: Callable[[], C], find: Callable[[], C | None]) -> C:
        """Creates an object as `repeat` does; an unexpected reply is no object."""

        def created() -> C:
            reply = send()
            if not reply.html_url:
                raise ApiError("unavailable", "the reply has an unexpected structure")
            return reply

        return self.repeat(created, find)

    def repeat(self, send: Callable[[], T], find: Callable[[], T | None] | None = None) -> T:
        """Calls `send`, again after a pause while GitHub is unavailable. ApiError.

        A creation must not happen twice: after a failure that may hide a success, `find` first
        looks for what was created."""
        for pause in (*self._pauses, None):
            try:
                with api_errors():
                    return send()
            except ApiError as error:
                if error.kind != "unavailable":
                    raise
                again = pause is not None and self.wait(pause * random.uniform(1, 1.25))  # noqa: S311  # no secret
                with api_errors():
                    existing = find() if find is not None else None
                if existing is not None:
                    return existing
                if not again:
                    raise
        raise AssertionError("the last call returns or raises")

    def graphql(self, query: str, **variables: object) -> Mapping[str, Any]:
        """Sends a query, or a mutation that may be repeated; the `data` of the reply. ApiError."""

        def send() -> Mapping[str, Any]:
            data = self._requester.graphql_query(query, variables)[1]["data"]
            if not isinstance(data, Mapping):
                raise ApiError("unavailable", "the reply has an unexpected structure")
            return data

        try:
            return self.repeat(send)
        except ApiError as error:
            if error.kind != "limited" or not self.wait(limits.SECONDARY_LIMIT_SECONDS):
                raise
            return self.repeat(send)


def _api_error(error: github.GithubException) -> ApiError:
    status, message = error.status, _message(error.data)
    failure = _first_error(error.data)
    graphql = failure.get("type") if isinstance(failure, Mapping) else None
    limited = isinstance(error, github.RateLimitExceededException)
    limited = limited or "retry-after" in (error.headers or {})
    if graphql == "RATE_LIMITED" or status == 429 or (status == 403 and limited):
        return ApiError("limited", message, status)
    if graphql in _GRAPHQL_REFUSALS:
        return ApiError("forbidden", message, 403)
    if status in (401, 403, 404):
        return ApiError("forbidden", message, status)
    if isinstance(error, github.IncompletableObject):
        return ApiError("unavailable", "the reply has an unexpected structure")
    is_unavailable = status >= 500 or status == 408
    return ApiError("unavailable" if is_unavailable else "rejected", message, status)


def _message(data: object) -> str:
    """GitHub's message with the first of its details, on one line."""
    if not isinstance(data, Mapping):
        return "no reason given"
    first = _first_error(data)
    detail = first.get("message") if isinstance(first, Mapping) else first
    message = ", ".join(str(part) for part in (data.get("message"), detail) if part)
    return cut_line(message, 200) or "no reason given"


def _first_error(data: object) -> object:
    errors = data.get("errors") if isinstance(data, Mapping) else None
    return errors[0] if isinstance(errors, list) and errors else None
