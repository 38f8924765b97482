"""The stand-in's memory of a pull request's course: pushes, labels, and the check suites that
GitHub begins for each head."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.github_http import Answer, Request
from tests.support.github_world import World

Need = Callable[..., None]
Page = Callable[[Request, Sequence[Any]], tuple[list[Any], dict[str, str]]]

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def moment(minute: float) -> str:
    """An instant on the wire, so many minutes after the pull request was opened."""
    return (START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def user(login: str) -> dict[str, Any]:
    return {
        "login": login,
        "id": len(login),
        "node_id": f"U_{login}",
        "type": "User",
        "site_admin": False,
    }


@dataclass
class Timeline:
    """What happened to pull requests, minute by minute. Commits stand in the timeline where their
    own dates are, as on GitHub."""

    world: World
    need: Need
    page: Page
    events: dict[int, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    on: dict[int, set[str]] = field(default_factory=dict)
    suites: list[dict[str, Any]] = field(default_factory=list)

    def add(self, pull: int, minute: float, event: str, **more: Any) -> None:
        """Any event of the timeline."""
        made = {
            "id": self.world.new_id(),
            "node_id": "E",
            "url": "",
            "event": event,
            "created_at": moment(minute),
            "commit_id": None,
        }
        self.events.setdefault(pull, []).append((moment(minute), made | more))

    def push(
        self,
        pull: int,
        sha: str,
        minute: float,
        *,
        forced: bool = False,
        dated: float | None = None,
    ) -> None:
        """Makes `sha` the head; `dated` is the commit's own date."""
        self.world.pull(pull).head_sha = sha
        person = {
            "name": "A",
            "email": "a@example.com",
            "date": moment(minute if dated is None else dated),
        }
        commit = {
            "sha": sha,
            "node_id": "C",
            "url": "",
            "event": "committed",
            "author": person,
            "committer": person,
            "message": "m",
        }
        self.events.setdefault(pull, []).append(
            (person["date"], {**commit, "tree": {"sha": sha, "url": ""}, "parents": []})
        )
        if forced:
            self.add(pull, minute, "head_ref_force_pushed", actor=user("author"), commit_id=sha)

    def check(self, sha: str, minute: float, branch: str | None = "feature") -> None:
        """A check suite begins on a commit."""
        number = self.world.new_id()
        self.suites.append(
            {
                "id": number,
                "node_id": f"CS_{number}",
                "head_branch": branch,
                "head_sha": sha,
                "status": "completed",
                "conclusion": "failure",
                "created_at": moment(minute),
                "updated_at": moment(minute),
                "url": "",
                "app": {"id": 15_368, "slug": "github-actions"},
            }
        )

    def label(self, pull: int, name: str, by: str | None, minute: float) -> None:
        """Somebody puts a label on; None is somebody who has left GitHub since."""
        self.on.setdefault(pull, set()).add(name)
        self.add(
            pull,
            minute,
            "labeled",
            actor=user(by) if by else None,
            label={"name": name, "color": "ededed"},
        )

    def unlabel(self, pull: int, name: str, by: str, minute: float) -> None:
        """Somebody takes it off."""
        self.on.setdefault(pull, set()).discard(name)
        self.add(pull, minute, "unlabeled", actor=user(by), label={"name": name, "color": "ededed"})

    def labels(self, pull: int) -> list[Mapping[str, Any]]:
        """The labels that are on, in wire form."""
        return [
            {"id": 1, "name": name, "color": "ededed", "url": "", "default": False}
            for name in sorted(self.on.get(pull, ()))
        ]

    def routes(self, root: str) -> Sequence[tuple[str, str, Callable[..., Answer]]]:
        """What it answers."""
        return (
            ("GET", rf"{root}/issues/(\d+)/timeline", self._timeline),
            ("GET", rf"{root}/commits/([^/]+)/check-suites", self._suites),
        )

    def _timeline(self, request: Request, number: str) -> Answer:
        self.need("read", "pull-requests", "issues")
        ordered = sorted(
            self.events.get(self.world.pull(int(number)).number, ()), key=lambda pair: pair[0]
        )
        found, headers = self.page(request, [event for _, event in ordered])
        return 200, found, headers

    def _suites(self, request: Request, sha: str) -> Answer:
        self.need("read", "checks")
        found = [suite for suite in self.suites if suite["head_sha"] == sha]
        suites, headers = self.page(request, found)
        return 200, {"total_count": len(found), "check_suites": suites}, headers
