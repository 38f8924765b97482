"""The comment on the pull request: one per gate, found by its marker and author, updated in place.

The marker is a hidden first line with the gate, the run and the commit of the comment."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from github.IssueComment import IssueComment
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.github.api import ApiError, GitHubApi, api_errors
from agentevals_action.model.comparison import Outcome
from agentevals_action.reports.markdown import github_limits as limits
from agentevals_action.reports.publication import CommentReport

#: Author of what GITHUB_TOKEN writes, for a token that GraphQL names no account of.
_ACTIONS_BOT = "github-actions[bot]"
_PERMISSION = "pull-requests: write"
_VIEWER = "query { viewer { login databaseId } }"
_MINIMIZED = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized } } }"
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

    comment: IssueComment
    marker: Marker


class CommentWriter:
    """The comment of one gate on one pull request. `marker` is that of this run. What fails becomes
    a notice."""

    def __init__(self, api: GitHubApi, number: int, marker: Marker) -> None:
        self._api = api
        self.number = number
        self._issue = api.repository.get_issue(number)
        self._marker = marker
        self._keeps_accepted = True

    def read_latest(self) -> tuple[Marker, datetime] | None:
        """The marker of the latest comment and the time of its last change. ApiError."""
        comments = self._list_own()
        return (comments[-1].marker, comments[-1].comment.updated_at) if comments else None

    def store_accepted(self, accepted: AcceptedCommit | None) -> None:
        """Sets the accepted commit of the next comment, in place of that of the latest one."""
        self._marker = self._marker.model_copy(update={"accepted": accepted})
        self._keeps_accepted = False

    def publish(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; returns its URL, None if it is not as
        reported."""
        try:
            with api_errors():
                return self._publish(report)
        except ApiError as error:
            self._api.report("The comment could not be written", error, _PERMISSION)
            return None

    def _publish(self, report: CommentReport) -> str | None:
        comments = self._list_own()
        if (not comments and not report.wanted) or self._is_outdated(comments):
            return None
        changes: dict[str, object] = {"outcome": report.outcome}
        if self._keeps_accepted and comments:
            changes["accepted"] = comments[-1].marker.accepted
        line = f"{self._marker.model_copy(update=changes).line()}\n"
        body = line + limits.cut_markdown(report.body, limits.COMMENT, reserved=len(line))
        if not comments:
            return self._create(body, comments).html_url
        latest = comments[-1]
        self._minimize(comments[:-1])
        is_worse = _ORDER.index(report.outcome) > _ORDER.index(latest.marker.outcome)
        if report.wanted and is_worse:
            created = self._create(body, comments)  # an edit would notify nobody
            self._minimize([latest])
            return created.html_url
        # A green comment next to a red check would be false, and a red one next to a green check:
        # both are updated, wanted or not.
        is_needed = report.wanted or {report.outcome, latest.marker.outcome} != {Outcome.PASSED}
        if is_needed and (latest.comment.body or "").replace("\r\n", "\n") != body:
            latest.comment.edit(body)
        return latest.comment.html_url

    def _list_own(self) -> Sequence[_OwnComment]:
        """The action's comments of this gate, oldest first. ApiError."""
        with api_errors():
            marked = [
                _OwnComment(comment, marker)
                for comment in self._issue.get_comments()
                if (marker := read_marker(comment.body or "")) and marker.id == self._marker.id
            ]
            if not marked:
                return ()
            login, number = self._viewer()
            ours = [
                comment
                for comment in marked
                if (user := comment.comment.user) and (user.id == number or user.login == login)
            ]
            return sorted(ours, key=lambda comment: comment.comment.id)

    def _viewer(self) -> tuple[str, int | None]:
        """Login and id of the token's account; REST does not give them to the token of an app."""
        try:
            viewer = self._api.graphql(_VIEWER)["viewer"]
            return viewer["login"], viewer["databaseId"]
        except ApiError as error:
            if error.kind in ("unavailable", "limited"):
                raise
            return _ACTIONS_BOT, None

    def _is_outdated(self, comments: Sequence[_OwnComment]) -> bool:
        """Whether the pull request has a newer commit, or a newer run has written for this one."""
        head = self._marker.head
        rivals = [comment.marker for comment in comments if comment.marker.head == head]
        reason = ""
        if self._api.repository.get_pull(self.number).head.sha != head:
            reason = "the pull request has a newer commit than the reviewed one"
        elif any(map(self._marker.yields_to, rivals)):
            reason = "a newer run for the same commit has written it"
        if reason:
            self._api.notice(f"The comment was not changed: {reason}.")
        return bool(reason)

    def _create(self, body: str, comments: Sequence[_OwnComment]) -> IssueComment:
        known = {comment.comment.id for comment in comments}
        line = body.partition("\n")[0]

        def find() -> IssueComment | None:
            new = (entry.comment for entry in self._list_own() if entry.comment.id not in known)
            return next((comment for comment in new if comment.body.startswith(line)), None)

        return self._api.create(lambda: self._issue.create_comment(body), find)

    def _minimize(self, outdated: Sequence[_OwnComment]) -> None:
        """Folds outdated comments away; a failure is only a notice."""
        comments = {entry.comment.node_id: entry.comment for entry in outdated[-limits.PAGE :]}
        if not comments:
            return
        try:
            for node in self._api.graphql(_MINIMIZED, ids=[*comments])["nodes"]:
                if node and not node["isMinimized"]:
                    self._api.repeat(comments[node["id"]].minimize)
        except ApiError as error:
            self._api.report("An outdated comment could not be hidden", error, _PERMISSION)
