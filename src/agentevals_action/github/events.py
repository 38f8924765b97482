"""Events of GitHub and the job that each asks for: what runs, the base, and
the commit that gets the check."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.settings import Settings

Sha = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
P = TypeVar("P", bound="_Payload")

DEPENDABOT = "dependabot[bot]"
_ON_A_CHANGE = frozenset({"gates", "regressions"})
_ELSEWHERE = frozenset({"failures"})
_BY_TIME_OR_HAND = ("schedule", "workflow_dispatch")
#: Events that have the repository's secrets even if Dependabot causes them.
_WITH_SECRETS = ("pull_request_target", *_BY_TIME_OR_HAND)


@dataclass(frozen=True)
class Event:
    """An event: its name and payload, and the runner's commit, ref and actor."""

    name: str
    payload: Mapping[str, Any]
    sha: str
    ref: str = ""
    actor: str = ""


@dataclass(frozen=True)
class Pull:
    """The pull request; `base_sha` is the tip of its base branch at the time of the event.
    `labeled` is the label whose addition is the event, empty for other events, `sender` the login
    of who caused the event."""

    number: int
    head_sha: str
    base_ref: str
    base_sha: str
    labeled: str = ""
    sender: str = ""


@dataclass(frozen=True)
class BaseRule:
    """How the base is found.

    `pull`: the first parent of a merge commit, else the merge base with `revision` (the tip of the
    base branch). `commit`: `revision` itself. `fork-point`: the merge base of HEAD and `revision`.
    `none`: there is nothing to compare with, for this `reason`."""

    kind: Literal["pull", "commit", "fork-point", "none"]
    revision: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """What an event asks for.

    `head_sha` is the commit of the reports; `heads` are the commits that the workspace's HEAD may
    be, apart from a merge commit of the pull request; `check_sha` is the commit of the check run,
    None for none. `without_secrets` is the reason why the job has no secrets, else empty.
    `is_default_branch` marks a push to the default branch, or a schedule, which runs there: later
    pull requests are compared with its results. `merge_sha` is GitHub's merge commit of a run
    that a maintainer requests, on which the workspace is put; None for other runs."""

    event: str
    select: Literal["changed", "all"]
    head_sha: str
    heads: tuple[str, ...]
    base: BaseRule
    fail_on: frozenset[str]
    check_sha: str | None = None
    pull: Pull | None = None
    without_secrets: str = ""
    is_default_branch: bool = False
    merge_sha: str | None = None


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)


class _PullRequest(_Payload):
    number: int = Field(gt=0, validation_alias=AliasPath("pull_request", "number"))
    head_sha: Sha = Field(validation_alias=AliasPath("pull_request", "head", "sha"))
    base_sha: Sha = Field(validation_alias=AliasPath("pull_request", "base", "sha"))
    base_ref: str = Field(min_length=1, validation_alias=AliasPath("pull_request", "base", "ref"))
    head_repository: str | None = Field(
        default=None, validation_alias=AliasPath("pull_request", "head", "repo", "full_name")
    )
    base_repository: str | None = Field(
        default=None, validation_alias=AliasPath("pull_request", "base", "repo", "full_name")
    )

    action: str = ""
    label: str = Field(default="", validation_alias=AliasPath("label", "name"))
    sender: str = Field(default="", validation_alias=AliasPath("sender", "login"))

    def is_fork(self) -> bool:
        """Whether the head's repository is another one, or gone; the flag `fork` of a repository
        does not state this."""
        return self.head_repository is None or self.head_repository != self.base_repository


class _PullRequestHead(_Payload):
    sha: Sha = Field(validation_alias=AliasPath("pull_request", "head", "sha"))


class _MergeGroup(_Payload):
    head_sha: Sha = Field(validation_alias=AliasPath("merge_group", "head_sha"))
    base_sha: Sha = Field(validation_alias=AliasPath("merge_group", "base_sha"))


class _Push(_Payload):
    before: Sha
    after: Sha
    default_branch: str | None = Field(
        default=None, validation_alias=AliasPath("repository", "default_branch")
    )


def job_for(event: Event, settings: Settings) -> Job:
    """The job of an event. InvalidInput if the event is refused or its payload is invalid."""
    if event.name in ("pull_request", "pull_request_target"):
        return _pull_request(event, settings)
    if event.name == "merge_group":
        return _merge_group(event, settings)
    if event.name == "push" and event.payload.get("deleted") is not True:
        return _push(event, settings)
    known = event.name in _BY_TIME_OR_HAND
    return Job(
        event=event.name,
        select="all",
        head_sha=event.sha,
        heads=(event.sha,),
        base=BaseRule("none", reason=f"the event `{event.name}` has no base to compare with"),
        fail_on=settings.fail_on or _ELSEWHERE,
        check_sha=event.sha if known else None,
        without_secrets=_without_secrets(event),
        is_default_branch=event.name == "schedule",
    )


def requested_job(event: Event, pull: Pull, merge_sha: str, settings: Settings) -> Job:
    """The job that a maintainer requests for the head of a pull request."""
    job = _change_job(event.name, pull.head_sha, BaseRule("pull", pull.base_sha), settings)
    return replace(job, pull=pull, merge_sha=merge_sha)


