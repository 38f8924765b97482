"""A stateful stand-in for GitHub's REST and GraphQL API on loopback, for as much of it as a gate
uses."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.github_history import History, StoredArtifact
from tests.support.github_world import (
    NOT_PERMITTED,
    Account,
    CheckRun,
    Comment,
    Pull,
    Refused,
    World,
)
from tests.support.stand_in import Received, Sent, StandIn

_LEVELS = ("none", "read", "write")


class Request(Received):
    """A request with its query."""

    @property
    def query(self) -> Mapping[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}


class GitHubServer(StandIn[Request, Sent]):
    """Use as a context manager. `url` is the API's address.

    `permissions` are those of the token, named as in a workflow; `page_limit` is the longest page,
    whatever is asked for. Everything may be changed while it runs."""

    request_type = Request

    def __init__(
        self, owner: str = "acme", repo: str = "agent", token: str = "ghs_stand_in"
    ) -> None:
        self.world = World(f"{owner}/{repo}")
        self.history = History(self.world)
        self.token = token
        self.permissions = {
            "contents": "read",
            "pull-requests": "write",
            "issues": "write",
            "checks": "write",
            "actions": "read",
        }
        self.refusal = (403, NOT_PERMITTED)
        self.page_limit = 30
        self.graphql_refuses: str | None = None
        super().__init__()

    @property
    def comments(self) -> Sequence[Comment]:
        return tuple(self.world.comments)

    @property
    def check_runs(self) -> Sequence[CheckRun]:
        return tuple(self.world.check_runs)

    def add_pull(self, number: int, head_sha: str, base_sha: str) -> Pull:
        self.world.pulls[number] = pull = Pull(number, head_sha, base_sha)
        return pull

    def add_comment(self, pull: int, author: Account, body: str) -> Comment:
        """A comment that somebody wrote before."""
        return self.world.add_comment(pull, author, body)

    def reply(self, request: Request) -> Sent:
        """The reply of the API."""
        try:
            if request.headers.get("authorization") not in (
                f"token {self.token}",
                f"Bearer {self.token}",
            ):
                raise Refused(401, "Bad credentials")
            return self._route(request)
        except Refused as refused:
            body = {"message": str(refused), "errors": list(refused.details)}
            return Sent(body, refused.status)

    def _route(self, request: Request) -> Sent:
        if request.route == "POST /graphql":
            return Sent(self._graphql(request.body["query"], request.body["variables"]))
        for route, permissions, handle in self._routes():
            method, path = route.split(" ")
            pattern = f"{method} /repos/{re.escape(self.world.full_name)}/{path}"
            if match := re.fullmatch(pattern, request.route):
                self._need("read" if method == "GET" else "write", *permissions.split())
                reply = handle(request, *match.groups())
                return reply if isinstance(reply, Sent) else Sent(reply)
        raise Refused(404, "Not Found")

    def _routes(self) -> Sequence[tuple[str, str, Callable[..., Any]]]:
        number, of_pull, world = r"(\d+)", "pull-requests issues", self.world
        comment, check = self._comment, self._check
        return (
            ("GET pulls", "pull-requests", self._pulls),
            (
                f"GET pulls/{number}",
                "pull-requests",
                lambda _, pull: self._pull(world.pull(int(pull))),
            ),
            (
                "GET collaborators/([^/]+)/permission",
                "",
                lambda _, login: {"permission": world.permissions.get(login, "read")},
            ),
            (
                f"GET issues/{number}/timeline",
                of_pull,
                lambda request, pull: self._page(request, world.pull(int(pull)).timeline),
            ),
            (f"GET issues/{number}/comments", of_pull, self._comments),
            (
                f"POST issues/{number}/comments",
                of_pull,
                lambda request, pull: comment(
                    world.add_comment(int(pull), world.viewer, request.body["body"])
                ),
            ),
            (
                f"PATCH issues/comments/{number}",
                of_pull,
                lambda request, id: comment(world.edit_comment(int(id), request.body["body"])),
            ),
            ("POST check-runs", "checks", lambda request: check(world.add_check_run(request.body))),
            (
                f"PATCH check-runs/{number}",
                "checks",
                lambda request, id: check(world.edit_check_run(int(id), request.body)),
            ),
            ("GET commits/([^/]+)/check-runs", "checks", self._checks),
            ("GET commits/([0-9a-f]{40})", "contents", self._merge_commit),
            ("GET branches/(.+)", "contents", self._branch),
            (r"GET compare/.+?\.\.\..+", "contents", self._compare),
            (f"GET actions/runs/{number}", "actions", self._workflow_run),
            (f"GET actions/runs/{number}/artifacts", "actions", self._artifacts),
            (f"GET actions/artifacts/{number}/zip", "actions", self._zip),
        )

    def _need(self, level: str, *names: str) -> None:
        if names and not any(
            _LEVELS.index(self.permissions.get(name, "none")) >= _LEVELS.index(level)
            for name in names
        ):
            raise Refused(*self.refusal)

    def _page(self, request: Request, items: Sequence[Any], key: str = "") -> Sent:
        size = min(int(request.query.get("per_page", "30")), self.page_limit)
        page = int(request.query.get("page", "1"))
        shown = items[(page - 1) * size : page * size]
        headers = {}
        if page * size < len(items):
            query = {**request.query, "page": str(page + 1)}
            following = "&".join(f"{name}={value}" for name, value in query.items())
            headers["Link"] = f'<{self._api(request)}?{following}>; rel="next"'
        return Sent({"total_count": len(items), key: shown} if key else shown, headers=headers)

    def _api(self, request: Request) -> str:
        return f"{self.url}{urlsplit(request.path).path}"

    def _pulls(self, request: Request) -> Sent:
        """The list; a `head` that is not `owner:branch` filters nothing, as on GitHub."""
        head, state = request.query.get("head", ""), request.query.get("state", "open")
        found = []
        for pull in self.world.pulls.values():
            owner = (pull.repository or self.world.full_name).partition("/")[0]
            is_of_head = ":" not in head or head == f"{owner}:{pull.branch}"
            if is_of_head and state in ("all", pull.state):
                found.append(self._pull(pull))
        return self._page(request, found)

    def _pull(self, pull: Pull) -> dict[str, Any]:
        repository = self.world.full_name if pull.repository == "" else pull.repository
        return {
            "url": self._url(f"pulls/{pull.number}"),
            "number": pull.number,
            "state": pull.state,
            "merged_at": pull.merged_at,
            "merge_commit_sha": pull.merge_sha,
            "mergeable": pull.mergeable,
            "labels": [{"id": 1, "name": name} for name in sorted(pull.labels)],
            "head": {
                "ref": pull.branch,
                "sha": pull.head_sha,
                "repo": {"full_name": repository} if repository else None,
            },
            "base": {
                "ref": pull.base_ref,
                "sha": pull.base_sha,
                "repo": {"full_name": self.world.full_name},
            },
        }

    def _merge_commit(self, request: Request, sha: str) -> dict[str, Any]:
        for pull in self.world.pulls.values():
            if pull.merge_sha == sha:
                return {"sha": sha, "parents": [{"sha": parent} for parent in pull.merge_parents]}
        raise Refused(404, "Not Found")

    def _branch(self, request: Request, name: str) -> dict[str, Any]:
        for pull in self.world.pulls.values():
            if pull.base_ref == name:
                return {"name": name, "commit": {"sha": pull.base_sha}}
        raise Refused(404, "Branch not found")

    def _comments(self, request: Request, number: str) -> Sent:
        found = [comment for comment in self.world.comments if comment.pull == int(number)]
        return self._page(request, [self._comment(comment) for comment in found])

    def _comment(self, comment: Comment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "node_id": comment.node_id,
            "url": self._url(f"issues/comments/{comment.id}"),
            "html_url": comment.url,
            "user": {"login": comment.author.login, "id": comment.author.id, "type": "User"},
            "body": comment.body,
            "updated_at": comment.updated_at,
        }

    def _checks(self, request: Request, sha: str) -> Sent:
        name = request.query.get("check_name")
        found = [
            self._check(check)
            for check in reversed(self.world.check_runs)
            if check.head_sha == sha and name in (None, check.name)
        ]
        return self._page(request, found, "check_runs")

    def _check(self, check: CheckRun) -> dict[str, Any]:
        return {
            "id": check.id,
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "url": self._url(f"check-runs/{check.id}"),
            "html_url": check.url,
            "status": check.status,
            "conclusion": check.conclusion,
        }

    def _compare(self, request: Request) -> dict[str, Any]:
        if self.world.merge_base is None:
            raise Refused(404, "Not Found")
        return {"merge_base_commit": {"sha": self.world.merge_base}}

    def _workflow_run(self, request: Request, number: str) -> dict[str, Any]:
        if int(number) not in self.world.workflow_runs:
            raise Refused(404, "Not Found")
        url = self._url(f"actions/runs/{number}")
        facts = self.world.workflow_runs[int(number)]
        return {"id": int(number), "url": url, "artifacts_url": f"{url}/artifacts", **facts}

    def _artifacts(self, request: Request, number: str) -> Sent:
        listed = [stored for stored in self.history.artifacts if stored.run == int(number)]
        found = [self._artifact(stored) for stored in listed]
        return self._page(request, found, "artifacts")

    def _artifact(self, stored: StoredArtifact) -> dict[str, Any]:
        url = self._url(f"actions/artifacts/{stored.id}")
        return {
            "id": stored.id,
            "name": stored.name,
            "size_in_bytes": len(stored.content) if stored.size is None else stored.size,
            "expired": stored.expired,
            "created_at": stored.created_at,
            "workflow_run": {"id": stored.of_run or stored.run},
            "url": url,
            "archive_download_url": f"{url}/zip",
        }

    def _zip(self, request: Request, number: str) -> Sent:
        assert self.history.blobs
        address = f"{self.history.blobs.url}/blob/{number}?sig=once"
        return Sent(status=302, headers={"Location": self.history.location or address})

    def _url(self, path: str) -> str:
        return f"{self.url}/repos/{self.world.full_name}/{path}"

    def _graphql(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        if self.graphql_refuses is not None:
            return _graphql_error(self.graphql_refuses)
        world = self.world
        if "viewer" in query:
            return {
                "data": {"viewer": {"login": world.viewer.login, "databaseId": world.viewer.id}}
            }
        by_node = {comment.node_id: comment for comment in world.comments}
        if "addReaction" in query:
            world.reactions.append((variables["id"], variables["content"]))
            return {"data": {"addReaction": {}}}
        if "nodes(" in query:
            found = [by_node[node] for node in variables["ids"]]
            nodes = [
                {"id": comment.node_id, "isMinimized": comment.minimised is not None}
                for comment in found
            ]
            return {"data": {"nodes": nodes}}
        assert "minimizeComment" in query, "the stand-in does not know this query"
        if "write" not in (self.permissions.get("issues"), self.permissions.get("pull-requests")):
            return _graphql_error("FORBIDDEN")
        by_node[variables["input"]["subjectId"]].minimised = variables["input"]["classifier"]
        return {"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}}


def _graphql_error(kind: str) -> dict[str, Any]:
    return {"data": None, "errors": [{"type": kind, "message": NOT_PERMITTED}]}
