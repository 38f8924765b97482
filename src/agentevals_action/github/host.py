"""GitHub as a host: what the pull request changes, its check, its comment; a refusal becomes a
sentence, never an error."""

import time
from collections.abc import Callable, Sequence

from github.PullRequest import PullRequest

from agentevals_action.github import limits
from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.base import CheckReport, CommentReport
from agentevals_action.github.check_run import GitHubCheck
from agentevals_action.github.comment import GitHubComment
from agentevals_action.github.data_branch import GitHubData
from agentevals_action.github.github_words import refusal
from agentevals_action.github.history import GitHubPast, changed_file
from agentevals_action.github.labels import GitHubLabels
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.quarantine import Acceptance

__all__ = ["GitHubHost", "Target"]


class GitHubHost:
    """A `hosts.base.Host` over GitHub's API. `sleep` takes seconds; all waiting of a run together
    is bounded."""

    def __init__(self, target: Target, sleep: Callable[[float], None] = time.sleep) -> None:
        self._target = target
        self._api = GitHubApi(target, sleep)
        self._past = GitHubPast(self._api, target)
        self._notices: dict[str, None] = {}
        self._check = (
            GitHubCheck(self._api, target, target.check_name, self._tell_check)
            if target.check_name
            else None
        )

    @property
    def past(self) -> GitHubPast:
        """What GitHub knows of the history: commits, and runs on a branch."""
        return self._past

    def memory(self, branch: str) -> GitHubData:
        """The results that are remembered on a branch of the repository."""
        return GitHubData(self._api, self._target, branch)

    @property
    def notices(self) -> Sequence[str]:
        """What could not be written, and what to grant: one sentence each, every one once."""
        return tuple(self._notices)

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """The pull request's files, from all pages.

        None outside a pull request, at GitHub's limit, when the list is not whole or not of the
        head under review (GitHub lists the present head's), and when GitHub does not say."""
        number = self._target.pull
        if number is None:
            return None
        api = self._api
        try:
            files = api.ask(
                lambda: [changed_file(file) for file in api.repository.get_pull(number).get_files()]
            )
            head, count = api.ask(lambda: _head_and_count(api.repository.get_pull(number)))
        except Trouble:  # git is asked instead: nothing is lost that a reader would miss
            return None
        # A name that is no UTF-8 comes as something else; git knows it as it is.
        named = all("\ufffd" not in file.path for file in files)
        whole = named and len(files) == count and len(files) < limits.PULL_FILES
        return files if whole and head == self._target.head_sha else None

    def merge_base(self) -> str | None:
        """SHA of the merge base of the base branch and the head; None when there is no base or
        GitHub does not say."""
        base = self._target.base
        if base is None:
            return None
        api = self._api
        try:
            return api.ask(
                lambda: (
                    api.repository.compare(
                        base, self._target.head_sha, comparison_commits_per_page=1
                    ).merge_base_commit.sha
                )
            )
        except Trouble:  # whoever asked has to do without, and says so
            return None

    def acceptance(self, label: str) -> Acceptance | None:
        """Who takes the regressions of this head on by putting the label on the pull request; None
        when nobody does, or that cannot be told."""
        if self._target.pull is None:
            return None
        return GitHubLabels(self._api, self._target, self._target.pull, self._say).acceptance(label)

    def start_check(self) -> str | None:
        """Completes what killed runs left open, opens the check `in_progress`; its URL, None when
        there is to be none or it was refused."""
        return self._check.start() if self._check else None

    def finish_check(self, report: CheckReport) -> str | None:
        """Completes the check, opening it first if that has not worked yet; its URL when it stands
        completed."""
        return self._check.finish(report) if self._check else None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; its URL, None outside a pull request and where
        it does not stand as reported."""
        if self._target.pull is None:
            return None
        return GitHubComment(
            self._api, self._target, self._target.pull, self._say, self._tell_comment
        ).publish(report)

    def _say(self, sentence: str) -> None:
        self._notices[sentence] = None

    def _tell_check(self, what: str, trouble: Trouble) -> None:
        self._say(refusal(what, trouble, "checks: write", self._target.without_secrets))

    def _tell_comment(self, what: str, trouble: Trouble) -> None:
        self._say(refusal(what, trouble, "pull-requests: write", self._target.without_secrets))


def _head_and_count(pull: PullRequest) -> tuple[str, int]:
    return pull.head.sha, pull.changed_files
