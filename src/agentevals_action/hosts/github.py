"""GitHub as a host: what the pull request changes, its check, its comment; a refusal becomes a sentence, never an error."""

import time
from collections.abc import Callable, Sequence

from github.File import File
from github.PullRequest import PullRequest

from agentevals_action.hosts import limits
from agentevals_action.hosts.base import CheckReport, CommentReport
from agentevals_action.hosts.github_api import GitHubApi, Target, Trouble
from agentevals_action.hosts.github_check import GitHubCheck
from agentevals_action.hosts.github_comment import GitHubComment
from agentevals_action.model.comparison import ChangedFile

__all__ = ["GitHubHost", "Target"]

#: Words of a 403 that no permission would change.
_CLOSED = ("locked", "archived")


class GitHubHost:
    """A `hosts.base.Host` over GitHub's API. `sleep` takes seconds; all waiting of a run together is bounded."""

    def __init__(self, target: Target, sleep: Callable[[float], None] = time.sleep) -> None:
        self._target = target
        self._api = GitHubApi(target, sleep)
        self._notices: dict[str, None] = {}
        self._check = GitHubCheck(self._api, target, target.check_name, self._tell_check) if target.check_name else None

    @property
    def notices(self) -> Sequence[str]:
        """What could not be written, and what to grant: one sentence each, every one once."""
        return tuple(self._notices)

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """The pull request's files, from all pages.

        None outside a pull request, at GitHub's limit, when the list is not whole or not of the head under review (GitHub lists the
        present head's), and when GitHub does not say.
        """
        number = self._target.pull
        if number is None:
            return None
        api = self._api
        try:
            files = api.ask(lambda: [_changed(file) for file in api.repository.get_pull(number).get_files()])
            head, count = api.ask(lambda: _head_and_count(api.repository.get_pull(number)))
        except Trouble:  # git is asked instead: nothing is lost that a reader would miss
            return None
        # A name that is no UTF-8 comes as something else; git knows it as it is.
        named = all("\ufffd" not in file.path for file in files)
        whole = named and len(files) == count and len(files) < limits.PULL_FILES
        return files if whole and head == self._target.head_sha else None

    def merge_base(self) -> str | None:
        """SHA of the merge base of the base branch and the head; None when there is no base or GitHub does not say."""
        base = self._target.base
        if base is None:
            return None
        api = self._api
        try:
            return api.ask(lambda: api.repository.compare(base, self._target.head_sha, comparison_commits_per_page=1).merge_base_commit.sha)
        except Trouble:  # whoever asked has to do without, and says so
            return None

    def start_check(self) -> str | None:
        """Completes what killed runs left open, opens the check `in_progress`; its URL, None when there is to be none or it was refused."""
        return self._check.start() if self._check else None

    def finish_check(self, report: CheckReport) -> str | None:
        """Completes the check, opening it first if that has not worked yet; its URL when it stands completed."""
        return self._check.finish(report) if self._check else None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; its URL, None outside a pull request and where it does not stand as reported."""
        if self._target.pull is None:
            return None
        return GitHubComment(self._api, self._target, self._target.pull, self._say, self._tell_comment).publish(report)

    def _say(self, sentence: str) -> None:
        self._notices[sentence] = None

    def _tell_check(self, what: str, trouble: Trouble) -> None:
        self._say(_sentence(what, trouble, "checks: write", self._target.without_secrets))

    def _tell_comment(self, what: str, trouble: Trouble) -> None:
        self._say(_sentence(what, trouble, "pull-requests: write", self._target.without_secrets))


def _head_and_count(pull: PullRequest) -> tuple[str, int]:
    return pull.head.sha, pull.changed_files


def _changed(file: File) -> ChangedFile:
    if file.status == "copied":
        return ChangedFile(file.filename, "added")
    return ChangedFile(file.filename, file.status, file.previous_filename if file.status == "renamed" else None)


def _sentence(what: str, trouble: Trouble, permission: str, without_secrets: str) -> str:
    """What could not be written, why, and what to grant."""
    status = f"{trouble.status}: " if trouble.status else ""
    if trouble.kind == "limited":
        return f"{what}: GitHub limits the requests of this token, for longer than a run waits ({status}{trouble})."
    if trouble.kind == "down":
        return f"{what}: GitHub did not answer as it should ({status}{trouble})."
    if trouble.kind == "invalid" or any(word in str(trouble) for word in _CLOSED):
        return f"{what}: GitHub refused it ({status}{trouble})."
    if trouble.status == 401:
        return f"{what}: GitHub does not accept the token ({trouble}). Give `github-token` a valid one."
    return f"{what}: the token lacks `{permission}` (GitHub answered {status}{trouble}). {_grant(permission, without_secrets)}"


def _grant(permission: str, without_secrets: str) -> str:
    if not without_secrets:
        return f"Add `{permission}` to the `permissions:` of the job."
    reason = without_secrets[0].upper() + without_secrets[1:]
    if "fork" in without_secrets:
        return f"{reason}, and its token only reads, whatever the workflow grants: the job summary has the report."
    return f"{reason}, and its token only reads until the job says otherwise: add `{permission}` to its `permissions:`."
