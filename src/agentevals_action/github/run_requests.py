"""Runs that a maintainer requests in a comment: the command, who wrote it, and the merge commit of
the run."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Annotated, Any

import github.PullRequest
from pydantic import AliasPath, Field

from agentevals_action.github.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.events import read_payload
from agentevals_action.model.job import COMMAND, Payload, PullRequest, run_command

EVENT = "issue_comment"
USAGE = f"{COMMAND} run SHA"
_RUN = re.compile(rf"{COMMAND}\s+run\s+([0-9a-fA-F]{{7,64}})")
#: What GitHub calls the permission of those who may push, maintainers included.
_MAY_PUSH = frozenset({"admin", "write"})
_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
#: Seconds for which GitHub's merge commit is asked for, and between two questions.
_MERGE_SECONDS, _PAUSE = 60, 3
_Time = Annotated[datetime, Field(strict=False)]  # JSON has no times
_REACT = """mutation($id: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $id, content: $content}) { reaction { content } }
}"""


class RunRequest(Payload):
    """A comment that begins with the command; `written` and `updated` are GitHub's times."""

    action: str
    number: int = Field(gt=0, validation_alias=AliasPath("issue", "number"))
    body: str | None = Field(validation_alias=AliasPath("comment", "body"))
    node_id: str = Field(validation_alias=AliasPath("comment", "node_id"))
    login: str = Field(min_length=1, validation_alias=AliasPath("comment", "user", "login"))
    account: str = Field(validation_alias=AliasPath("comment", "user", "type"))
    written: _Time = Field(validation_alias=AliasPath("comment", "created_at"))
    updated: _Time = Field(validation_alias=AliasPath("comment", "updated_at"))

    @property
    def is_edited(self) -> bool:
        """Whether its text is not the one that its author first wrote."""
        return self.action == "edited" or self.updated != self.written

    @property
    def commit(self) -> str | None:
        """The first digits of the commit in the command; None if the command is not valid."""
        match = _RUN.fullmatch(_first_line(self.body))
        return match[1].lower() if match else None


class Refused(Exception):
    """Why a request is refused, in a sentence. `is_answered`: the author may write to the
    repository and gets a comment; another one gets none, so that nobody can make the bot write."""

    def __init__(self, reason: str, advice: str, *, is_answered: bool = True) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason, self.advice, self.is_answered = reason, advice, is_answered


def read_request(payload: Mapping[str, Any]) -> RunRequest | None:
    """The request in the payload of an event; None if the first line of the text is no command, or
    the text is not new. InvalidInput for a payload that is not GitHub's."""
    is_on_pull = (payload.get("issue") or {}).get("pull_request")
    if payload.get("action") == "deleted" or not is_on_pull:
        return None
    request = read_payload(RunRequest, EVENT, payload)
    return request if _first_line(request.body).split()[:1] == [COMMAND] else None


def _first_line(body: str | None) -> str:
    return (body or "").strip().partition("\n")[0].strip()


def other_bases(api: GitHubApi, pull: PullRequest) -> Sequence[str]:
    """The other base branches of all open pull requests with the head of this one: a check run
    belongs to a commit, and counts for each of them. HostError."""
    with _readable():
        opened = api.repository.get_pulls(state="open")
        bases = {other.base.ref for other in opened if other.head.sha == pull.head_sha}
    return sorted(bases - {pull.base_ref})


def _readable() -> AbstractContextManager[None]:
    return as_host_errors("the pull request could not be read", "pull-requests: read")


