"""The writes of the API over real HTTP: a failure that may hide a success never doubles what must not
happen twice. The writers have no test of this of their own."""

from collections.abc import Iterator

import pytest

from agentevals_action.github.client.api import ApiError, GitHubApi, RunContext
from agentevals_action.github.client.replies import Comment
from tests.support.github_http import InjectedFailure
from tests.support.github_server import GitHubServer

PATH = "issues/7/comments"
POST = "POST .*/comments$"


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.add_pull(7, "a" * 40, "b" * 40)
        yield server


def api(server: GitHubServer, waits: list[float]) -> GitHubApi:
    context = RunContext("acme/agent", "a" * 40, server.token, server.url, server.graphql_url)
    return GitHubApi(context, waits.append)


def create(connection: GitHubApi) -> Comment:
    def find() -> Comment | None:
        return next(connection.pages(PATH, Comment), None)

    return connection.write("POST", PATH, {"body": "b"}, Comment, find)


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
    assert create(api(server, waits)).id == server.comments[0].id
    assert (len(server.comments), len(server.routes(POST))) == (1, requests)
    assert [round(wait) for wait in waits] == [1, 2][: max(times, 1)]


def test_creation__is_not_repeated_if_nobody_can_look(server: GitHubServer) -> None:
    server.break_route(InjectedFailure(POST, 502, times=10, after_write=True))
    server.break_route(InjectedFailure("GET .*/comments$", 500, times=1_000))
    with pytest.raises(ApiError, match="Server Error"):
        create(api(server, []))
    assert len(server.comments) == 1


def test_creation__that_is_rejected_is_not_repeated(server: GitHubServer) -> None:
    server.break_route(InjectedFailure(POST, 422, times=10, message="Validation Failed"))
    with pytest.raises(ApiError, match="Validation Failed"):
        create(api(server, []))
    assert len(server.routes(POST)) == 1


def test_update__is_repeated_directly(server: GitHubServer) -> None:
    connection = api(server, [])
    comment = create(connection)
    server.break_route(InjectedFailure("PATCH", 502, after_write=True))
    connection.write("PATCH", f"issues/comments/{comment.id}", {"body": "new"}, Comment)
    assert (server.comments[0].body, len(server.routes("PATCH"))) == ("new", 2)


def test_write__an_error_of_the_program_is_not_one_of_github(server: GitHubServer) -> None:
    connection = api(server, [])
    with pytest.raises(TypeError, match="not JSON serializable"):
        connection.write("POST", PATH, {"body": object()}, Comment)
    assert not connection.notices


def test_last__request_of_a_run_is_sent_once(server: GitHubServer) -> None:
    context = RunContext("acme/agent", "a" * 40, server.token, server.url, server.graphql_url)
    server.break_route(InjectedFailure(POST, 502, times=9))
    with pytest.raises(ApiError):
        create(GitHubApi(context, is_last=True))
    assert len(server.routes(POST)) == 1


def test_query__that_is_limited_is_sent_again_after_a_minute(server: GitHubServer) -> None:
    server.graphql_refuses = "RATE_LIMITED"
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        server.graphql_refuses = None

    context = RunContext("acme/agent", "a" * 40, server.token, server.url, server.graphql_url)
    found = GitHubApi(context, wait).graphql("query { viewer { login databaseId } }", {})
    assert (found["viewer"]["login"], waits) == ("github-actions[bot]", [60.0])
