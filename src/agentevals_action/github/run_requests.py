"""Runs that a maintainer requests in a comment: the command, who wrote it, and the merge commit of
the run."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.github.client.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.client.replies import (
    Branch,
    MergeCommit,
    Permission,
    PullSides,
    Time,
    TimelineEvent,
)

EVENT = "issue_comment"
COMMAND = "/agentevals"
USAGE = f"{COMMAND} run SHA"
_RUN = re.compile(rf"{COMMAND}\s+run\s+([0-9a-fA-F]{{7,64}})")
#: Digits of a commit in a command that is to be copied.
_SHOWN = 12
#: What GitHub calls the permission of those who may push, maintainers included.
_MAY_PUSH = frozenset({"admin", "write"})
_BASE_CHANGES = frozenset({"base_ref_changed", "automatic_base_change_succeeded"})
#: Seconds for which GitHub's merge commit is asked for, and between two questions.
_MERGE_SECONDS, _PAUSE = 60, 3
_REACT = """mutation($id: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $id, content: $content}) { reaction { content } }
}"""


def run_command(commit: str) -> str:
    """The command that requests a run of a commit."""
    return f"{COMMAND} run {commit[:_SHOWN]}"


class RunRequest(BaseModel):
    """A comment that begins with the command; `written` and `updated` are GitHub's times."""

    model_config = ConfigDict(frozen=True, strict=True)

    action: str
    number: int = Field(gt=0, validation_alias=AliasPath("issue", "number"))
    body: str | None = Field(validation_alias=AliasPath("comment", "body"))
    node_id: str = Field(validation_alias=AliasPath("comment", "node_id"))
    login: str = Field(min_length=1, validation_alias=AliasPath("comment", "user", "login"))
    account: str = Field(validation_alias=AliasPath("comment", "user", "type"))
    written: Time = Field(validation_alias=AliasPath("comment", "created_at"))
    updated: Time = Field(validation_alias=AliasPath("comment", "updated_at"))

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
    try:
        request = RunRequest.model_validate(payload)
    except ValidationError as error:
        names = (".".join(map(str, one["loc"])) for one in error.errors(include_input=False))
        fields = ", ".join(f"`{name}`" for name in names)
        raise InvalidInput(
            f"the payload of the event `{EVENT}` has no valid value at {fields}",
            "the event file is not what GitHub sends for this event",
        ) from error
    return request if _first_line(request.body).split()[:1] == [COMMAND] else None


def _first_line(body: str | None) -> str:
    return (body or "").strip().partition("\n")[0].strip()


class RunRequests:
    """Decides about requests over the API. All methods raise HostError."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    def react(self, request: RunRequest, content: str) -> None:
        """Adds a reaction (`EYES`, `CONFUSED`) to the comment; a failure is a notice."""
        try:
            self._api.graphql(_REACT, {"id": request.node_id, "content": content})
        except ApiError as error:
            problem = "The reaction to the command could not be written"
            self._api.report(problem, error, "pull-requests: write")

    def pull(self, request: RunRequest) -> PullSides:
        """The pull request as it is now."""
        with as_host_errors("the pull request could not be read", "pull-requests: read"):
            return self._api.get(f"pulls/{request.number}", PullSides)

    def require_valid(self, request: RunRequest, pull: PullSides) -> None:
        """Raises Refused unless a person with write access asks for the present head.

        Attack: between the comment and the run, a stranger pushes code that nobody has read: the
        command names the commit. Or the base branch is changed to one with fewer tests."""
        self._require_author(request)
        if request.commit is None:
            raise Refused("the command is not valid", f"write `{USAGE}`, with seven digits or more")
        if request.is_edited:
            reason = "the comment was edited after it was written"
            raise Refused(reason, "write the command in a new comment")
        if pull.closed:
            raise Refused(f"the pull request is {pull.closed}", "open it, then write it again")
        if not pull.head_sha.startswith(request.commit):
            raise Refused(
                f"{request.commit} is not the head of the pull request ({pull.head_sha[:_SHOWN]})",
                f"read the changes, then write `{run_command(pull.head_sha)}`",
            )
        if self._is_base_changed(request):
            reason = "the base branch of the pull request was changed after the comment"
            raise Refused(reason, "write the command in a new comment")

    def merge_commit(self, request: RunRequest, pull: PullSides) -> tuple[str, str]:
        """GitHub's merge commit of the head, and the tip of the base branch that it is based on.
        Raises Refused for a conflict, and if GitHub has not made it in time."""
        for _ in range(0, _MERGE_SECONDS, _PAUSE):
            now = self.pull(request)
            before = pull.head_sha, pull.base_ref, pull.state
            if (now.head_sha, now.base_ref, now.state) != before:
                reason = "the pull request was changed while its merge commit was asked for"
                raise Refused(reason, "read the changes, then write the command again")
            if now.mergeable is False:
                reason = "the pull request has a conflict with its base branch"
                raise Refused(reason, "resolve it, then write the command for the new head")
            with as_host_errors("the merge commit could not be read", "contents: read"):
                tip = self._api.get(f"branches/{quote(pull.base_ref)}", Branch).sha
                if now.merge_sha and self._parents(now.merge_sha) == (tip, pull.head_sha):
                    return now.merge_sha, tip
            if not self._api.wait(_PAUSE):
                break
        raise Refused(
            "GitHub has no merge commit of the head and the tip of the base branch",
            "write the command again",
        )

    def _parents(self, commit: str) -> tuple[str, ...]:
        found = self._api.get(f"commits/{commit}", MergeCommit)
        return tuple(parent.sha for parent in found.parents)

    def _require_author(self, request: RunRequest) -> None:
        """Attack: `author_association` of the payload is `COLLABORATOR` for somebody with `read`,
        and `CONTRIBUTOR` for everybody who once had a commit merged."""
        if request.account != "User" or request.login.endswith("[bot]"):
            advice = "a person with write access can write it"
            raise Refused("a bot wrote the command", advice, is_answered=False)
        path = f"collaborators/{quote(request.login, safe='')}/permission"
        try:
            permission = self._api.get(path, Permission).permission
        except ApiError as error:
            if error.status != 404:
                raise
            permission = "none"
        if permission not in _MAY_PUSH:
            raise Refused(
                f"@{request.login} has no write access to this repository",
                "ask a maintainer to write the command",
                is_answered=False,
            )

    @as_host_errors("whether the base branch was changed is not known", "pull-requests: read")
    def _is_base_changed(self, request: RunRequest) -> bool:
        events = self._api.pages(f"issues/{request.number}/timeline", TimelineEvent)
        changes = (one.created_at for one in events if one.event in _BASE_CHANGES)
        return any(time is None or time >= request.written for time in changes)
