"""A stateful stand-in for GitHub's REST and GraphQL API on loopback, for as much of it as a gate
uses."""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.github_history import History
from tests.support.github_http import Answer, InjectedFailure, Request, handler
from tests.support.github_world import (
    NOT_PERMITTED,
    Account,
    CheckRun,
    Comment,
    Pull,
    Refused,
    World,
)
from tests.support.loopback import LoopbackServer

_LEVELS = ("none", "read", "write")
SECONDARY_LIMIT = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)


class GitHubServer(LoopbackServer):
    """Use as a context manager. `url` is the API's address, `enterprise_url` the same as an
    Enterprise Server has it.

    `permissions` are those of the token, named as in a workflow; `page_limit` is the longest page
    that it gives, whatever is asked for. `latency` is in seconds. Everything may be changed while
    it runs."""

    def __init__(
        self, owner: str = "acme", repo: str = "agent", token: str = "ghs_stand_in"
    ) -> None:
        self.world = World(f"{owner}/{repo}")
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
        self.latency = 0.0
        self.graphql_refuses: str | None = None
        self.requests: list[Request] = []
        self._injected: list[InjectedFailure] = []
        self._lock = threading.RLock()
        super().__init__(handler(self.answer))
        self.graphql_url = f"{self.url}/graphql"
        self.history = History(self.world, self.url, self._need, self._page)
        self.enterprise_url = f"{self.url}/api/v3"
        self.enterprise_graphql_url = f"{self.url}/api/graphql"

    @property
    def comments(self) -> Sequence[Comment]:
        with self._lock:
            return tuple(self.world.comments)

    @property
    def check_runs(self) -> Sequence[CheckRun]:
        with self._lock:
            return tuple(self.world.check_runs)

    def add_pull(
        self,
        number: int,
        head_sha: str,
        base_sha: str,
    ) -> Pull:
        with self._lock:
            self.world.pulls[number] = pull = Pull(number, head_sha, base_sha)
            return pull

    def add_comment(self, pull: int, author: Account, body: str) -> Comment:
        """A comment that somebody wrote before."""
        with self._lock:
            return self.world.add_comment(pull, author, body, self.url)

    def break_route(self, injected: InjectedFailure) -> None:
        """Failures of a route come in the order they were given."""
        with self._lock:
            self._injected.append(injected)

    def limit_route(
        self, route: str, seconds: int, times: int = 1, secondary: bool = False
    ) -> None:
        """429, or the 403 of a secondary limit, with `Retry-After`."""
        status, message = (403, SECONDARY_LIMIT) if secondary else (429, "Too many requests")
        self.break_route(
            InjectedFailure(route, status, times, message, {"Retry-After": str(seconds)})
        )

    def routes(self, pattern: str = "") -> list[str]:
        """The requests that came, as `METHOD /path`, those in which a regular expression is
        found."""
        with self._lock:
            return [request.route for request in self.requests if re.search(pattern, request.route)]

    def answer(self, request: Request) -> Answer | InjectedFailure:
        """What a request gets; a failure that the handler carries out."""
        time.sleep(self.latency)
        with self._lock:
            self.requests.append(request)
            injected = next(
                (
                    one
                    for one in self._injected
                    if one.times > 0 and re.search(one.route, request.route)
                ),
                None,
            )
            if injected is not None:
                injected.times -= 1
            if injected is None or injected.after_write:
                answer = self._answer(request)
            return injected or answer

    def _answer(self, request: Request) -> Answer:
        try:
            if request.headers.get("authorization") not in (
                f"token {self.token}",
                f"Bearer {self.token}",
            ):
                raise Refused(401, "Bad credentials")
            return self._route(request)
        except Refused as refused:
            body = {
                "message": str(refused),
                "documentation_url": "https://docs.github.com/rest",
                "status": str(refused.status),
            }
            if refused.details:
                body["errors"] = list(refused.details)  # type: ignore[assignment]  # a list among texts, as on the wire
            return refused.status, body, refused.headers

    def _route(self, request: Request) -> Answer:
        if request.route == "POST /graphql":
            return 200, self._graphql(request.body), {}
        for method, pattern, handle in self._routes():
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                return handle(request, *match.groups())
        raise Refused(404, "Not Found")

    def _routes(self) -> Sequence[tuple[str, str, Callable[..., Answer]]]:
        root = re.escape(f"/repos/{self.world.full_name}")
        return (
            ("GET", root, self._repository),
            ("GET", rf"{root}/pulls", self._pulls),
            ("GET", rf"{root}/pulls/(\d+)", self._pull),
            ("GET", rf"{root}/collaborators/([^/]+)/permission", self._permission),
            ("GET", rf"{root}/issues/(\d+)/timeline", self._timeline),
            ("GET", rf"{root}/issues/(\d+)/comments", self._list_comments),
            ("POST", rf"{root}/issues/(\d+)/comments", self._create_comment),
            ("PATCH", rf"{root}/issues/comments/(\d+)", self._edit_comment),
            ("POST", rf"{root}/check-runs", self._create_check),
            ("GET", rf"{root}/check-runs/(\d+)", self._get_check),
            ("PATCH", rf"{root}/check-runs/(\d+)", self._edit_check),
            ("GET", rf"{root}/commits/([^/]+)/check-runs", self._list_checks),
            ("GET", rf"{root}/commits/([0-9a-f]{{40}})", self._merge_commit),
            ("GET", rf"{root}/branches/(.+)", self._branch),
            ("GET", rf"{root}/compare/(.+?)\.\.\.(.+)", self._compare),
            ("GET", rf"{root}/actions/runs/(\d+)", self._workflow_run),
            *self.history.routes(root),
        )

    def _need(self, level: str, *names: str) -> None:
        if not any(
            _LEVELS.index(self.permissions.get(name, "none")) >= _LEVELS.index(level)
            for name in names
        ):
            raise Refused(*self.refusal)

    def _page(self, request: Request, items: Sequence[Any]) -> tuple[list[Any], dict[str, str]]:
        size = min(int(request.query.get("per_page", "30")), self.page_limit)
        page = int(request.query.get("page", "1"))
        last = max(1, -(-len(items) // size))
        given = "&".join(
            f"{name}={value}" for name, value in request.query.items() if name != "page"
        )

        def link(number: int, rel: str) -> str:
            return f'<{self.url}{request.prefix}{request.path}?{given}&page={number}>; rel="{rel}"'

        links = [link(page + 1, "next"), link(last, "last")] if page < last else []
        return list(items[(page - 1) * size : page * size]), {
            "Link": ", ".join(links)
        } if links else {}

    def _repository(self, request: Request) -> Answer:
        self._need("read", "contents")
        owner, _, name = self.world.full_name.partition("/")
        return (
            200,
            {
                "id": 1,
                "name": name,
                "full_name": self.world.full_name,
                "owner": {"login": owner},
                "default_branch": "main",
            },
            {},
        )

    def _pull(self, request: Request, number: str) -> Answer:
        self._need("read", "pull-requests")
        pull = self.world.pull(int(number))
        return 200, self._pull_wire(pull), {}

    def _pulls(self, request: Request) -> Answer:
        """The list; a `head` that is not `owner:branch` filters nothing, as on GitHub."""
        self._need("read", "pull-requests")
        head, state = request.query.get("head", ""), request.query.get("state", "open")
        found = [
            self._pull_wire(pull)
            for pull in self.world.pulls.values()
            if state in ("all", pull.state)
            and (":" not in head or head == f"{self._head_owner(pull)}:{pull.branch}")
        ]
        pulls, headers = self._page(request, found)
        return 200, pulls, headers

    def _head_owner(self, pull: Pull) -> str:
        return (pull.repository or self.world.full_name).partition("/")[0]

    def _pull_wire(self, pull: Pull) -> dict[str, Any]:
        repository = self.world.full_name if pull.repository == "" else pull.repository
        base = {"full_name": self.world.full_name}
        return {
            "number": pull.number,
            "state": pull.state,
            "created_at": pull.created_at,
            "merged_at": pull.merged_at,
            "merge_commit_sha": pull.merge_sha,
            "mergeable": pull.mergeable,
            "labels": [{"id": 1, "name": name} for name in sorted(pull.labels)],
            "head": {
                "ref": pull.branch,
                "sha": pull.head_sha,
                "repo": {"full_name": repository} if repository else None,
            },
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": base},
        }

    def _permission(self, request: Request, login: str) -> Answer:
        permission = self.world.permissions.get(login, "read")
        return 200, {"permission": permission, "role_name": permission, "user": {}}, {}

    def _timeline(self, request: Request, number: str) -> Answer:
        self._need("read", "pull-requests", "issues")
        events, headers = self._page(request, self.world.pull(int(number)).timeline)
        return 200, events, headers

    def _merge_commit(self, request: Request, sha: str) -> Answer:
        self._need("read", "contents")
        for pull in self.world.pulls.values():
            if pull.merge_sha == sha:
                parents = [{"sha": parent} for parent in pull.merge_parents]
                return 200, {"sha": sha, "parents": parents}, {}
        raise Refused(404, "Not Found")

    def _branch(self, request: Request, name: str) -> Answer:
        self._need("read", "contents")
        for pull in self.world.pulls.values():
            if pull.base_ref == name:
                return 200, {"name": name, "commit": {"sha": pull.base_sha}}, {}
        raise Refused(404, "Branch not found")

    def _list_comments(self, request: Request, number: str) -> Answer:
        self._need("read", "pull-requests", "issues")
        found = [
            comment
            for comment in self.world.comments
            if comment.pull == self.world.pull(int(number)).number
        ]
        comments, headers = self._page(request, found)
        return 200, [self._comment(request, comment) for comment in comments], headers

    def _create_comment(self, request: Request, number: str) -> Answer:
        self._need("write", "pull-requests", "issues")
        return (
            201,
            self._comment(
                request,
                self.world.add_comment(
                    int(number), self.world.viewer, request.body.get("body"), self.url
                ),
            ),
            {},
        )

    def _edit_comment(self, request: Request, number: str) -> Answer:
        self._need("write", "pull-requests", "issues")
        return (
            200,
            self._comment(request, self.world.edit_comment(int(number), request.body.get("body"))),
            {},
        )

    def _comment(self, request: Request, comment: Comment) -> dict[str, Any]:
        api = f"{self.url}{request.prefix}/repos/{self.world.full_name}/issues"
        return {
            "id": comment.id,
            "node_id": comment.node_id,
            "url": f"{api}/comments/{comment.id}",
            "html_url": comment.url,
            "issue_url": f"{api}/{comment.pull}",
            "user": comment.author.wire(),
            "body": comment.body,
            "created_at": comment.updated_at,
            "updated_at": comment.updated_at,
            "author_association": "CONTRIBUTOR",
        }

    def _create_check(self, request: Request) -> Answer:
        self._need("write", "checks")
        return 201, self._check(request, self.world.add_check_run(request.body, self.url)), {}

    def _get_check(self, request: Request, number: str) -> Answer:
        self._need("read", "checks")
        return 200, self._check(request, self.world.check_run(int(number))), {}

    def _edit_check(self, request: Request, number: str) -> Answer:
        self._need("write", "checks")
        return 200, self._check(request, self.world.edit_check_run(int(number), request.body)), {}

    def _list_checks(self, request: Request, sha: str) -> Answer:
        self._need("read", "checks")
        query = request.query
        found = self.world.checks_of(
            sha, query.get("check_name"), query.get("status"), query.get("filter") == "all"
        )
        checks, headers = self._page(request, found)
        return (
            200,
            {
                "total_count": len(found),
                "check_runs": [self._check(request, check) for check in checks],
            },
            headers,
        )

    def _check(self, request: Request, check: CheckRun) -> dict[str, Any]:
        url = f"{self.url}{request.prefix}/repos/{self.world.full_name}/check-runs/{check.id}"
        output = {
            "title": check.title,
            "summary": check.summary,
            "text": None,
            "annotations_count": len(check.annotations),
        }
        return {
            "id": check.id,
            "node_id": f"CR_{check.id}",
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "started_at": check.started_at,
            "details_url": check.details_url,
            "url": url,
            "html_url": check.url,
            "status": check.status,
            "conclusion": check.conclusion,
            "output": {**output, "annotations_url": f"{url}/annotations"},
            "app": {"id": check.app_id, "slug": "github-actions"} if check.app_id else None,
        }

    def _compare(self, request: Request, base: str, head: str) -> Answer:
        self._need("read", "contents")
        if self.history.origin is not None:
            return 200, self.history.compare(base, head), {}
        if self.world.merge_base is None:
            raise Refused(404, "Not Found")
        commit = {"sha": self.world.merge_base}
        return (
            200,
            {
                "status": "diverged",
                "merge_base_commit": commit,
                "base_commit": {"sha": base},
                "commits": [],
                "files": [],
            },
            {},
        )

    def _workflow_run(self, request: Request, number: str) -> Answer:
        self._need("read", "actions")
        if int(number) not in self.world.workflow_runs:
            raise Refused(404, "Not Found")
        return 200, {"id": int(number), **self.world.workflow_runs[int(number)]}, {}

    def _graphql(self, body: Mapping[str, Any]) -> dict[str, Any]:
        query, variables = body["query"], body.get("variables", {})
        if self.graphql_refuses is not None:
            return {
                "data": None,
                "errors": [{"type": self.graphql_refuses, "message": NOT_PERMITTED}],
            }
        if "viewer" in query:
            return {
                "data": {
                    "viewer": {"login": self.world.viewer.login, "databaseId": self.world.viewer.id}
                }
            }
        by_node = {comment.node_id: comment for comment in self.world.comments}
        if "addReaction" in query:
            content = variables["content"]
            self.world.reactions.append((variables["id"], content))
            return {"data": {"addReaction": {"reaction": {"content": content}}}}
        if "minimizeComment" in query:
            return self._minimise(query, by_node.get(variables["id"]))
        if "nodes(" in query:
            found = [by_node.get(node) for node in variables["ids"]]
            return {
                "data": {
                    "nodes": [
                        comment
                        and {"id": comment.node_id, "isMinimized": comment.minimised is not None}
                        for comment in found
                    ]
                }
            }
        return {
            "errors": [
                {"type": "undefinedField", "message": "The stand-in does not know this query."}
            ]
        }

    def _minimise(self, query: str, comment: Comment | None) -> dict[str, Any]:
        reason = re.search(
            r"classifier:\s*(ABUSE|OFF_TOPIC|OUTDATED|DUPLICATE|RESOLVED|SPAM)\b", query
        )
        if comment is None or reason is None:
            return {
                "data": None,
                "errors": [{"type": "NOT_FOUND", "message": "Could not resolve to a node."}],
            }
        if "write" not in (self.permissions.get("issues"), self.permissions.get("pull-requests")):
            return {"data": None, "errors": [{"type": "FORBIDDEN", "message": NOT_PERMITTED}]}
        comment.minimised = reason[1]
        return {"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}}
