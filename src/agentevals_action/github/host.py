"""GitHub as a code host: the changed files, the check run, the comment; a refusal is a notice."""

import threading
import time
from collections.abc import Callable, Sequence

from agentevals_action.errors import HostError
from agentevals_action.github.api import ApiError, GitHubApi, api_errors
from agentevals_action.github.artifacts import ArtifactService
from agentevals_action.github.base import Host
from agentevals_action.github.check_run import CheckRunWriter
from agentevals_action.github.comment import CommentWriter, Marker
from agentevals_action.github.labels import read_acceptance
from agentevals_action.github.report_artifact import report_name
from agentevals_action.github.retry import LAST_SECONDS
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.job import Job
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.reports.publication import CheckReport, CommentReport
from agentevals_action.settings import Settings


class GitHubHost(Host):
    """GitHub over its API, for one job of a run. `sleep` takes seconds; the waiting time of a run
    is limited. Without `artifacts`, the report page is not uploaded."""

    def __init__(
        self,
        runner: RunnerEnvironment,
        settings: Settings,
        job: Job,
        sleep: Callable[[float], None] = time.sleep,
        artifacts: ArtifactService | None = None,
    ) -> None:
        self._runner, self._settings, self._job = runner, settings, job
        self._api = GitHubApi(
            runner, settings.github_token, sleep, without_secrets=job.without_secrets
        )
        self._artifacts = artifacts
        self._writing = threading.Lock()
        self._check = self._check_writer(self._api)
        self._comments: CommentWriter | None = None
        if job.pull:
            marker = Marker(
                id=settings.comment_id,
                run=runner.run_id,
                attempt=runner.run_attempt,
                head=job.head_sha,
                outcome=Outcome.INCONCLUSIVE,
            )
            self._comments = CommentWriter(self._api, job.pull.number, marker)

    def _check_writer(self, api: GitHubApi) -> CheckRunWriter | None:
        is_wanted = self._settings.check_run and self._job.has_check and not self._settings.shard
        return CheckRunWriter(api, self._runner, self._settings, self._job) if is_wanted else None

    @property
    def notices(self) -> Sequence[str]:
        """What failed, and what to grant: one sentence each."""
        return tuple(self._api.notices)

    def merge_base(self) -> str | None:
        """SHA of the merge base, from a comparison of the base branch with the head."""
        pull = self._job.pull
        if pull is None:
            return None
        try:
            with api_errors():
                compared = self._api.repository.compare(pull.base_sha, pull.head_sha)
                return compared.merge_base_commit.sha
        except ApiError:  # the caller reports what follows from it
            return None

    def acceptance(self, label: str) -> Acceptance | None:
        """Who accepts the regressions by the label; None outside a pull request."""
        comments = self._comments
        return read_acceptance(self._api, self._job, comments, label) if comments else None

    async def upload_report(self, page: bytes) -> str | None:
        """Uploads the page as an artifact of the run; returns its URL, None after a failure."""
        if self._artifacts is None:
            return None
        runner = self._runner
        name = report_name(self._settings.comment_id, runner.run_id, runner.run_attempt)
        try:
            artifact = await self._artifacts.upload(name, page, "text/html")
        except HostError as error:
            advice = "; `upload-report: false` turns the upload off"
            self._api.notice(f"The report page could not be uploaded: {error.sentence}{advice}.")
            return None
        run = f"{runner.server_url}/{runner.repository}/actions/runs/{runner.run_id}"
        return f"{run}/artifacts/{artifact}"

    def write_check(self, report: CheckReport) -> str | None:
        """Writes the check run; returns its URL, None if it has none or it failed."""
        with self._writing:
            return self._check.write(report) if self._check else None

    def cancel_check(self, report: CheckReport, seconds: float = LAST_SECONDS) -> None:
        """Writes the check run of a run that a signal ends, unless it is written: one attempt of
        at most so many seconds. A failure leaves a required check missing, which blocks."""
        api = GitHubApi(self._runner, self._settings.github_token, is_last=True)
        last, check = self._check_writer(api), self._check
        if last is None or check is None:
            return

        def write() -> None:
            with self._writing:  # the signal may have come while it was being written
                if not check.is_written:
                    last.write(report)

        # A daemon: a name server or a reply that takes longer does not delay the end of the run.
        attempt = threading.Thread(target=write, daemon=True)
        attempt.start()
        attempt.join(seconds)

    def publish_comment(self, report: CommentReport) -> str | None:
        """Publishes the comment; returns its URL, None outside a pull request."""
        return self._comments.publish(report) if self._comments else None
