"""The label that accepts the regressions of one commit of a pull request."""

from collections.abc import Iterable
from datetime import datetime

from github.TimelineEvent import TimelineEvent

from agentevals_action.github.api import ApiError, GitHubApi, api_errors
from agentevals_action.github.comment import AcceptedCommit, CommentWriter
from agentevals_action.model.job import Job
from agentevals_action.model.quarantine import Acceptance

#: Events of the timeline: a label was added, a push was forced.
_LABELED, _FORCED = "labeled", "head_ref_force_pushed"


def read_acceptance(
    api: GitHubApi, job: Job, comments: CommentWriter, label: str
) -> Acceptance | None:
    """Who accepts the regressions of the head of a pull request by this label, or the problem why
    nobody does; None without the label. The next comment stores the accepted commit.

    The run of the event `labeled` accepts its head. Any other run reads what such a run has stored,
    and a requested run finds out for which head the label was added."""

    def accept(who: str) -> Acceptance:
        comments.store_accepted(AcceptedCommit(commit=job.head_sha, by=who))
        return Acceptance(who, label)

    try:
        with api_errors():
            labels = api.repository.get_pull(comments.number).labels
            if not any(_is_same(attached.name, label) for attached in labels):
                comments.store_accepted(None)
                return None
            if job.label and _is_same(job.label.name, label):
                return accept(job.label.by)
            latest = comments.read_latest()
            stored = latest[0].accepted if latest else None
            if stored and stored.commit == job.head_sha:
                return accept(stored.by)
            if job.requested_pull and latest and latest[0].head == job.head_sha:
                timeline = api.repository.get_issue(comments.number).get_timeline()
                if who := _find_adder(label, timeline, latest[1]):
                    return accept(who)
    except ApiError as error:
        problem = f"The label `{label}` accepts nothing, because its commit is unknown"
        return Acceptance("", label, error.explain(problem, "pull-requests: read"))
    reason = "the commit that it was added for is not known"
    if stored:
        reason = f"@{stored.by} added it for {stored.commit[:12]}"
    problem = (
        f"The label `{label}` accepts nothing: {reason}. To accept the regressions of this "
        "commit, remove the label and add it again."
    )
    return Acceptance("", label, problem)


def _find_adder(label: str, timeline: Iterable[TimelineEvent], written: datetime) -> str:
    """Who added the label for this head: after the comment about it was written (the claims, or the
    result of an earlier request), while the head stayed the same. Empty if that is not known.

    The run of `labeled` of a fork has no right to store it. Attack: a stranger pushes after
    somebody has added the label, and the next requested run accepts what nobody saw."""
    later = [event for event in timeline if event.created_at and event.created_at > written]
    # A push has no time. Of two that move the head and move it back, one is forced.
    if any(event.event == _FORCED for event in later):
        return ""
    added = [event for event in later if event.event == _LABELED]
    actors = [event.actor for event in added if _is_same(event.raw_data["label"]["name"], label)]
    return actors[-1].login if actors and actors[-1] else ""


def _is_same(name: str, label: str) -> bool:
    return name.casefold() == label.casefold()  # as GitHub compares labels
