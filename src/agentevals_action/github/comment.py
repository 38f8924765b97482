"""The comment on the pull request: one per gate, found by its marker and author, updated in place.

The marker is a hidden first line with the gate, the run and the commit of the comment."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import Comment, PullReply
from agentevals_action.model import github_limits as limits
from agentevals_action.model.report import CommentReport
from agentevals_action.model.review import Outcome

#: Author of what GITHUB_TOKEN writes, for a token that GraphQL names no account of.
_ACTIONS_BOT = "github-actions[bot]"
_PERMISSION = "pull-requests: write"
_VIEWER = "query { viewer { login databaseId } }"
_MINIMIZED = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized } } }"
_MINIMIZE = """mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {
    minimizedComment { isMinimized }
  }
}"""
#: From the best to the worst.
_ORDER = (Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.FAILED, Outcome.INVALID)
_MARKER = re.compile(r"<!-- agentevals:v1 (\{[^\n<>]*\}) -->")
#: Characters that could end the HTML comment, as JSON escapes.
_ESCAPES = (("<", r"\u003c"), (">", r"\u003e"), ("--", r"-\u002d"))


class AcceptedCommit(BaseModel):
    """The commit whose regressions the label accepts, by a login."""

    model_config = ConfigDict(frozen=True, strict=True)

    commit: str
    by: str


class Marker(BaseModel):
    """Identifies a comment: `id` is the gate, `run` and `attempt` order the runs, `head` is
    the commit and `outcome` its result. `accepted` outlives the run that stored it."""

    model_config = ConfigDict(frozen=True, strict=True)

    id: str
    run: int
    attempt: int
    head: str
    outcome: Outcome = Field(strict=False)
    accepted: AcceptedCommit | None = None

    def line(self) -> str:
        """The marker as an HTML comment on one line."""
        text = json.dumps(self.model_dump(mode="json", exclude_none=True), separators=(",", ":"))
        for characters, escape in _ESCAPES:
            text = text.replace(characters, escape)
        return f"<!-- agentevals:v1 {text} -->"

    def yields_to(self, other: "Marker") -> bool:
        """Whether `other`, on the same head, is from a newer run.

        Somebody starts a second attempt after the first attempts: it is newer than the first
        attempt of any run."""
        if other.run == self.run:
            return other.attempt > self.attempt
        return other.run > self.run and other.attempt >= self.attempt


def read_marker(body: str) -> Marker | None:
    """The marker at the beginning of a comment; further down it is somebody's quotation."""
    match = _MARKER.match(body.lstrip("\ufeff \t\r\n"))
    try:
        return Marker.model_validate(json.loads(match[1])) if match else None
    except (ValueError, ValidationError):
        return None


@dataclass(frozen=True)
class _OwnComment:
    """A comment of this gate by the action's account."""

    comment: Comment
    marker: Marker


