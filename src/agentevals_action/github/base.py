"""The interface of a code host: it lists changed files, and takes a report page, a comment and a
check run."""

from collections.abc import Sequence

from agentevals_action.model.quarantine import Acceptance
from agentevals_action.reports.publication import CheckReport, CommentReport


class Host:
    """A code host; this one knows and writes nothing.

    A refusal never raises: it is a sentence in `notices`."""

    @property
    def notices(self) -> Sequence[str]:
        """What could not be read or written, and what to grant: one sentence each."""
        return ()

    def merge_base(self) -> str | None:
        """SHA of the merge base of the base branch and the head, None if unknown."""
        return None

    def acceptance(self, label: str) -> Acceptance | None:
        """Who accepts the regressions of this head by adding the label, or why the label accepts
        nothing; None without the label."""
        return None

    async def upload_report(self, page: bytes) -> str | None:  # the interface
        """Uploads the report page (HTML); returns the URL where a browser opens it, None if it
        could not be uploaded."""
        return None

    def write_check(self, report: CheckReport) -> str | None:
        """Writes the check run; returns its URL, None if it could not be written."""
        return None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; returns its URL, None if it is not as
        reported."""
        return None
