"""Pure: which job an event asks for (action.md, "Events"): what runs, what it is compared with,
where it is told."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentevals_action.errors import InvalidInput

Select = Literal["changed", "all"]

DEPENDABOT = "dependabot[bot]"
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ON_A_CHANGE = frozenset({"gates", "regressions"})
_ELSEWHERE = frozenset({"failures"})
#: Events that Dependabot causes and that still see the secrets.
_WITH_SECRETS = ("pull_request_target", "schedule", "workflow_dispatch")


@dataclass(frozen=True)
class Event:
    """What happened: the event's name and payload, and of the runner's facts the commit, the ref
    and who caused it."""

    name: str
    payload: Mapping[str, Any]
    sha: str
    ref: str = ""
    actor: str = ""


@dataclass(frozen=True)
class Wishes:
    """What the workflow says about the job; `fail_on` None means the event's default."""

    select: str = "changed"
    fail_on: frozenset[str] | None = None
    allow_unsafe_pull_request_target: bool = False


@dataclass(frozen=True)
class Pull:
    """The pull request: `base_sha` is the tip of its base branch when the event was sent."""

    number: int
    head_sha: str
    base_ref: str
    base_sha: str


@dataclass(frozen=True)
class BaseRule:
    """How the base is found.

    `pull`: first parent of a merge commit, else the merge base with `revision` (the base branch's
    tip). `commit`: `revision` itself. `fork-point`: the merge base of HEAD and `revision`. `none`:
    nothing to compare with, `reason` says why."""

    kind: Literal["pull", "commit", "fork-point", "none"]
    revision: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """What an event asks for.

    `head_sha` is the commit that reports speak of, `heads` those that the workspace's HEAD may be
    (beside a merge commit of the pull request), `check_sha` the commit that gets the check, None
    for no check. `without_secrets` says why the job has no secrets, empty when it has them.
    `is_default_branch` says that it is a push to the default branch, or a schedule, which runs
    there: what it comes to is what later pull requests start from."""

    event: str
    select: Select
    head_sha: str
    heads: tuple[str, ...]
    base: BaseRule
    fail_on: frozenset[str]
    check_sha: str | None = None
    pull: Pull | None = None
    without_secrets: str = ""
    is_default_branch: bool = False


def job_for(event: Event, wishes: Wishes) -> Job:
    """The job of an event; InvalidInput when the event is refused or its payload is not what GitHub
    sends."""
    if event.name in ("pull_request", "pull_request_target"):
        return _pull_request(event, wishes)
    if event.name == "merge_group":
        return _merge_group(event, wishes)
    if event.name == "push" and event.payload.get("deleted") is not True:
        return _push(event, wishes)
    known = event.name in ("schedule", "workflow_dispatch")
    return Job(
        event=event.name,
        select="all",
        head_sha=event.sha,
        heads=(event.sha,),
        base=BaseRule("none", reason=f"the event `{event.name}` has no base to compare with"),
        fail_on=wishes.fail_on or _ELSEWHERE,
        check_sha=event.sha if known else None,
        without_secrets=_without_secrets(event),
        is_default_branch=event.name == "schedule",
    )


def local_job(head_sha: str, revision: str, wishes: Wishes) -> Job:
    """The job of a review of the working tree, uncommitted changes included, against a revision."""
    return Job(
        event="local",
        select=_select(wishes),
        head_sha=head_sha,
        heads=(head_sha,),
        base=BaseRule("fork-point", revision),
        fail_on=wishes.fail_on or _ON_A_CHANGE,
    )