class CommentWriter:
    """The comment of one gate on one pull request. What fails becomes a notice."""

    def __init__(self, api: GitHubApi, pull: int) -> None:
        self._api = api
        self._pull = pull
        self._accepted: AcceptedCommit | None = None
        self._keeps_accepted = True

    def read_latest(self) -> tuple[Marker, datetime] | None:
        """The marker of the latest comment and the time of its last change. ApiError."""
        own = self._list_own()
        return (own[-1].marker, own[-1].comment.updated_at) if own else None

    def store_accepted(self, accepted: AcceptedCommit | None) -> None:
        """Sets what the next comment stores, in place of what the latest one does."""
        self._accepted, self._keeps_accepted = accepted, False

    def publish(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; returns its URL, None if it is not as
        reported."""
        try:
            return self._publish(report)
        except ApiError as error:
            self._api.report("The comment could not be written", error, _PERMISSION)
            return None

    def _publish(self, report: CommentReport) -> str | None:
        context = self._api.context
        marker = Marker(
            id=context.comment_id,
            run=context.run_id,
            attempt=context.run_attempt,
            head=context.head_sha,
            outcome=report.outcome,
        )
        own = self._list_own()
        if (not own and not report.wanted) or self._is_outdated(marker, own):
            return None
        accepted = self._accepted
        if self._keeps_accepted and own:
            accepted = own[-1].marker.accepted
        line = f"{marker.model_copy(update={'accepted': accepted}).line()}\n"
        body = line + limits.cut_markdown(report.body, limits.COMMENT, reserved=len(line))
        if not own:
            return self._create(body, own).html_url
        latest = own[-1]
        self._minimize(own[:-1])
        is_worse = _ORDER.index(report.outcome) > _ORDER.index(latest.marker.outcome)
        if report.wanted and is_worse:
            created = self._create(body, own)  # an edit would notify nobody
            self._minimize([latest])
            return created.html_url
        # A green comment next to a red check would be false, and a red one next to a green check:
        # both are updated, wanted or not.
        if report.wanted or {report.outcome, latest.marker.outcome} != {Outcome.PASSED}:
            self._update(latest.comment, body)
        return latest.comment.html_url

    def _list_own(self) -> Sequence[_OwnComment]:
        """The action's comments of this gate, oldest first."""
        found = []
        for comment in self._api.pages(f"issues/{self._pull}/comments", Comment):
            marker = read_marker(comment.body or "")
            if marker is not None and marker.id == self._api.context.comment_id:
                found.append(_OwnComment(comment, marker))
        if not found:
            return ()
        login, number = self._viewer()
        own = [
            one
            for one in found
            if (user := one.comment.user) and (user.id == number or user.login == login)
        ]
        return sorted(own, key=lambda one: one.comment.id)

    def _viewer(self) -> tuple[str, int | None]:
        """Login and id of the token's account; REST does not give them to the token of an app."""
        try:
            viewer = self._api.graphql(_VIEWER, {}).get("viewer")
        except ApiError as error:
            if error.kind == "unavailable":
                raise
            viewer = None
        if not isinstance(viewer, dict):
            return _ACTIONS_BOT, None
        return str(viewer.get("login")), viewer.get("databaseId")

    def _is_outdated(self, marker: Marker, own: Sequence[_OwnComment]) -> bool:
        """Whether the pull request has a newer commit, or a newer run has written for this one."""
        if self._head() not in (marker.head, None):
            self._api.notice(
                "The comment was not changed: the pull request has a newer commit than the "
                "reviewed one."
            )
            return True
        if any(marker.yields_to(one.marker) for one in own if one.marker.head == marker.head):
            self._api.notice(
                "The comment was not changed: a newer run for the same commit has written it."
            )
            return True
        return False

    def _head(self) -> str | None:
        try:
            return self._api.get(f"pulls/{self._pull}", PullReply).head_sha
        except ApiError:  # if the comment cannot be written either, that is reported
            return None

    def _create(self, body: str, own: Sequence[_OwnComment]) -> Comment:
        known = {one.comment.id for one in own}
        line = body.partition("\n")[0]

        def find() -> Comment | None:
            new = (one.comment for one in self._list_own() if one.comment.id not in known)
            return next((one for one in new if (one.body or "").startswith(line)), None)

        path = f"issues/{self._pull}/comments"
        return self._api.write("POST", path, {"body": body}, Comment, find)

    def _update(self, comment: Comment, body: str) -> None:
        if (comment.body or "").replace("\r\n", "\n") != body:
            self._api.write("PATCH", f"issues/comments/{comment.id}", {"body": body}, Comment)

    def _minimize(self, outdated: Sequence[_OwnComment]) -> None:
        """Folds outdated comments away; a failure is only a notice."""
        if not outdated:
            return
        ids = [own.comment.node_id for own in outdated][-limits.PAGE :]
        try:
            nodes = self._api.graphql(_MINIMIZED, {"ids": ids}).get("nodes") or ()
            for node in nodes:
                if isinstance(node, dict) and not node.get("isMinimized"):
                    self._api.graphql(_MINIMIZE, {"id": node.get("id")})
        except ApiError as error:
            self._api.report("An outdated comment could not be hidden", error, _PERMISSION)
