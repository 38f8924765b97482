"""What a report hands to a code host: annotations, a finished check run, a comment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentevals_action.model.comparison import Outcome


@dataclass(frozen=True)
class Annotation:
    """A remark on a line of a file: plain text, `path` relative to the repository, `line` from
    1."""

    path: str
    line: int
    level: Literal["failure", "warning"]
    title: str
    message: str


@dataclass(frozen=True)
class CheckReport:
    """The content of a finished check run.

    `conclusion` is GitHub's word: `success`, `failure`, `neutral` or `cancelled`. `annotations` are
    already cut to the limit; `summary` states how many are left out. `details_url` is the page
    behind the check run, None for the page of the run."""

    conclusion: str
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()
    details_url: str | None = None


@dataclass(frozen=True)
class CommentReport:
    """The comment on the pull request, without the host's marker.

    If not `wanted`, no comment is created; an existing one is still updated, unless both it and
    this report say `passed`."""

    body: str
    outcome: Outcome
    wanted: bool


@dataclass(frozen=True)
class Published:
    """Where the reports of a review are; a URL is None where the report could not be written."""

    report_url: str | None = None
    comment_url: str | None = None
    check_url: str | None = None
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()
