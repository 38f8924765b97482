"""The requests of the API over real HTTP: limits, failures, and a failure that may hide a success,
which never doubles what must not happen twice. The writers have no test of this of their own."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from github.IssueComment import IssueComment

from agentevals_action.github.api import ApiError, GitHubApi, api_errors
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from tests.support import github_jobs
from tests.support.github_jobs import BASE, HEAD
from tests.support.github_server import GitHubServer
from tests.support.stand_in import InjectedFailure

RUNNER = {
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_REPOSITORY": "acme/agent",
    "GITHUB_SHA": HEAD,
    "GITHUB_WORKSPACE": "/github/workspace",
}
POST = "POST .*/comments$"
VIEWER = "query { viewer { login databaseId } }"


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.add_pull(7, HEAD, BASE)
        yield server


def create(connection: GitHubApi) -> IssueComment:
    issue = connection.repository.get_issue(7)
    return connection.create(
        lambda: issue.create_comment("b"), lambda: next(iter(issue.get_comments()), None)
    )


@pytest.mark.parametrize(
    ("status", "times", "after_write", "requests"),
    [
        (502, 1, True, 1),
        (0, 1, True, 1),  # the connection is lost
        (502, 2, False, 3),
        (0, 1, False, 2),
        (408, 1, False, 2),
    ],
)
def test_creation__is_repeated_only_if_it_had_no_effect(
    server: GitHubServer, status: int, times: int, after_write: bool, requests: int
) -> None:
    waits: list[float] = []
    server.break_route(InjectedFailure(POST, status, times, after_write=after_write))
    assert create(github_jobs.api(server, waits.append)).id == server.comments[0].id
    assert (len(server.comments), len(server.routes(POST))) == (1, requests)
    assert [round(wait) for wait in waits] == [1, 2][: max(times, 1)]


def head_of_pull(environ: Mapping[str, str]) -> str:
    runner = RunnerEnvironment.from_environ({**RUNNER, **environ})
    with api_errors():
        pull = GitHubApi(runner, "ghs_stand_in", is_last=True).repository.get_pull(7)
        return pull.head.sha


def test_api__of_a_server_whose_authority_is_in_ssl_cert_file(tmp_path: Path) -> None:
    server = GitHubServer()
    authorities = server.encrypt(tmp_path)
    server.add_pull(7, HEAD, BASE)
    with server:
        environ = {"GITHUB_API_URL": server.url}
        assert head_of_pull({**environ, "SSL_CERT_FILE": str(authorities)}) == HEAD
        with pytest.raises(ApiError, match="no valid reply"):
            head_of_pull(environ)


def test_creation__is_not_repeated_if_nobody_can_look(server: GitHubServer) -> None:
    server.break_route(InjectedFailure(POST, 502, times=10, after_write=True))
    server.break_route(InjectedFailure("GET .*/comments$", 500, times=1_000))
    with pytest.raises(ApiError, match="Server Error"):
        create(github_jobs.api(server))
    assert len(server.comments) == 1


def test_creation__that_is_rejected_is_not_repeated(server: GitHubServer) -> None:
    server.break_route(InjectedFailure(POST, 422, times=10, message="Validation Failed"))
    with pytest.raises(ApiError, match="Validation Failed"):
        create(github_jobs.api(server))
    assert len(server.routes(POST)) == 1


@pytest.mark.parametrize("status", [502, 0])
def test_update__is_repeated_directly(server: GitHubServer, status: int) -> None:
    comment = create(github_jobs.api(server))
    server.break_route(InjectedFailure("PATCH", status, after_write=True))
    comment.edit("new")
    assert (server.comments[0].body, len(server.routes("PATCH"))) == ("new", 2)


def test_last__request_of_a_run_is_sent_once(server: GitHubServer) -> None:
    server.break_route(InjectedFailure(POST, 502, times=9))
    with pytest.raises(ApiError):
        create(github_jobs.api(server, is_last=True))
    assert len(server.routes(POST)) == 1


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (InjectedFailure(POST, 429, 2, headers={"Retry-After": "7"}), [7.0, 7.0]),
        (InjectedFailure(POST, 403, 2, "Slow down", {"Retry-After": "7"}), [7.0, 7.0]),
        (InjectedFailure(POST, 403, 1, "You have exceeded a secondary rate limit."), [60.0]),
        (InjectedFailure(POST, 429), [60.0]),
    ],
)
def test_limit__is_waited_for_as_long_as_github_asks(
    server: GitHubServer, failure: InjectedFailure, expected: list[float]
) -> None:
    waits: list[float] = []
    server.break_route(failure)
    create(github_jobs.api(server, waits.append))
    assert (waits, len(server.comments)) == (expected, 1)


def test_limit__until_the_reset_is_waited_for(server: GitHubServer) -> None:
    waits: list[float] = []
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 20)}
    server.break_route(InjectedFailure(POST, 429, headers=headers))
    create(github_jobs.api(server, waits.append))
    assert len(waits) == 1
    assert 0 < waits[0] <= 21


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (InjectedFailure(POST, 429, headers={"Retry-After": "3000"}), []),  # the hour's limit
        (InjectedFailure(POST, 429, 9, headers={"Retry-After": "70"}), [70.0] * 3),
        (InjectedFailure(POST, 403, 9, "You have exceeded a secondary rate limit."), [60.0] * 3),
    ],
)
def test_limit__that_stays_is_reported_as_one(
    server: GitHubServer, failure: InjectedFailure, expected: list[float]
) -> None:
    waits: list[float] = []
    server.break_route(failure)
    with pytest.raises(ApiError) as caught:
        create(github_jobs.api(server, waits.append))
    assert (caught.value.kind, waits) == ("limited", expected)


def test_waiting__is_bounded_over_the_whole_run(server: GitHubServer) -> None:
    waits: list[float] = []
    server.break_route(InjectedFailure("", 429, 100, headers={"Retry-After": "50"}))
    connection = github_jobs.api(server, waits.append)
    for _ in range(3):
        with pytest.raises(ApiError):
            create(connection)
    assert waits == [50.0] * 4


def test_query__that_is_limited_is_sent_again_after_a_minute(server: GitHubServer) -> None:
    server.graphql_refuses = "RATE_LIMITED"
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        server.graphql_refuses = None

    found = github_jobs.api(server, wait).graphql(VIEWER)
    assert (found["viewer"]["login"], waits) == ("github-actions[bot]", [60.0])


@pytest.mark.parametrize(
    "injected",
    [
        InjectedFailure("", 500, 1_000),
        InjectedFailure("", 0, 1_000),
        InjectedFailure("", 200, 1_000, body="<html>Sign in to the hotel</html>"),
        InjectedFailure("", 200, 1_000, body='{"cut'),
        InjectedFailure("", 200, 1_000, body="[]"),
        InjectedFailure("", 200, 1_000, body="null"),
        InjectedFailure("", 502, 1_000, body="<html>Bad gateway</html>"),
        InjectedFailure("", 301, 1_000, headers={"Location": "https://elsewhere.example/"}),
    ],
    ids=["500", "disconnect", "portal", "cut JSON", "list", "null", "gateway", "redirect"],
)
def test_failure__of_any_kind_is_the_same_error(
    server: GitHubServer, injected: InjectedFailure
) -> None:
    server.break_route(injected)
    connection = github_jobs.api(server)
    for call in (
        lambda: create(connection),
        lambda: connection.graphql(VIEWER),
        lambda: connection.repository.get_pull(7).head.sha,
    ):
        with pytest.raises(ApiError) as caught, api_errors():
            call()
        assert caught.value.kind == "unavailable"


def test_read__of_an_unexpected_structure_is_not_repeated(server: GitHubServer) -> None:
    server.break_route(InjectedFailure("GET", 200, 1_000, body="<html>Sign in to the hotel</html>"))
    with pytest.raises(ApiError), api_errors():
        list(github_jobs.api(server).repository.get_pulls())
    assert len(server.requests) == 1
