"""The label that accepts the regressions of a head: who added it, and for which head."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from agentevals_action.github.check_run import is_of_pull
from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import CheckRun, PullReply, TimelineEvent
from agentevals_action.model.quarantine import Acceptance

_LABELS = ("labeled", "unlabeled")
_FORCED = "head_ref_force_pushed"
_PUSHES = ("committed", _FORCED)
#: GitHub's name for a deleted account.
_DELETED_ACCOUNT = "ghost"


@dataclass(frozen=True)
class _Addition:
    """The last time that the label was added. `is_current` if the head has not changed since;
    `forced` is the time of the last force-push before."""

    login: str
    time: datetime
    is_current: bool
    forced: datetime | None


class Labels:
    """The labels of one pull request.

    Attack: a head that was checked on another branch before is pushed after the label was added,
    with an old date, so that GitHub lists it before the label. The label is bound to the head of
    the event `labeled`, or to one that this action has checked for this pull request."""

    def __init__(self, api: GitHubApi, pull: int) -> None:
        self._api = api
        self._pull = pull

    def acceptance(self, label: str) -> Acceptance | None:
        """Who accepts the regressions of the head by this label, or the problem why nobody does;
        None without the label."""
        permission = "pull-requests: read"
        try:
            pull = self._api.get(f"pulls/{self._pull}", PullReply)
            if not any(_is_same(one.name, label) for one in pull.labels):
                return None
            events = self._api.pages(f"issues/{self._pull}/timeline", TimelineEvent)
            added = _find_addition(events, label)
            permission = "checks: read"
            reason = self._refusal(pull, added, label)
        except ApiError as error:
            problem = f"The label `{label}` accepts nothing, because the head it is for is unknown"
            return Acceptance("", label, error.explain(problem, permission))
        if reason or added is None:
            problem = (
                f"The label `{label}` accepts nothing: {reason}. To accept the regressions of this "
                "head, remove it and add it again."
            )
            return Acceptance("", label, problem)
        return Acceptance(added.login, label)

    def _refusal(self, pull: PullReply, added: _Addition | None, label: str) -> str:
        """The reason why the label does not accept this head, empty if it does."""
        if pull.head_sha != self._api.context.head_sha:
            return "the pull request has another head now"
        if added is None:
            return "GitHub does not name who added it"
        if not added.is_current:
            return f"the head has changed since @{added.login} added it"
        if _is_same(self._api.context.labeled, label) or self._was_checked(pull, added):
            return ""
        return (
            f"when @{added.login} added it, no check of this head had started yet: "
            "it may be meant for another"
        )

    def _was_checked(self, pull: PullReply, added: _Addition) -> bool:
        """Whether this action started a check of this head, for this pull request, before the label
        was added and after the last force-push.

        Without a force-push, commits are only added to a head: it was this one then, and has been
        since."""
        path = f"commits/{pull.head_sha}/check-runs"
        checks = self._api.pages(path, CheckRun, "check_runs", filter="all")
        return any(
            check.started_at < added.time
            and (added.forced is None or check.started_at >= added.forced)
            for check in checks
            if check.started_at and is_of_pull(check.external_id, self._pull)
        )


def _find_addition(events: Iterable[TimelineEvent], label: str) -> _Addition | None:
    """The addition of the label by the events in their order; None if they do not end with it."""
    added: _Addition | None = None
    forced: datetime | None = None
    for event in events:
        if event.event == _FORCED:
            forced = event.created_at
        if event.event in _PUSHES and added:
            added = replace(added, is_current=False)
        elif event.event in _LABELS and event.label and _is_same(event.label.name, label):
            added = None
            if event.event == "labeled" and event.created_at:
                login = event.actor.login if event.actor else _DELETED_ACCOUNT
                added = _Addition(login, event.created_at, is_current=True, forced=forced)
    return added


def _is_same(name: str, label: str) -> bool:
    return name.casefold() == label.casefold()  # as GitHub compares labels
