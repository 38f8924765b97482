"""GitHub's API: PyGithub sends and retries the requests, pydantic validates the replies."""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import github
from pydantic import TypeAdapter, ValidationError

from agentevals_action import __version__
from agentevals_action.errors import HostError
from agentevals_action.formatting import cut_line
from agentevals_action.github.client.replies import Reply
from agentevals_action.github.client.retry import (
    LAST_SECONDS,
    REQUEST_SECONDS,
    BoundedRetry,
    WaitingTime,
)
from agentevals_action.model import github_limits as limits

T = TypeVar("T")
R = TypeVar("R", bound=Reply)

#: Seconds before each repetition of a write, plus up to a quarter of it at random.
_PAUSES = (1.0, 2.0, 4.0)
_NEXT_PAGE = re.compile(r'<([^>]+)>;\s*rel="next"')
#: What PyGithub raises for no reply (`OSError`) and for replies that it cannot read.
_UNREADABLE = (OSError, ValueError, RuntimeError, AssertionError, AttributeError)
#: GitHub's reasons for a 403 that no permission changes.
_CLOSED = ("locked", "archived")


@dataclass(frozen=True)
class RunContext:
    """The repository, the commit and the run that the action writes to GitHub for.

    `labeled` is the label whose addition started the run, for `head_sha`; empty for other events.
    `sender` is the login of who added it.
    `head_sha` is the commit of the check run and the comment, `base` the tip of the base branch
    (SHA or name), `pull` the number of the pull request. Without `check_name`, no check run is
    written. `run_id` and `run_attempt` order the runs. `without_secrets` is the reason why the
    token may be read-only (a fork, Dependabot), empty otherwise. `requested_for` is the base branch
    of a run that a maintainer requests, empty otherwise."""

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
    server_url: str = "https://github.com"
    without_secrets: str = ""
    labeled: str = ""
    sender: str = ""
    requested_for: str = ""


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
        elif self.status is None:
            reason = f"{self}."
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
def as_host_errors(problem: str, permission: str) -> Iterator[None]:
    """Turns an ApiError of the block into a HostError with the permission to grant."""
    try:
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
    """The connection of one run. `sleep` takes seconds. With `is_last`, every request is short and
    sent once.

    Paths are relative to the repository. All methods raise ApiError. `notices` collects what could
    not be read or written, one sentence each, without duplicates."""

    def __init__(
        self,
        context: RunContext,
        sleep: Callable[[float], None] = time.sleep,
        *,
        is_last: bool = False,
    ) -> None:
        self.context = context
        self._pauses = () if is_last else _PAUSES
        self.notices: dict[str, None] = {}
        self._waiting = WaitingTime(sleep)
        self._requester = github.Github(
            auth=github.Auth.Token(context.token) if context.token else None,
            base_url=context.api_url,
            user_agent=f"agentevals-action/{__version__}",
            timeout=LAST_SECONDS if is_last else REQUEST_SECONDS,
            retry=BoundedRetry(
                self._waiting,
                total=len(self._pauses),
                backoff_factor=1.0,
                backoff_jitter=0.25,
                secondary_rate_wait=limits.SECONDARY_LIMIT_SECONDS,
                status_forcelist=[408, *range(500, 600)],
                allowed_methods=frozenset({"GET"}),
                raise_on_status=False,
            ),
            # A run writes about five times: a second between all of them would delay every job.
            seconds_between_requests=None,
            seconds_between_writes=None,
        ).requester

    def notice(self, sentence: str) -> None:
        """Adds a sentence for the reader of the run."""
        self.notices[sentence] = None

    def report(self, problem: str, error: ApiError, permission: str) -> None:
        """Adds a notice about a request that failed."""
        self.notice(error.explain(problem, permission, self.context.without_secrets))

    def pause(self) -> None:
        """Waits between two writes of a series, as GitHub recommends."""
        self._waiting.wait(limits.SECONDS_BETWEEN_WRITES)

    def wait(self, seconds: float) -> bool:
        """Waits for another writer; returns False at once if the run may not wait that long."""
        return self._waiting.wait(seconds)

    def get(self, path: str, model: type[R], **parameters: str | int) -> R:
        """Reads one object."""
        _, data = self._send("GET", self._url(path), parameters)
        return _validate(model, data)

    def pages(
        self, path: str, model: type[R], key: str = "", **parameters: str | int
    ) -> Iterator[R]:
        """Reads a list, page after page; `key` is the field of the reply that contains it."""
        url: str | None = self._url(path)
        parameters = {"per_page": limits.PAGE, **parameters}
        while url:
            headers, data = self._send("GET", url, parameters)
            yield from _validate(list[model], data.get(key) if isinstance(data, dict) else data)  # type: ignore[valid-type]  # a type made of a value
            following = _NEXT_PAGE.search(headers.get("link", ""))
            url, parameters = following[1] if following else None, {}

    def location(self, path: str) -> str:
        """The address that GitHub redirects to, empty if there is none."""
        headers, _ = self._send("GET", self._url(path))
        return str(headers.get("location", ""))

    def write(
        self,
        method: Literal["POST", "PATCH"],
        path: str,
        body: Mapping[str, Any],
        model: type[R],
        find: Callable[[], R | None] | None = None,
    ) -> R:
        """Creates or changes an object.

        After a failure that may hide a success, a write that must not happen twice first looks for
        its effect with `find`; only if there is none, it is repeated."""
        return self.repeat(
            lambda: _validate(model, self._send(method, self._url(path), body=body)[1]), find
        )

    def repeat(self, call: Callable[[], T], find: Callable[[], T | None] | None = None) -> T:
        """Calls, again after a pause while GitHub is unavailable; see `write`."""
        for pause in (*self._pauses, None):
            try:
                return call()
            except ApiError as error:
                if error.kind != "unavailable":
                    raise
                again = pause is not None and self.wait(pause * random.uniform(1, 1.25))  # noqa: S311  # no secret
                if find is not None and (found := find()) is not None:
                    return found
                if not again:
                    raise
        raise AssertionError("the last call returns or raises")

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends a query, or a mutation that may be repeated; returns the `data` of the reply."""
        body = {"query": query, "variables": dict(variables)}

        def send() -> Mapping[str, Any]:
            _, reply = self._send("POST", self.context.graphql_url, body=body)
            return _graphql_data(reply)

        try:
            return self.repeat(send)
        except ApiError as error:
            if error.kind != "limited" or not self.wait(limits.SECONDARY_LIMIT_SECONDS):
                raise
            return self.repeat(send)

    def query(self, query: str, variables: Mapping[str, Any], model: type[R]) -> R:
        """Reads one object by GraphQL."""
        return _validate(model, self.graphql(query, variables))

    def _url(self, path: str) -> str:
        repository = f"/repos/{self.context.repository}"
        return f"{repository}/{path}" if path else repository

    def _send(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[Mapping[str, Any], Any]:
        if not self.context.token:
            raise ApiError("forbidden", "no token was given", 401)
        try:
            return self._requester.requestJsonAndCheck(
                method, url, dict(parameters or {}), input=body and dict(body)
            )
        except github.GithubException as error:
            raise _api_error(error) from error
        except _UNREADABLE as error:
            raise ApiError("unavailable", f"no valid reply ({type(error).__name__})") from error


def _validate(model: type[T], data: object) -> T:
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        raise ApiError("unavailable", "the reply has an unexpected structure") from error


def _api_error(error: github.GithubException) -> ApiError:
    message, headers = _message(error.data), error.headers or {}
    limited = isinstance(error, github.RateLimitExceededException) or "retry-after" in headers
    if error.status == 429 or (error.status == 403 and limited):
        return ApiError("limited", message, error.status)
    if error.status in (401, 403, 404):
        return ApiError("forbidden", message, error.status)
    if error.status >= 500 or error.status == 408:
        return ApiError("unavailable", message, error.status)
    return ApiError("rejected", message, error.status)


def _message(data: object) -> str:
    """GitHub's message with the first of its details, on one line."""
    if not isinstance(data, Mapping):
        return "no reason given"
    details = data.get("errors")
    first = details[0] if isinstance(details, list) and details else None
    detail = first.get("message") if isinstance(first, Mapping) else first
    message = ", ".join(str(part) for part in (data.get("message"), detail) if part)
    return cut_line(message, 200) or "no reason given"


def _graphql_data(reply: object) -> Mapping[str, Any]:
    """The data of a GraphQL reply, whose status is 200 even for a failure."""
    if not isinstance(reply, Mapping):
        raise ApiError("unavailable", "the reply has an unexpected structure")
    errors = reply.get("errors")
    if errors and isinstance(errors, list) and isinstance(errors[0], Mapping):
        message = _message(errors[0])
        match errors[0].get("type"):
            case "FORBIDDEN" | "NOT_FOUND" | "INSUFFICIENT_SCOPES":
                raise ApiError("forbidden", message, 403)
            case "RATE_LIMITED":
                raise ApiError("limited", message, 403)
        raise ApiError("rejected", message, 200)
    if not isinstance(data := reply.get("data"), Mapping):
        raise ApiError("unavailable", "the reply has an unexpected structure")
    return data
