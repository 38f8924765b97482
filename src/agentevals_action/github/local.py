"""A review without a code host: the comment is printed, and nothing is sent."""

from collections.abc import Sequence
from typing import IO

from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.model.report import CheckReport, CommentReport


class LocalHost:
    """A `Host` for a review of a working tree; git lists the changed files."""

    notices: Sequence[str] = ()

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """None: the caller asks git."""
        return None

    def merge_base(self) -> str | None:
        """None: the caller asks git."""
        return None

    def acceptance(self, label: str) -> Acceptance | None:  # noqa: ARG002  # there are no labels
        """None: there are no labels."""
        return None

    def start_check(self) -> str | None:
        """None: there is no check run."""
        return None

    def finish_check(self, report: CheckReport) -> str | None:  # noqa: ARG002  # no check run
        """None: there is no check run."""
        return None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Prints the comment, wanted or not."""
        print(report.body, file=self._stream, flush=True)
        return None
