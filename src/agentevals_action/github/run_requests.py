"""Runs that a maintainer requests in a comment or a review: the command, who wrote it, and the
commit that it is for."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.github.check_run import is_of_pull
from agentevals_action.github.client.api import ApiError, GitHubApi, as_host_errors
from agentevals_action.github.client.replies import (
    CheckRun,
    ForcePushes,
    Permission,
    PullSides,
    Time,
    TimelineEvent,
    WorkflowRun,
)
from agentevals_action.github.events import Part, Sha
from agentevals_action.settings import MAX_SAMPLES

COMMAND = "/agentevals"
RUN = f"{COMMAND} run"
#: Digits of a commit in a command that is to be copied.
_SHOWN = 12
USAGE = f"`{RUN} [suite …] [--test GLOB] [--samples N]` or `{COMMAND} help`"
#: The events that can carry a command.
EVENTS = ("issue_comment", "pull_request_review")
#: What GitHub calls the permission of those who may push, maintainers included.
_MAY_PUSH = frozenset({"admin", "write"})
_FORCED = "head_ref_force_pushed"
#: Time by which GitHub may note the run of a push after the push itself.
_RUN_DELAY = timedelta(minutes=5)
_LAST_FORCED = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    timelineItems(last: 1, itemTypes: [HEAD_REF_FORCE_PUSHED_EVENT]) {
      nodes { ... on HeadRefForcePushedEvent { afterCommit { oid } } } } } }
}"""
_REACT = """mutation($id: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $id, content: $content}) { reaction { content } }
}"""


def run_command(commit: str) -> str:
    """The command that requests a run of a commit."""
    return f"{RUN} {commit[:_SHOWN]}"


def _either(*path: str) -> AliasChoices:
    return AliasChoices(AliasPath("comment", *path), AliasPath("review", *path))


@dataclass(frozen=True)
class RunCommand:
    """`/agentevals run` with its arguments (`samples` None is the input's), or `help`."""

    part: Part = field(default_factory=Part)
    samples: int | None = None
    is_help: bool = False


class RunRequest(BaseModel):
    """A comment or a review that begins with the command. `commit` is that of a review; `written`
    and `updated` are GitHub's times."""

    model_config = ConfigDict(frozen=True, strict=True)

    action: str
    number: int = Field(
        gt=0,
        validation_alias=AliasChoices(
            AliasPath("issue", "number"), AliasPath("pull_request", "number")
        ),
    )
    body: str | None = Field(validation_alias=_either("body"))
    node_id: str = Field(validation_alias=_either("node_id"))
    login: str = Field(min_length=1, validation_alias=_either("user", "login"))
    account: str = Field(validation_alias=_either("user", "type"))
    commit: Sha | None = Field(None, validation_alias=AliasPath("review", "commit_id"))
    written: Time = Field(
        validation_alias=AliasChoices(
            AliasPath("comment", "created_at"), AliasPath("review", "submitted_at")
        )
    )
    updated: Time | None = Field(None, validation_alias=AliasPath("comment", "updated_at"))

    @property
    def is_edited(self) -> bool:
        """Whether its text is not the one that its author first wrote."""
        return self.action == "edited" or (self.updated or self.written) != self.written


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused. `is_answered`: the author may write to the repository and gets a
    comment; another one gets none, so that nobody can make the bot write."""

    reason: str
    advice: str
    is_answered: bool = False

    @property
    def sentence(self) -> str:
        """The reason and the advice."""
        return f"{self.reason}; {self.advice}"


def read_request(name: str, payload: Mapping[str, Any]) -> RunRequest | None:
    """The request in the payload of an event; None if the first line of the text is no command, or
    the text is not new. InvalidInput for a payload that is not GitHub's."""
    if payload.get("action") in ("deleted", "dismissed"):
        return None
    if name == "issue_comment" and not (payload.get("issue") or {}).get("pull_request"):
        return None
    try:
        request = RunRequest.model_validate(payload)
    except ValidationError as error:
        fields = ", ".join(f"`{one['loc'][0]}`" for one in error.errors(include_input=False))
        raise InvalidInput(
            f"the payload of the event `{name}` has no valid value at {fields}",
            "the event file is not what GitHub sends for this event",
        ) from error
    return request if _first_line(request.body).split()[:1] == [COMMAND] else None


def parse_command(body: str | None) -> RunCommand:
    """The command in the first line. ValueError with the problem for one that is not known."""
    try:
        words = shlex.split(_first_line(body))[1:]
    except ValueError as error:
        raise ValueError("a quotation mark is not closed") from error
    if words == ["help"] or not words:
        return RunCommand(is_help=True)
    if words.pop(0) != "run":
        raise ValueError("the command is unknown")
    suites, tests, samples = [], [], None
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if name in ("--test", "--samples"):
            if not has_value and not words:
                raise ValueError(f"`{name}` has no value")
            value = value if has_value else words.pop(0)
            if name == "--test":
                tests.append(value)
            elif value.isascii() and value.isdecimal() and 1 <= int(value) <= MAX_SAMPLES:
                samples = int(value)
            else:
                raise ValueError(f"`--samples` is a whole number from 1 to {MAX_SAMPLES}")
        elif word.startswith("-"):
            raise ValueError("an argument is unknown")
        else:
            suites.append(word)
    return RunCommand(Part(tuple(suites), tuple(tests)), samples)


