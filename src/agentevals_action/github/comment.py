"""The comment on the pull request: one for each gate, found by its marker and its author, updated
in place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from github.IssueComment import IssueComment

from agentevals_action.github import limits
from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.base import CommentReport
from agentevals_action.github.github_marker import Marker, read_marker
from agentevals_action.model.comparison import Outcome

#: Author of what GITHUB_TOKEN writes, for where GraphQL does not say whom the token belongs to.
_ACTIONS_BOT = "github-actions[bot]"
_VIEWER = "query { viewer { login databaseId } }"
_HIDDEN = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized } } }"
_HIDE = """mutation($id: ID!) {
  minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } }
}"""
#: From the best to the worst: a step down is news that an edit would tell nobody.
_ORDER = (Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.FAILED, Outcome.INVALID)


@dataclass(frozen=True)
class _Own:
    """A comment of this gate's, by our own account."""

    comment: IssueComment
    marker: Marker


class GitHubComment:
    """The comment of one gate on one pull request. `say` takes a sentence for the reader, `tell`
    what could not be done and why."""

    def __init__(
        self,
        api: GitHubApi,
        target: Target,
        pull: int,
        say: Callable[[str], None],
        tell: Callable[[str, Trouble], None],
    ) -> None:
        self._api = api
        self._target = target
        self._pull = pull
        self._say = say
        self._tell = tell

    def publish(self, report: CommentReport) -> str | None:
        """Brings the comment to what the report says; its URL, None where it does not stand so."""
        try:
            return self._publish(report)
        except Trouble as trouble:
            self._tell("The comment could not be written", trouble)
            return None

    def _publish(self, report: CommentReport) -> str | None:
        target = self._target
        marker = Marker(
            target.comment_id, target.run_id, target.run_attempt, target.head_sha, report.outcome
        )
        own = self._own()
        if (not own and not report.wanted) or self._is_late(marker, own):
            return None
        line = f"{marker.line()}\n"
        body = line + limits.fitting(report.body, limits.COMMENT, room=len(line))
        if not own:
            return self._create(body, own).html_url
        standing = own[-1]
        self._hide(own[:-1])
        if _worse(report.outcome, standing.marker.outcome) and report.wanted:
            posted = self._create(body, own)
            self._hide([standing])
            return posted.html_url
        # A green comment from before would be a lie beside a red check, and a red one beside a
        # green: both are turned, wanted or not.
        if report.wanted or {report.outcome, standing.marker.outcome} != {Outcome.PASSED}:
            self._update(standing.comment, body)
        return standing.comment.html_url

    def _own(self) -> Sequence[_Own]:
        """Our comments of this gate, the oldest first."""
        found = []
        for comment in self._api.ask(
            lambda: list(self._api.repository.get_issue(self._pull).get_comments())
        ):
            marker = read_marker(comment.body or "")
            if marker is not None and marker.comment_id == self._target.comment_id:
                found.append(_Own(comment, marker))
        if not found:
            return ()
        login, number = self._viewer()
        ours = [
            own
            for own in found
            if own.comment.user
            and (own.comment.user.id == number or own.comment.user.login == login)
        ]
        return sorted(ours, key=lambda own: own.comment.id)

    def _viewer(self) -> tuple[str, int | None]:
        """Login and REST id of the token's account. REST does not tell it to an app's token;
        GraphQL calls the viewer `name[bot]`, as REST calls the author."""
        try:
            viewer = self._api.graphql(_VIEWER, {})["viewer"]
        except Trouble as trouble:
            if trouble.kind == "down":
                raise
            return _ACTIONS_BOT, None
        return str(viewer["login"]), viewer.get("databaseId")

    def _is_late(self, marker: Marker, own: Sequence[_Own]) -> bool:
        """Whether the pull request has moved on, or a newer run has spoken for this head."""
        if self._head() not in (marker.head, None):
            self._say(
                "The comment was left alone: the pull request has a newer commit than the one that was reviewed."
            )
            return True
        if any(marker.yields_to(one.marker) for one in own if one.marker.head == marker.head):
            self._say("The comment was left alone: a newer run for the same commit has written it.")
            return True
        return False

    def _head(self) -> str | None:
        try:
            return self._api.ask(lambda: self._api.repository.get_pull(self._pull).head.sha)
        except (
            Trouble
        ):  # what matters follows: if the comment cannot be written either, that is told
            return None

    def _create(self, body: str, own: Sequence[_Own]) -> IssueComment:
        known = {one.comment.id for one in own}

        def landed() -> IssueComment | None:
            line = body.partition("\n")[0]
            new = (one.comment for one in self._own() if one.comment.id not in known)
            return next((comment for comment in new if comment.body.startswith(line)), None)

        return self._api.ask(
            lambda: self._api.repository.get_issue(self._pull).create_comment(body), landed
        )

    def _update(self, comment: IssueComment, body: str) -> None:
        if comment.body.replace("\r\n", "\n") != body:
            self._api.ask(lambda: comment.edit(body))

    def _hide(self, outdated: Sequence[_Own]) -> None:
        """Folds comments away as outdated; that one stays open is told, but is no reason to
        stop."""
        if not outdated:
            return
        try:
            ids = [own.comment.node_id for own in outdated]
            nodes = self._api.graphql(_HIDDEN, {"ids": ids[-limits.PAGE :]})["nodes"]
            for node in nodes:
                if node and not node["isMinimized"]:
                    self._api.graphql(_HIDE, {"id": node["id"]})
        except Trouble as trouble:
            self._tell("An outdated comment could not be hidden", trouble)


def _worse(outcome: Outcome, standing: Outcome) -> bool:
    return _ORDER.index(outcome) > _ORDER.index(standing)
