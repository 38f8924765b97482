"""A job: what an event asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, BaseModel, ConfigDict, Field

Sha = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]

#: The beginning of a comment that requests a run.
COMMAND = "/agentevals"
#: Digits of a commit in a command that is to be copied.
_SHOWN = 12


class Payload(BaseModel):
    """The fields that are read of an event's payload; other fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True, validate_by_name=True)


class PullRequest(Payload):
    """A pull request at the time of an event or a reply; `base_sha` is the tip of its base branch,
    `author` a login."""

    number: int = Field(gt=0, validation_alias=AliasPath("pull_request", "number"))
    author: str = Field(default="", validation_alias=AliasPath("pull_request", "user", "login"))
    head_sha: Sha = Field(validation_alias=AliasPath("pull_request", "head", "sha"))
    head_ref: str = Field(default="", validation_alias=AliasPath("pull_request", "head", "ref"))
    base_ref: str = Field(min_length=1, validation_alias=AliasPath("pull_request", "base", "ref"))
    base_sha: Sha = Field(validation_alias=AliasPath("pull_request", "base", "sha"))
    head_repository: str | None = Field(
        default=None, validation_alias=AliasPath("pull_request", "head", "repo", "full_name")
    )
    base_repository: str | None = Field(
        default=None, validation_alias=AliasPath("pull_request", "base", "repo", "full_name")
    )

    @property
    def is_fork(self) -> bool:
        """Whether the head's repository is not the base's, or is gone; the flag `fork` of a
        repository does not state this."""
        return self.head_repository is None or self.head_repository != self.base_repository

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Self:
        """The pull request in a reply of GitHub's API. ValidationError."""
        return cls.model_validate({"pull_request": reply})


@dataclass(frozen=True)
class AddedLabel:
    """A label whose addition to the pull request is the event, and the login of who added it."""

    name: str
    by: str


@dataclass(frozen=True)
class BaseRule:
    """How the base is found.

    `pull`: the first parent of a merge commit, else the merge base with `revision` (the tip of the
    base branch). `commit`: `revision` itself. `fork-point`: the merge base of HEAD and `revision`.
    `stored`: no commit, but the stored results of the same questions. `none`: there is nothing to
    compare with, for this `reason`."""

    kind: Literal["pull", "commit", "fork-point", "stored", "none"]
    revision: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """What an event asks for.

    `head_sha` is the commit of the reports, and of the check run if the job `has_check`; `heads`
    are the commits that the workspace's HEAD may be, apart from a merge commit of the pull request.
    `without_secrets` is the reason why the job has no secrets, else empty. `is_default_branch`
    marks a run of the default branch, as a schedule is: later runs are compared with its results.
    `merge_sha` is GitHub's merge commit of a run that a maintainer requests, which the workspace
    checks out; None for other runs."""

    event: str
    select: Literal["changed", "all"]
    head_sha: str
    heads: tuple[str, ...]
    base: BaseRule
    fail_on: frozenset[str]
    has_check: bool = True
    pull: PullRequest | None = None
    label: AddedLabel | None = None
    without_secrets: str = ""
    is_default_branch: bool = False
    merge_sha: str | None = None

    @property
    def requested_pull(self) -> PullRequest | None:
        """The pull request of a run that a maintainer requests, None for other runs."""
        return self.pull if self.merge_sha else None


def run_command(commit: str) -> str:
    """The comment that requests a run of a commit."""
    return f"{COMMAND} run {commit[:_SHOWN]}"