def published_job(event: Event, pull: Pull, settings: Settings) -> Job:
    """The job that reports what an untrusted run claims about the head of a pull request."""
    job = _change_job(event.name, pull.head_sha, BaseRule("commit", pull.base_sha), settings)
    return replace(job, heads=(), pull=pull)


def refused_job(event: Event) -> Job:
    """The job that only reports why an event is refused or invalid: it runs nothing and writes no
    comment. Its check run is on the commit of a required check, as far as the event has one."""
    commit: str | None = event.sha
    if event.name in ("pull_request", "pull_request_target"):
        try:
            commit = _PullRequestHead.model_validate(event.payload).sha
        except ValidationError:
            commit = None
    elif event.name not in ("merge_group", "push", *_BY_TIME_OR_HAND):
        commit = None
    return Job(
        event=event.name,
        select="changed",
        head_sha=commit or event.sha,
        heads=(),
        base=BaseRule("none"),
        fail_on=frozenset(),
        check_sha=commit,
        without_secrets=_without_secrets(event),
    )


def local_job(head_sha: str, revision: str, settings: Settings) -> Job:
    """The job of a review of the working tree, uncommitted changes included, against a revision."""
    job = _change_job("local", head_sha, BaseRule("fork-point", revision), settings)
    return replace(job, check_sha=None)


def _change_job(event: str, head_sha: str, base: BaseRule, settings: Settings) -> Job:
    """The job of a change whose head gets the check."""
    return Job(
        event=event,
        select=settings.select,
        head_sha=head_sha,
        heads=(head_sha,),
        base=base,
        fail_on=settings.fail_on or _ON_A_CHANGE,
        check_sha=head_sha,
    )


def _pull_request(event: Event, settings: Settings) -> Job:
    unsafe = event.name == "pull_request_target"
    if unsafe and not settings.allow_unsafe_pull_request_target:
        raise InvalidInput(
            "the event `pull_request_target` is refused: it runs a stranger's suites and judges "
            "with access to the repository's secrets",
            "use `on: pull_request`; if you accept the risk, set "
            "`allow-unsafe-pull-request-target: true`",
        )
    if event.payload.get("action") == "closed":
        # A run on a closed pull request would leave a status that is still there when the pull
        # request is opened again.
        raise InvalidInput(
            "the pull request is closed: there is nothing to gate",
            "remove `closed` from the workflow's `types`",
        )
    payload = _read(_PullRequest, event)
    base = BaseRule("pull", payload.base_sha)
    return replace(
        _change_job(event.name, payload.head_sha, base, settings),
        # With pull_request_target, GITHUB_SHA is the base branch: as the head, it would be compared
        # with itself.
        heads=(payload.head_sha,) if unsafe else (event.sha, payload.head_sha),
        pull=Pull(
            payload.number,
            payload.head_sha,
            payload.base_ref,
            payload.base_sha,
            payload.label if payload.action == "labeled" else "",
            payload.sender,
        ),
        without_secrets=_without_secrets(event, is_fork=not unsafe and payload.is_fork()),
    )


def _merge_group(event: Event, settings: Settings) -> Job:
    payload = _read(_MergeGroup, event)
    base = BaseRule("commit", payload.base_sha)
    return replace(
        _change_job(event.name, payload.head_sha, base, settings),
        heads=tuple(dict.fromkeys((payload.head_sha, event.sha))),
        without_secrets=_without_secrets(event),
    )


def _push(event: Event, settings: Settings) -> Job:
    payload = _read(_Push, event)
    # `after` of an annotated tag is the tag object, which cannot be checked out or have a check.
    after = event.sha if event.ref.startswith("refs/tags/") else payload.after
    is_new = not payload.before.strip("0")
    base = BaseRule("commit", payload.before)
    if is_new:
        base = BaseRule("none", reason="the branch is new: there is nothing to compare with")
    return Job(
        event=event.name,
        select="all" if is_new else settings.select,
        head_sha=after,
        heads=tuple(dict.fromkeys((after, event.sha))),
        base=base,
        fail_on=settings.fail_on or _ELSEWHERE,
        check_sha=after,
        without_secrets=_without_secrets(event),
        is_default_branch=event.ref == f"refs/heads/{payload.default_branch}",
    )


def _without_secrets(event: Event, is_fork: bool = False) -> str:
    if event.name not in _WITH_SECRETS and event.actor == DEPENDABOT:
        return "Dependabot started the run, which gets no secrets of the repository"
    if is_fork:
        return "the pull request comes from a fork, which gets no secrets of the repository"
    return ""


def _read(model: type[P], event: Event) -> P:
    try:
        return model.model_validate(event.payload)
    except ValidationError as error:
        fields = ", ".join(
            f"`{'.'.join(map(str, one['loc']))}`" for one in error.errors(include_input=False)
        )
        raise InvalidInput(
            f"the payload of the event `{event.name}` has no valid value at {fields}",
            "the event file is not what GitHub sends for this event",
        ) from error
