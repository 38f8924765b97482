"""A code host as a review sees it: it lists changed files, and takes a comment and a check run."""

from collections.abc import Sequence
from typing import Protocol

from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.model.report import CheckReport, CommentReport


class Host(Protocol):
    """A code host. A refusal never raises: it is a sentence in `notices`."""

    @property
    def notices(self) -> Sequence[str]:
        """What could not be read or written, and what to grant: one sentence each."""
        ...

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """The changed files; None if the caller must ask git."""
        ...

    def merge_base(self) -> str | None:
        """SHA of the merge base of the base branch and the head, None if unknown."""
        ...

    def acceptance(self, label: str) -> Acceptance | None:
        """Who accepts the regressions of this head by adding the label; None if nobody does."""
        ...

    def start_check(self) -> str | None:
        """Completes the check runs of killed runs and opens this run's; returns its URL."""
        ...

    def finish_check(self, report: CheckReport) -> str | None:
        """Completes the check run; returns its URL."""
        ...

    def publish_comment(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; returns its URL."""
        ...