class RunRequests:
    """Decides about a request over the API. All methods raise HostError."""

    def __init__(self, api: GitHubApi, request: RunRequest) -> None:
        self._api, self._request = api, request

    def react(self, content: str) -> None:
        """Adds a reaction (`EYES`, `CONFUSED`) to the comment; a failure is a notice."""
        try:
            self._api.graphql(_REACT, id=self._request.node_id, content=content)
        except ApiError as error:
            problem = "The reaction to the command could not be written"
            self._api.report(problem, error, "pull-requests: write")

    def pull(self) -> PullRequest:
        """The pull request as it is now."""
        with _readable():
            return PullRequest.from_reply(self._read().raw_data)

    def require_valid(self, pull: PullRequest) -> None:
        """Raises Refused unless a person with write access asks for the head of the pull request
        that was read, which is the head that runs.

        Attack: between the comment and the run, a stranger pushes code that nobody has read: the
        command names the commit. Or the base branch is changed to one with fewer tests, or a second
        pull request has the head and another base branch."""
        request = self._request
        self._require_author()
        if request.commit is None:
            raise Refused("the command is not valid", f"write `{USAGE}`, with seven digits or more")
        if request.is_edited:
            reason = "the comment was edited after it was written"
            raise Refused(reason, "write the command in a new comment")
        with _readable():
            current = self._read()
            state = "merged" if current.merged_at else current.state
        if state != "open":
            raise Refused(f"the pull request is {state}", "open it, then write it again")
        if not pull.head_sha.startswith(request.commit):
            raise Refused(
                f"{request.commit} is not the head of the pull request ({pull.head_sha[:12]})",
                f"read the changes, then write `{run_command(pull.head_sha)}`",
            )
        if self._is_base_changed():
            reason = "the base branch of the pull request was changed after the comment"
            raise Refused(reason, "write the command in a new comment")
        if bases := other_bases(self._api, pull):
            reason = (
                f"another open pull request has the same head, and the base branch `{bases[0]}`"
            )
            raise Refused(reason, "close it, then write the command again")

    def merge_commit(self, pull: PullRequest) -> tuple[str, str]:
        """GitHub's merge commit of the head, and the tip of the base branch that it is based on.
        Raises Refused for a conflict, and if GitHub has not made it in time."""
        for _ in range(0, _MERGE_SECONDS, _PAUSE):
            with as_host_errors("the merge commit could not be read", "contents: read"):
                current, repository = self._read(), self._api.repository
                facts = current.head.sha, current.base.ref, current.state
                if facts != (pull.head_sha, pull.base_ref, "open"):
                    reason = "the pull request was changed while its merge commit was asked for"
                    raise Refused(reason, "read the changes, then write the command again")
                if current.mergeable is False:
                    reason = "the pull request has a conflict with its base branch"
                    raise Refused(reason, "resolve it, then write the command for the new head")
                tip = repository.get_branch(pull.base_ref).commit.sha
                merge = current.merge_commit_sha
                parents = repository.get_commit(merge).parents if merge else ()
                if merge and [parent.sha for parent in parents] == [tip, pull.head_sha]:
                    return merge, tip
            if not self._api.wait(_PAUSE):
                break
        raise Refused(
            "GitHub has no merge commit of the head and the tip of the base branch",
            "write the command again",
        )

    def _read(self) -> github.PullRequest.PullRequest:
        return self._api.repository.get_pull(self._request.number).complete()

    def _require_author(self) -> None:
        """Attack: `author_association` of the payload is `COLLABORATOR` for somebody with `read`,
        and `CONTRIBUTOR` for everybody who once had a commit merged."""
        login = self._request.login
        if self._request.account != "User" or login.endswith("[bot]"):
            advice = "a person with write access can write it"
            raise Refused("a bot wrote the command", advice, is_answered=False)
        may_push = False
        problem = f"the rights of @{login} could not be read"
        with as_host_errors(problem, "contents: read"):
            try:
                may_push = self._api.repository.get_collaborator_permission(login) in _MAY_PUSH
            except github.GithubException as error:
                if error.status != 404:
                    raise
        if not may_push:
            raise Refused(
                f"@{login} has no write access to this repository",
                "ask a maintainer to write the command",
                is_answered=False,
            )

    def _is_base_changed(self) -> bool:
        problem = "whether the base branch was changed is not known"
        with as_host_errors(problem, "pull-requests: read"):
            events = self._api.repository.get_issue(self._request.number).get_timeline()
            changes = [event.created_at for event in events if event.event in _BASE_CHANGES]
        return any(time is None or time >= self._request.written for time in changes)
