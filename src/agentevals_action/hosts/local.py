"""No code host: the comment is printed, nothing is sent anywhere."""

from collections.abc import Sequence
from typing import IO

from agentevals_action.hosts.base import CheckReport, CommentReport
from agentevals_action.model.comparison import ChangedFile


class LocalHost:
    """A `hosts.base.Host` for a review on a working tree; git says what changed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    @property
    def notices(self) -> Sequence[str]:
        """Nothing is refused here."""
        return ()

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """None: git is asked."""
        return None

    def merge_base(self) -> str | None:
        """None: git is asked."""
        return None

    def start_check(self) -> str | None:
        """None: there is no check."""
        return None

    def finish_check(self, report: CheckReport) -> str | None:  # noqa: ARG002 - the protocol's; the exit code is the check here
        """None: there is no check."""
        return None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Prints the comment as it would be posted, wanted or not."""
        print(report.body, file=self._stream, flush=True)
        return None
