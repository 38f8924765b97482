"""The stand-in's memory of a pull request's course: pushes, labels, and the checks of its
heads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.github_http import Answer, Request
from tests.support.github_world import CheckRun, World

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

    def check(self, sha: str, minute: float, pull: int = 7) -> None:
        """The action starts a check of a commit for a pull request, and completes it."""
        number = self.world.new_id()
        self.world.check_runs.append(
            CheckRun(
                number,
                "agentevals",
                sha,
                f"https://github.com/{self.world.full_name}/runs/{number}",
                self.world.viewer.app_id,
                external_id=f"agentevals/agentevals/{number}/1/{pull}-0a1b2c3d",
                started_at=moment(minute),
                status="completed",
                conclusion="failure",
            )
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
        return (("GET", rf"{root}/issues/(\d+)/timeline", self._timeline),)

    def _timeline(self, request: Request, number: str) -> Answer:
        self.need("read", "pull-requests", "issues")
        ordered = sorted(
            self.events.get(self.world.pull(int(number)).number, ()), key=lambda pair: pair[0]
        )
        found, headers = self.page(request, [event for _, event in ordered])
        return 200, found, headers