def _pull_request(event: Event, wishes: Wishes) -> Job:
    unsafe = event.name == "pull_request_target"
    if unsafe and not wishes.allow_unsafe_pull_request_target:
        raise InvalidInput(
            "the event `pull_request_target` is refused: it runs a stranger's suites and judges with the repository's secrets in reach",
            "use `on: pull_request`; whoever knows what that means sets `allow-unsafe-pull-request-target: true`",
        )
    if event.payload.get("action") == "closed":
        # A run on a closed pull request would leave a status on its head that stands when it is
        # opened again.
        raise InvalidInput(
            "the pull request is closed: there is nothing to gate",
            "take `closed` out of the workflow's `types`",
        )
    pull = Pull(
        number=_number(event.payload, "pull_request", "number"),
        head_sha=_sha(event.payload, "pull_request", "head", "sha"),
        base_ref=_text(event.payload, "pull_request", "base", "ref"),
        base_sha=_sha(event.payload, "pull_request", "base", "sha"),
    )
    return Job(
        event=event.name,
        select=_select(wishes),
        head_sha=pull.head_sha,
        # With pull_request_target, GITHUB_SHA is the base branch: taken for the head it would be
        # compared with itself.
        heads=(pull.head_sha,) if unsafe else (event.sha, pull.head_sha),
        base=BaseRule("pull", pull.base_sha),
        fail_on=wishes.fail_on or _ON_A_CHANGE,
        check_sha=pull.head_sha,
        pull=pull,
        without_secrets=_without_secrets(event),
    )


def _merge_group(event: Event, wishes: Wishes) -> Job:
    head = _sha(event.payload, "merge_group", "head_sha")
    return Job(
        event=event.name,
        select=_select(wishes),
        head_sha=head,
        heads=tuple(dict.fromkeys((head, event.sha))),
        base=BaseRule("commit", _sha(event.payload, "merge_group", "base_sha")),
        fail_on=wishes.fail_on or _ON_A_CHANGE,
        check_sha=head,
        without_secrets=_without_secrets(event),
    )


def _push(event: Event, wishes: Wishes) -> Job:
    before = _sha(event.payload, "before")
    # Of an annotated tag, `after` is the tag's own object, which can neither be checked out nor
    # carry a check.
    after = event.sha if event.ref.startswith("refs/tags/") else _sha(event.payload, "after")
    new = not before.strip("0")
    return Job(
        event=event.name,
        select="all" if new else _select(wishes),
        head_sha=after,
        heads=tuple(dict.fromkeys((after, event.sha))),
        base=BaseRule("none", reason="the branch is new: there is nothing to compare with")
        if new
        else BaseRule("commit", before),
        fail_on=wishes.fail_on or _ELSEWHERE,
        check_sha=after,
        without_secrets=_without_secrets(event),
        is_default_branch=event.ref == f"refs/heads/{_default_branch(event.payload)}",
    )


def _select(wishes: Wishes) -> Select:
    return "all" if wishes.select == "all" else "changed"


def _default_branch(payload: Mapping[str, Any]) -> object:
    repository = payload.get("repository")
    return repository.get("default_branch") if isinstance(repository, Mapping) else None


def _without_secrets(event: Event) -> str:
    if event.name not in _WITH_SECRETS and event.actor == DEPENDABOT:
        return "the run was started by Dependabot, which gets no secrets of the repository"
    if event.name == "pull_request" and _is_fork(event.payload):
        return "the pull request comes from a fork, which gets no secrets of the repository"
    return ""


def _is_fork(payload: Mapping[str, Any]) -> bool:
    """A head whose repository is another one than the base's, or gone; the flag `fork` says only
    that a repository is one."""
    pull = payload.get("pull_request")
    sides = [pull.get(side) if isinstance(pull, Mapping) else None for side in ("head", "base")]
    names = [_full_name(side.get("repo")) if isinstance(side, Mapping) else None for side in sides]
    return names[0] is None or names[0] != names[1]


def _full_name(repository: object) -> object:
    return repository.get("full_name") if isinstance(repository, Mapping) else None


def _value(payload: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = payload
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _sha(payload: Mapping[str, Any], *keys: str) -> str:
    value = _value(payload, keys)
    if isinstance(value, str) and _SHA.fullmatch(value):
        return value
    raise _misshapen("commit", keys)


def _text(payload: Mapping[str, Any], *keys: str) -> str:
    value = _value(payload, keys)
    if isinstance(value, str) and value:
        return value
    raise _misshapen("text", keys)


def _number(payload: Mapping[str, Any], *keys: str) -> int:
    value = _value(payload, keys)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise _misshapen("number", keys)


def _misshapen(what: str, keys: tuple[str, ...]) -> InvalidInput:
    return InvalidInput(
        f"the event's payload has no {what} at `{'.'.join(keys)}`",
        "the event file is not what GitHub sends for this event",
    )
