"""`action`: gates the event that the runner's environment describes; the container's entry
point."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action import loading
from agentevals_action.errors import (
    AgentEvalsError,
    ExitCode,
    Interrupted,
    InvalidInput,
    OutputError,
)
from agentevals_action.github import events, job_log, workflow_commands
from agentevals_action.github.api import RunContext
from agentevals_action.github.events import Job
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.comparison import Review
from agentevals_action.model.report import CheckReport, Published
from agentevals_action.reports.view.links import Links
from agentevals_action.review import base_tree, pipeline, publish
from agentevals_action.review.workspace import Workspace
from agentevals_action.settings import Runner, Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.redaction import redact_record

log = logging.getLogger(__name__)


def main(environ: Mapping[str, str]) -> int:
    """Reviews, tells, and gives the gate's exit code. What fails before there is a job is told in
    the log and the job summary."""
    runner = Runner.from_environ(environ)
    try:
        settings = Settings.from_environ(environ)
        job = _job(runner, settings)
    except AgentEvalsError as error:
        job_log.report_invalid(error, runner.summary_path)
        return error.exit_code
    loading.load_all()
    workspace = Workspace(runner.workspace, settings, environ)
    job_log.protect_log(workspace.redactor)
    repository = GitRepository(runner.workspace, settings.github_token, runner.server_url, environ)
    host = _host(job, settings, runner)
    try:
        return _gate(job, workspace, repository, host, runner)
    finally:
        _give_back(workspace)


def _job(runner: Runner, settings: Settings) -> Job:
    event = events.Event(runner.event_name, runner.payload(), runner.sha, runner.ref, runner.actor)
    wishes = events.JobOptions(
        settings.select, settings.fail_on, settings.allow_unsafe_pull_request_target
    )
    return events.job_for(event, wishes)


def _gate(
    job: Job, workspace: Workspace, repository: GitRepository, host: GitHubHost, runner: Runner
) -> int:
    """The check is in progress from here on, and completed whatever happens."""
    try:
        host.start_check()
        review, published = _told(job, workspace, repository, host, runner)
    except Interrupted:
        host.finish_check(
            CheckReport(
                "cancelled",
                "The run was cancelled",
                "The run was cancelled before it could tell anything.",
            )
        )
        raise
    except Exception:
        host.finish_check(
            CheckReport(
                "failure",
                "The action crashed",
                "This is a bug of the action, not of the change: see the job's log.",
            )
        )
        raise
    remembered = _remember(review, job, host, workspace.settings)
    job_log.write_review(review, published, (*host.notices, *remembered))
    workflow_commands.append_summary(runner.summary_path, published.summary)
    workflow_commands.write_outputs(
        runner.output_path, publish.outputs(review, published, workspace.settings.report_dir)
    )
    return review.decision.exit_code


def _remember(review: Review, job: Job, host: GitHubHost, settings: Settings) -> Sequence[str]:
    """Keeps what the default branch's suites came to, for the pull requests to come; what there is
    to tell of it."""
    runs = [run for suite in review.suites if (run := suite.head_run())]
    if not runs or not job.is_default_branch or settings.baseline not in ("auto", "branch"):
        return ()
    return host.data_branch(settings.baseline_branch).store(
        runs, job.head_sha, datetime.now(UTC).isoformat(timespec="seconds")
    )


def _told(
    job: Job, workspace: Workspace, repository: GitRepository, host: GitHubHost, runner: Runner
) -> tuple[Review, Published]:
    """The review and where it stands; a template that fails on it is the outcome, told by our
    own."""
    review = _review(job, workspace, repository, host)
    try:
        return review, _published(
            review, host, _presentation(review, workspace, runner, _template(workspace)), workspace
        )
    except InvalidInput as error:
        review = pipeline.invalid_review(job, [error.sentence])
        return review, _published(review, host, _presentation(review, workspace, runner), workspace)


def _published(
    review: Review, host: GitHubHost, presentation: publish.Presentation, workspace: Workspace
) -> Published:
    """Where it stands; a report folder that cannot be written is a warning."""
    try:
        publish.write_folder(review, workspace.report, presentation)
    except OutputError as error:
        log.warning("the report folder could not be written: %s", error.sentence)
    return publish.publish(review, host, presentation)


def _review(job: Job, workspace: Workspace, repository: GitRepository, host: GitHubHost) -> Review:
    """The review; a job that could not begin, or be brought to its end, is told like any other
    outcome, where people look."""
    try:
        workspace.comment_template()
        return pipeline.review(job, workspace, repository, host, github=host)
    except AgentEvalsError as error:
        errors = error.errors if isinstance(error, InvalidInput) else ()
        reasons = (*errors, error.sentence)
        broken_off = error.exit_code is ExitCode.COULD_NOT_TELL
        ended = (
            pipeline.inconclusive_review(job, workspace.settings, reasons)
            if broken_off
            else pipeline.invalid_review(job, reasons)
        )
        return redact_record(ended, workspace.redactor)


def _presentation(
    review: Review, workspace: Workspace, runner: Runner, template: Path | None = None
) -> publish.Presentation:
    links = Links(
        runner.server_url, runner.repository, review.head_sha, review.base_sha, runner.run_url
    )
    settings = workspace.settings
    return publish.Presentation(links, settings.comment, template, settings.annotation_limit)


def _template(workspace: Workspace) -> Path | None:
    try:
        return workspace.comment_template()
    except InvalidInput:
        # told already, as the reason why nothing was run; the comment that says so is our own
        return None


def _host(job: Job, settings: Settings, runner: Runner) -> GitHubHost:
    return GitHubHost(
        RunContext(
            repository=runner.repository,
            head_sha=job.check_sha or job.head_sha,
            token=settings.github_token,
            api_url=runner.api_url,
            graphql_url=runner.graphql_url,
            pull=job.pull.number if job.pull else None,
            base=job.pull.base_sha if job.pull else None,
            check_name=settings.check_name if settings.check_run and job.check_sha else None,
            comment_id=settings.comment_id,
            run_id=runner.run_id,
            run_attempt=runner.run_attempt,
            run_url=runner.run_url,
            without_secrets=job.without_secrets,
        )
    )


def _give_back(workspace: Workspace) -> None:
    """What root wrote in the workspace becomes the workspace owner's again, so that later steps and
    runs can clean it."""
    try:
        base_tree.restore_owner((workspace.folder,), workspace.folder)
    except (AgentEvalsError, OSError, ValueError) as error:
        log.warning("what was written in the workspace could not be given to its owner: %s", error)
