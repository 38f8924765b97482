"""The stand-in refuses what GitHub refuses; otherwise tests against it would show nothing."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.github_http import InjectedFailure
from tests.support.github_server import GitHubServer

HEAD = "a" * 40
ROOT = "/repos/acme/agent"
ANNOTATION = {
    "path": "a",
    "start_line": 1,
    "end_line": 1,
    "annotation_level": "failure",
    "message": "m",
}


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.add_pull(7, HEAD, "b" * 40)
        yield server


@pytest.fixture
def api(server: GitHubServer) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}
    ) as client:
        yield client


def check(**changes: Any) -> dict[str, Any]:
    return {"name": "agentevals", "head_sha": HEAD, **changes}


def output(**changes: Any) -> dict[str, Any]:
    return check(output={"title": "t", "summary": "s", **changes})


@pytest.mark.parametrize(
    "body",
    [
        {"name": "agentevals"},
        {"head_sha": HEAD},
        check(head_sha="main"),
        check(status="done"),
        check(status="completed"),
        check(conclusion="passed"),
        check(output={"title": "t"}),
        output(summary="s" * 65_536),
        output(title="t" * 256),
        output(annotations=[ANNOTATION] * 51),
        *(
            output(annotations=[ANNOTATION | change])
            for change in (
                {"path": ""},
                {"path": None},
                {"start_line": 0},
                {"start_line": None},
                {"end_line": 0},
                {"annotation_level": "error"},
                {"message": ""},
                {"message": "m" * 65_537},
                {"title": "t" * 256},
            )
        ),
    ],
)
def test_check__that_github_refuses(
    server: GitHubServer, api: httpx.Client, body: dict[str, Any]
) -> None:
    assert api.post(f"{ROOT}/check-runs", json=body).status_code == 422
    assert server.check_runs == ()


@pytest.mark.parametrize(
    "body",
    [
        check(),
        check(conclusion="success"),
        output(annotations=[ANNOTATION] * 50, summary="s" * 65_535),
    ],
)
def test_check__that_github_takes(api: httpx.Client, body: dict[str, Any]) -> None:
    created = api.post(f"{ROOT}/check-runs", json=body)
    assert created.status_code == 201
    assert api.get(created.json()["url"]).json()["id"] == created.json()["id"]


def test_check__is_listed_as_latest_or_all(api: httpx.Client) -> None:
    ids = [
        api.post(f"{ROOT}/check-runs", json=check(external_id=str(number))).json()["id"]
        for number in range(3)
    ]
    path = f"{ROOT}/commits/{HEAD}/check-runs"
    assert [one["id"] for one in api.get(path).json()["check_runs"]] == [ids[2]]
    assert [
        one["id"] for one in api.get(path, params={"filter": "all"}).json()["check_runs"]
    ] == ids[::-1]
    assert api.get(path, params={"check_name": "other", "filter": "all"}).json()["total_count"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 422), (" ", 422), (None, 422), ("x" * 65_537, 422), ("x" * 65_536, 201)],
)
def test_comment__has_bounds(api: httpx.Client, body: str | None, status: int) -> None:
    assert api.post(f"{ROOT}/issues/7/comments", json={"body": body}).status_code == status


def test_comments__come_in_pages_of_thirty(server: GitHubServer, api: httpx.Client) -> None:
    for number in range(65):
        server.add_comment(7, server.world.viewer, str(number))
    url, seen = f"{ROOT}/issues/7/comments?per_page=100", list[list[str]]()
    while url:
        page = api.get(url)
        seen.append([comment["body"] for comment in page.json()])
        url = page.links.get("next", {}).get("url", "")
    assert [len(page) for page in seen] == [30, 30, 5]
    assert [body for page in seen for body in page] == [str(number) for number in range(65)]


def test_permissions__decide(server: GitHubServer, api: httpx.Client) -> None:
    server.permissions = {"checks": "read"}
    assert api.get(f"{ROOT}/commits/{HEAD}/check-runs").status_code == 200
    refused = api.post(f"{ROOT}/check-runs", json=check())
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        "Resource not accessible by integration",
    )
    assert api.get(f"{ROOT}/issues/7/comments").status_code == 403


def test_token__is_asked_for(server: GitHubServer) -> None:
    assert httpx.get(f"{server.url}{ROOT}").status_code == 401
    assert (
        httpx.get(f"{server.url}{ROOT}", headers={"Authorization": "Bearer other"}).status_code
        == 401
    )


@pytest.mark.parametrize(("after_write", "left"), [(True, 1), (False, 0)])
def test_fault__comes_before_or_after_the_write(
    server: GitHubServer, api: httpx.Client, after_write: bool, left: int
) -> None:
    server.break_route(InjectedFailure("POST .*/comments", 502, after_write=after_write))
    assert api.post(f"{ROOT}/issues/7/comments", json={"body": "b"}).status_code == 502
    assert len(server.comments) == left
    assert api.post(f"{ROOT}/issues/7/comments", json={"body": "b"}).status_code == 201


def test_graphql__knows_the_viewer_and_hides(server: GitHubServer, api: httpx.Client) -> None:
    comment = server.add_comment(7, server.world.viewer, "b")
    viewer = api.post("/graphql", json={"query": "query { viewer { login databaseId } }"}).json()[
        "data"
    ]["viewer"]
    assert viewer == {"login": "github-actions[bot]", "databaseId": 41_898_282}
    query = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } } }"
    api.post("/api/graphql", json={"query": query, "variables": {"id": comment.node_id}})
    assert comment.minimised == "OUTDATED"
