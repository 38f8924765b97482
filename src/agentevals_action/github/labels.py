"""The label that accepts the regressions of one commit of a pull request."""

from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import PullReply
from agentevals_action.github.comment import AcceptedCommit, CommentWriter
from agentevals_action.model.quarantine import Acceptance


class AcceptLabel:
    """Reads the label, and stores the commit that it accepts in the marker of the comment."""

    def __init__(self, api: GitHubApi, comments: CommentWriter) -> None:
        self._api = api
        self._comments = comments

    def acceptance(self, label: str) -> Acceptance | None:
        """Who accepts the regressions of the head by this label, or the problem why nobody does;
        None without the label.

        The run of the event `labeled` accepts its head. So does a requested run: its author names
        the commit while the label is there. Any other run reads what one of these has stored."""
        context = self._api.context
        try:
            pull = self._api.get(f"pulls/{context.pull}", PullReply)
            if not any(_is_same(one.name, label) for one in pull.labels):
                self._comments.store_accepted(None)
                return None
            if context.requested_for or _is_same(context.labeled, label):
                accepted = AcceptedCommit(commit=context.head_sha, by=context.sender)
                self._comments.store_accepted(accepted)
                return Acceptance(context.sender, label)
            stored = self._comments.read_accepted()
        except ApiError as error:
            problem = f"The label `{label}` accepts nothing, because its commit is unknown"
            return Acceptance("", label, error.explain(problem, "pull-requests: read"))
        if stored and stored.commit == context.head_sha:
            return Acceptance(stored.by, label)
        reason = "the commit that it was added for is not known"
        if stored:
            reason = f"@{stored.by} added it for {stored.commit[:12]}"
        problem = (
            f"The label `{label}` accepts nothing: {reason}. To accept the regressions of this "
            "commit, remove the label and add it again."
        )
        return Acceptance("", label, problem)


def _is_same(name: str, label: str) -> bool:
    return name.casefold() == label.casefold()  # as GitHub compares labels
