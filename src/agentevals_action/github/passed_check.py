"""The check run by which a head has passed, for events that change neither head nor base."""

from agentevals_action.github.check_run import read_id
from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import CheckRun, TimelineEvent

_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
#: What the title of the check run begins with when every test counted.
_PASSED = "Passed: "


def find_passed_check(api: GitHubApi, name: str) -> CheckRun | None:
    """The latest check run of this gate on the head, if it is of this pull request, and the head
    has passed against the present base branch. None if that is not so, or unknown.

    Attacks: an edit of the title gives a required job a new status, which is green without a run.
    The base branch is changed, and the title is edited before the run of that change has a
    result."""
    context = api.context
    if context.pull is None:
        return None
    path = f"commits/{context.head_sha}/check-runs"
    try:
        listed = api.pages(path, CheckRun, "check_runs", check_name=name, filter="all")
        ids = ((one, read_id(one.external_id)) for one in listed)
        own = [(one, id) for one, id in ids if id and id.gate == context.comment_id]
        latest, id = max(own, key=lambda pair: pair[0].id, default=(None, None))
        if not (latest and id and id.pull == context.pull and _has_passed(latest)):
            return None
        events = list(api.pages(f"issues/{context.pull}/timeline", TimelineEvent))
    except ApiError:  # the run is the answer
        return None
    started = latest.started_at
    changes = [one.created_at for one in events if one.event in _BASE_CHANGES]
    is_current = started and all(time is not None and time < started for time in changes)
    return latest if is_current else None


def _has_passed(check: CheckRun) -> bool:
    return check.conclusion == "success" and (check.title or "").startswith(_PASSED)
