"""The parts of GitHub's replies that the action reads."""

from datetime import datetime
from typing import Annotated

from pydantic import AliasPath, BaseModel, ConfigDict, Field

#: JSON has no dates and no tuples.
Time = Annotated[datetime, Field(strict=False)]
_list = Field(strict=False)


class Reply(BaseModel):
    """Base of all replies; fields that are not declared are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)


class Account(Reply):
    """A user or a bot."""

    login: str
    id: int | None = None


class Comment(Reply):
    """A comment on a pull request; `user` is None when the account is gone."""

    id: int
    node_id: str
    html_url: str
    updated_at: Time
    body: str | None = None
    user: Account | None = None


class CheckRun(Reply):
    """A check run on a commit."""

    id: int
    html_url: str
    external_id: str | None = None


class Label(Reply):
    """A label."""

    name: str


class PullReply(Reply):
    """A pull request at the time of the request."""

    head_sha: str = Field(validation_alias=AliasPath("head", "sha"))
    labels: Annotated[tuple[Label, ...], _list] = ()


class PullSides(Reply):
    """The head and the base of a pull request at the time of the request, also in a list;
    `head_repository` is None when the repository is gone. `base_sha` is the tip of the base
    branch, `merge_sha` GitHub's merge commit, which may be of an older head. `mergeable` is None
    in a list, and while GitHub makes the merge commit."""

    number: int
    state: str
    created_at: Time
    merged_at: Time | None = None
    head_sha: str = Field(validation_alias=AliasPath("head", "sha"))
    head_repository: str | None = Field(
        default=None, validation_alias=AliasPath("head", "repo", "full_name")
    )
    base_sha: str = Field(validation_alias=AliasPath("base", "sha"))
    base_ref: str = Field(validation_alias=AliasPath("base", "ref"))
    merge_sha: str | None = Field(default=None, validation_alias="merge_commit_sha")
    mergeable: bool | None = None

    @property
    def closed(self) -> str:
        """`merged` or `closed`, empty for an open pull request."""
        if self.state == "open":
            return ""
        return "merged" if self.merged_at else "closed"


class Permission(Reply):
    """What an account may do in the repository: `admin`, `write`, `read` or `none`."""

    permission: str


class GitObject(Reply):
    """A Git object by its SHA."""

    sha: str


class Branch(Reply):
    """A branch by its last commit."""

    sha: str = Field(validation_alias=AliasPath("commit", "sha"))


class MergeCommit(Reply):
    """A commit with its parents."""

    parents: Annotated[tuple[GitObject, ...], _list]


class TimelineEvent(Reply):
    """An event in the history of a pull request; a commit has no time that GitHub noted. `label`
    is that of `labeled`, `actor` is None when the account is gone."""

    event: str
    created_at: Time | None = None
    label: str | None = Field(default=None, validation_alias=AliasPath("label", "name"))
    actor: Account | None = None


class CommitComparison(Reply):
    """The difference between two commits."""

    merge_base: str = Field(validation_alias=AliasPath("merge_base_commit", "sha"))


class WorkflowRun(Reply):
    """A run of a workflow; `head_repository` is None when the repository is gone."""

    id: int
    status: str | None = None
    run_attempt: int | None = None
    head_sha: str = ""
    head_branch: str | None = None
    event: str = ""
    conclusion: str | None = None
    created_at: Time | None = None
    actor: Account | None = None
    head_repository: str | None = Field(
        default=None, validation_alias=AliasPath("head_repository", "full_name")
    )


class Artifact(Reply):
    """A file that a run uploaded."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool
    created_at: Time | None = None
    run_id: int | None = Field(default=None, validation_alias=AliasPath("workflow_run", "id"))
