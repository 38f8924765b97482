"""Events of GitHub and the job that each asks for: what runs, the base, and the commit that gets
the check."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import AliasPath, Field, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.model.job import (
    AddedLabel,
    BaseRule,
    Job,
    Payload,
    PullRequest,
    Sha,
)
from agentevals_action.settings import Settings

P = TypeVar("P", bound="Payload")

DEPENDABOT = "dependabot[bot]"
_PULL_REQUEST = ("pull_request", "pull_request_target")
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


class _Labeling(Payload):
    action: str = ""
    label: str = Field(default="", validation_alias=AliasPath("label", "name"))
    sender: str = Field(default="", validation_alias=AliasPath("sender", "login"))


class _MergeGroup(Payload):
    head_sha: Sha = Field(validation_alias=AliasPath("merge_group", "head_sha"))
    base_sha: Sha = Field(validation_alias=AliasPath("merge_group", "base_sha"))


class _OfBranch(Payload):
    default_branch: str | None = Field(
        default=None, validation_alias=AliasPath("repository", "default_branch")
    )

    def is_default(self, ref: str) -> bool:
        """Whether a ref is that of the default branch."""
        return ref == f"refs/heads/{self.default_branch}"


class _Push(_OfBranch):
    before: Sha
    after: Sha


def read_payload(model: type[P], event: str, payload: Mapping[str, Any]) -> P:
    """The fields of the payload of an event. InvalidInput if they are not GitHub's."""
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        names = (".".join(map(str, detail["loc"])) for detail in error.errors(include_input=False))
        fields = ", ".join(f"`{name}`" for name in names)
        raise InvalidInput(
            f"the payload of the event `{event}` has no valid value at {fields}",
            "the event file is not what GitHub sends for this event",
        ) from error


def job_for(event: Event, settings: Settings) -> Job:
    """The job of an event. InvalidInput if the event is refused or its payload is invalid."""
    if event.name in _PULL_REQUEST:
        return _pull_request(event, settings)
    if event.name == "merge_group":
        payload = read_payload(_MergeGroup, event.name, event.payload)
        base = BaseRule("commit", payload.base_sha)
        job = _change_job(event, payload.head_sha, base, settings)
        return replace(job, heads=tuple(dict.fromkeys((payload.head_sha, event.sha))))
    if event.name == "push" and event.payload.get("deleted") is not True:
        return _push(event, settings)
    base = BaseRule("none", reason=f"the event `{event.name}` has no base to compare with")
    is_default = event.name == "schedule"
    if event.name == "workflow_dispatch":
        is_default = read_payload(_OfBranch, event.name, event.payload).is_default(event.ref)
    return Job(
        event=event.name,
        select="all",
        head_sha=event.sha,
        heads=(event.sha,),
        base=BaseRule("stored") if event.name in _BY_TIME_OR_HAND else base,
        fail_on=settings.fail_on or _ELSEWHERE,
        has_check=event.name in _BY_TIME_OR_HAND,
        without_secrets=_without_secrets(event),
        is_default_branch=is_default,
    )


def requested_job(event: str, pull: PullRequest, merge_sha: str, settings: Settings) -> Job:
    """The job that a maintainer requests for the head of a pull request."""
    base = BaseRule("pull", pull.base_sha)
    job = _change_job(Event(event, {}, ""), pull.head_sha, base, settings)
    return replace(job, pull=pull, merge_sha=merge_sha)


def published_job(event: str, pull: PullRequest, settings: Settings) -> Job:
    """The job that reports what an untrusted run claims about the head of a pull request."""
    base = BaseRule("commit", pull.base_sha)
    job = _change_job(Event(event, {}, ""), pull.head_sha, base, settings)
    return replace(job, heads=(), pull=pull)


def refused_job(event: Event) -> Job:
    """The job that only reports why an event is refused or invalid: it runs nothing and writes no
    comment. Its check run is on the commit of a required check, as far as the event has one."""
    commit: str | None = event.sha
    if event.name in _PULL_REQUEST:
        try:
            commit = PullRequest.model_validate(event.payload).head_sha
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
        has_check=commit is not None,
        without_secrets=_without_secrets(event),
    )


def local_job(head_sha: str, revision: str, settings: Settings) -> Job:
    """The job of a review of the working tree, uncommitted changes included, against a revision."""
    base = BaseRule("fork-point", revision)
    job = _change_job(Event("local", {}, ""), head_sha, base, settings)
    return replace(job, has_check=False)


def run_job(head_sha: str, settings: Settings) -> Job:
    """The job of the command `run`: all suites of the working tree, without a base. `head_sha` is
    empty outside of a repository."""
    job = local_job(head_sha, "", settings)
    return replace(
        job,
        select="all",
        base=BaseRule("none", reason="`run` does not compare; use `review --base`"),
        fail_on=settings.fail_on or _ELSEWHERE,
    )


def _change_job(event: Event, head_sha: str, base: BaseRule, settings: Settings) -> Job:
    """The job of a change whose head gets the check."""
    return Job(
        event=event.name,
        select=settings.select,
        head_sha=head_sha,
        heads=(head_sha,),
        base=base,
        fail_on=settings.fail_on or _ON_A_CHANGE,
        without_secrets=_without_secrets(event),
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
    pull = read_payload(PullRequest, event.name, event.payload)
    added = read_payload(_Labeling, event.name, event.payload)
    return replace(
        _change_job(event, pull.head_sha, BaseRule("pull", pull.base_sha), settings),
        # With pull_request_target, GITHUB_SHA is the base branch: as the head, it would be compared
        # with itself.
        heads=(pull.head_sha,) if unsafe else (event.sha, pull.head_sha),
        pull=pull,
        label=AddedLabel(added.label, added.sender) if added.action == "labeled" else None,
        without_secrets=_without_secrets(event, is_fork=not unsafe and pull.is_fork),
    )


def _push(event: Event, settings: Settings) -> Job:
    payload = read_payload(_Push, event.name, event.payload)
    # `after` of an annotated tag is the tag object, which cannot be checked out or have a check.
    after = event.sha if event.ref.startswith("refs/tags/") else payload.after
    is_new = not payload.before.strip("0")
    base = BaseRule("commit", payload.before)
    if is_new:
        base = BaseRule("none", reason="the branch is new: there is nothing to compare with")
    return replace(
        _change_job(event, after, base, settings),
        select="all" if is_new else settings.select,
        heads=tuple(dict.fromkeys((after, event.sha))),
        fail_on=settings.fail_on or _ELSEWHERE,
        is_default_branch=payload.is_default(event.ref),
    )


def _without_secrets(event: Event, is_fork: bool = False) -> str:
    if event.name not in _WITH_SECRETS and event.actor == DEPENDABOT:
        return "Dependabot started the run, which gets no secrets of the repository"
    if is_fork:
        return "the pull request comes from a fork, which gets no secrets of the repository"
    return ""
