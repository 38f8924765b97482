"""No code host: the comment is printed, nothing is sent anywhere, and git alone knows the
history."""

from collections.abc import Sequence
from typing import IO

from agentevals_action.github.base import CheckReport, CommentReport
from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.past import Lineage, lineage
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.system.git import GitRepository


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

    def acceptance(self, label: str) -> Acceptance | None:  # noqa: ARG002
        """None: there are no labels."""
        return None

    def start_check(self) -> str | None:
        """None: there is no check."""
        return None

    def finish_check(self, report: CheckReport) -> str | None:  # noqa: ARG002
        """None: there is no check."""
        return None

    def publish_comment(self, report: CommentReport) -> str | None:
        """Prints the comment as it would be posted, wanted or not."""
        print(report.body, file=self._stream, flush=True)
        return None


class GitPast:
    """A `hosts.base.Past` out of the clone itself, as far as its history goes."""

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository

    def lineage(self, commit: str) -> Lineage:
        """The ancestors that are here."""
        cut = "the clone does not hold the whole history" if self._repository.is_shallow() else ""
        return lineage(commit, self._repository.ancestry(commit), cut)

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed between two commits that are both here."""
        if not self._repository.has(ancestor):
            return f"the commit {ancestor[:12]} is not in the clone"
        return self._repository.changed_files(ancestor, commit)