def _first_line(body: str | None) -> str:
    return (body or "").strip().partition("\n")[0]


class RunRequests:
    """Decides about requests over the API. All methods raise HostError."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    def react(self, request: RunRequest, content: str) -> None:
        """Adds a reaction (`EYES`, `CONFUSED`) to the comment or review; a failure is a notice."""
        try:
            self._api.graphql(_REACT, {"id": request.node_id, "content": content})
        except ApiError as error:
            problem = "The reaction to the command could not be written"
            self._api.report(problem, error, "pull-requests: write")

    def pull(self, request: RunRequest) -> PullSides:
        """The pull request as it is now."""
        return self._api.get(f"pulls/{request.number}", PullSides)

    def has_check(self, pull: PullSides, name: str) -> bool:
        """Whether the head has a check run of this name from the action.

        Attack: a job of the pull request with the same name is the latest check run, which hides
        the action's."""
        path = f"commits/{pull.head_sha}/check-runs"
        found = self._api.pages(path, CheckRun, "check_runs", check_name=name, filter="all")
        return any(is_of_pull(check.external_id, pull.number) for check in found)

    def refuse_author(self, request: RunRequest) -> Refusal | None:
        """The refusal of a bot, and of an account that may not push.

        Attack: `author_association` of the payload is `COLLABORATOR` for somebody with `read`, and
        `CONTRIBUTOR` for everybody who once had a commit merged."""
        if request.account != "User" or request.login.endswith("[bot]"):
            return Refusal("a bot wrote the command", "a person with write access can write it")
        path = f"collaborators/{quote(request.login, safe='')}/permission"
        try:
            permission = self._api.get(path, Permission).permission
        except ApiError as error:
            if error.status != 404:
                raise
            permission = "none"
        if permission not in _MAY_PUSH:
            return Refusal(
                f"@{request.login} has no write access to this repository",
                "ask a maintainer to write the command",
            )
        return None

    def refuse_commit(self, request: RunRequest, pull: PullSides) -> Refusal | None:
        """The refusal of a closed pull request, of an edited comment, and of a head that the author
        did not see.

        Attack: between the comment and the run, a stranger pushes code that nobody has read."""
        if pull.closed:
            advice = "open it again, then write the command again"
            return Refusal(f"the pull request is {pull.closed}", advice, True)
        if request.is_edited:
            reason = "the comment was edited after it was written"
            return Refusal(reason, "write the command in a new comment", True)
        repository = self._api.context.repository
        if request.commit and pull.head_repository != repository:
            # The run of a review has the rights of the head: no keys, a token that cannot write.
            reason = "a review of a fork's pull request starts a run without keys"
            return Refusal(reason, f"write `{RUN}` in a comment", True)
        if request.commit != pull.head_sha and (
            request.commit or self._is_pushed_since(request, pull)
        ):
            reason = f"the head of the pull request is {pull.head_sha[:12]} now"
            if request.commit:
                reason = f"{reason}, and the review is of {request.commit[:12]}"
            else:
                reason = f"{reason}, and GitHub has no run of it from before the comment"
            return Refusal(reason, "read the changes, then write the command again", True)
        return None

    @as_host_errors("whether the head was pushed after the comment is not known", "actions: read")
    def _is_pushed_since(self, request: RunRequest, pull: PullSides) -> bool:
        """Whether the head may have been pushed after the comment. The times of commits are what
        their author wrote. The times that GitHub notes are those of force-pushes and of the runs
        that a push starts.

        Attack: a head that was pushed once and then replaced by a harmless one comes back after the
        comment, also from the time before the pull request was opened: the opening and a force-push
        make all earlier runs no evidence. GitHub notes the run of a push some seconds later, so
        that of a head which was replaced at once has a time after that: for some minutes, only the
        head that the force-push made has evidence, or that of a branch's first pull request."""
        events = self._api.pages(f"issues/{request.number}/timeline", TimelineEvent)
        replaced = [one.created_at for one in events if one.event == _FORCED and one.created_at]
        since = max(pull.created_at, *replaced) if replaced else pull.created_at
        is_first = self._is_of_force_push(pull) if replaced else self._is_first_of_branch(pull)
        since = since if is_first else since + _RUN_DELAY
        runs = self._api.pages(
            "actions/runs",
            WorkflowRun,
            "workflow_runs",
            event="pull_request",
            head_sha=pull.head_sha,
        )
        return not any(
            since <= run.created_at < request.written
            for run in runs
            if run.created_at
            and run.head_sha == pull.head_sha
            and run.head_branch == pull.head_ref
            and run.head_repository == pull.head_repository
        )

    def _is_of_force_push(self, pull: PullSides) -> bool:
        """Whether the last force-push made the head what it is."""
        owner, _, name = self._api.context.repository.partition("/")
        variables = {"owner": owner, "name": name, "number": pull.number}
        reply = self._api.query(_LAST_FORCED, variables, ForcePushes)
        return any(one and one.after == pull.head_sha for one in reply.nodes)

    def _is_first_of_branch(self, pull: PullSides) -> bool:
        """Whether no other pull request ever had the branch of the head."""
        owner = (pull.head_repository or "").partition("/")[0]
        head = f"{owner}:{pull.head_ref}"
        pulls = self._api.pages("pulls", PullSides, state="all", head=head)
        return not any(
            one.number != pull.number
            and one.head_ref == pull.head_ref
            and one.head_repository == pull.head_repository
            for one in pulls
        )
