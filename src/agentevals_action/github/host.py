"""GitHub as a code host: the changed files, the check run, the comment; a refusal is a notice."""

import threading
import time
from collections.abc import Callable, Sequence

from agentevals_action.errors import HostError
from agentevals_action.github.artifacts import ArtifactService
from agentevals_action.github.base import Host
from agentevals_action.github.check_run import CheckRunWriter
from agentevals_action.github.client.api import ApiError, GitHubApi, RunContext
from agentevals_action.github.client.replies import CommitComparison
from agentevals_action.github.client.retry import LAST_SECONDS
from agentevals_action.github.comment import CommentWriter
from agentevals_action.github.labels import AcceptLabel
from agentevals_action.github.report_artifact import report_name
from agentevals_action.github.run_artifacts import ShardArtifacts, read_shard_artifacts
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.model.report import CheckReport, CommentReport


class GitHubHost(Host):
    """GitHub over its API. `sleep` takes seconds; the waiting time of a run is limited. Without
    `artifacts`, the report page is not uploaded."""

    def __init__(
        self,
        context: RunContext,
        sleep: Callable[[float], None] = time.sleep,
        artifacts: ArtifactService | None = None,
    ) -> None:
        self._api = GitHubApi(context, sleep)
        self._context = context
        self._artifacts = artifacts
        self._writing = threading.Lock()
        self._check = CheckRunWriter(self._api, context.check_name) if context.check_name else None
        self._comments = CommentWriter(self._api, context.pull) if context.pull else None

    def shard_artifacts(self) -> ShardArtifacts:
        """What the jobs of this run uploaded. HostError, InvalidInput."""
        return read_shard_artifacts(self._api)

    @property
    def notices(self) -> Sequence[str]:
        """What failed, and what to grant: one sentence each."""
        return tuple(self._api.notices)

    def merge_base(self) -> str | None:
        """SHA of the merge base, from a comparison of the base branch with the head."""
        if self._context.base is None:
            return None
        path = f"compare/{self._context.base}...{self._context.head_sha}"
        try:
            return self._api.get(path, CommitComparison, per_page=1).merge_base
        except ApiError:  # the caller reports what follows from it
            return None

    def acceptance(self, label: str) -> Acceptance | None:
        """As of the base class; None outside a pull request."""
        return AcceptLabel(self._api, self._comments).acceptance(label) if self._comments else None

    async def upload_report(self, page: bytes) -> str | None:
        """As of the base class, as an artifact of the run."""
        if self._artifacts is None:
            return None
        context = self._context
        name = report_name(context.comment_id, context.run_id, context.run_attempt)
        try:
            artifact = await self._artifacts.upload(name, page, "text/html")
        except HostError as error:
            advice = "; `upload-report: false` turns the upload off"
            self._api.notice(f"The report page could not be uploaded: {error.sentence}{advice}.")
            return None
        run = f"{context.server_url}/{context.repository}/actions/runs/{context.run_id}"
        return f"{run}/artifacts/{artifact}"

    def write_check(self, report: CheckReport) -> str | None:
        """As of the base class; None also if the run has no check run."""
        with self._writing:
            return self._check.write(report) if self._check else None

    def cancel_check(self, report: CheckReport) -> None:
        """Writes the check run of a run that a signal ends, unless it is written: one attempt of
        at most `LAST_SECONDS`. A failure leaves a required check missing, which blocks."""
        name, check = self._context.check_name, self._check
        if name is None or check is None:
            return
        writer = CheckRunWriter(GitHubApi(self._context, is_last=True), name)

        def write() -> None:
            with self._writing:  # the signal may have come while it was being written
                if not check.is_written:
                    writer.write(report)

        # A daemon: a name server or a reply that takes longer does not delay the end of the run.
        attempt = threading.Thread(target=write, daemon=True)
        attempt.start()
        attempt.join(LAST_SECONDS)

    def publish_comment(self, report: CommentReport) -> str | None:
        """Publishes the comment; returns its URL, None outside a pull request."""
        return self._comments.publish(report) if self._comments else None
