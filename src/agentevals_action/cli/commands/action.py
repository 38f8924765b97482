"""`action`: the gate for the event that the runner's environment describes; the container's entry
point."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import click

from agentevals_action.errors import AgentEvalsError, ExitCode, InvalidInput
from agentevals_action.formatting import joined
from agentevals_action.github import events, run_requests
from agentevals_action.github.artifacts import ArtifactService, artifact_service
from agentevals_action.github.claimed_run import FirstPhase, NothingToPublish
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.runner import job_log, workflow_commands
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.job import Job
from agentevals_action.reports.view.models import Links
from agentevals_action.results import shards
from agentevals_action.review import pipeline, publication
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.review.jobs import forks, job_step
from agentevals_action.review.jobs.job_step import JobStep
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import (
    find_obstacle,
    missing_capabilities,
    restrict_children,
)
from agentevals_action.system.protection import restore_owner


@click.command("action")
async def command() -> int:
    """Gate the event that the runner's environment describes. This is the container's entry
    point."""
    environ = os.environ
    runner = RunnerEnvironment.from_environ(environ)
    # Before any other program runs: the content of the files is from the runner.
    outputs = CommandFile("GITHUB_OUTPUT", runner.output_path)
    summary = CommandFile("GITHUB_STEP_SUMMARY", runner.summary_path)
    settings, invalid = _settings(environ)
    refused: Sequence[str] = ()
    phase: FirstPhase | None = None
    try:
        if forks.publishes_claims(runner, settings):
            job, phase = await asyncio.to_thread(forks.find_claims, runner, settings)
        elif runner.event_name == run_requests.EVENT:
            requested = await asyncio.to_thread(forks.answer_request, runner, settings, summary)
            if requested is None:
                return ExitCode.PASSED
            job = requested
        else:
            job, refused = _job(runner, settings)
    except NothingToPublish as nothing:
        print(f"{nothing}: there is nothing to publish")
        workflow_commands.append_summary(summary, f"Nothing was published: {nothing}.\n")
        return ExitCode.PASSED
    except AgentEvalsError as error:
        is_inconclusive = error.exit_code is ExitCode.INCONCLUSIVE
        outcome = Outcome.INCONCLUSIVE if is_inconclusive else Outcome.INVALID
        workflow_commands.write_outputs(outputs, {"outcome": outcome})
        raise
    obstacle = find_obstacle(environ)
    isolates = not obstacle and settings.isolation != "none"
    missing = missing_capabilities() if isolates else ()
    reasons = (*invalid, *refused, *_conflicts(job, settings, obstacle, missing))
    workspace = ReviewWorkspace(runner.workspace, settings, environ)
    job_log.protect_log(workspace.redactor)
    host = GitHubHost(runner, settings, job, artifacts=_artifacts(settings, runner))
    if isolates and not missing:
        restrict_children()
        print("isolation: programs of the change run as users of their own; `setup` runs as root")
    elif not isolates:
        reason = obstacle or "the input `isolation` is `none`"
        print(f"isolation: none, programs of the change run as the action's user: {reason}")
    repository = partial(
        GitRepository.open, runner.workspace, settings.github_token, runner.server_url, environ
    )
    step = JobStep(job, workspace, host, repository, isolates, reasons, phase)
    try:
        if settings.shard:
            return await _run_shard(step, outputs, summary)
        exit_code = await _review(step, runner, outputs, summary)
        # The step reports another run. Its own status belongs to the default branch.
        return ExitCode.PASSED if phase and not reasons else exit_code
    finally:
        await restore_owner(workspace.folder)


def _settings(environ: Mapping[str, str]) -> tuple[Settings, Sequence[str]]:
    """The inputs, and an error for each that is invalid."""
    try:
        return Settings.from_environ(environ), ()
    except InvalidInput as error:
        return Settings.for_report(environ), (*error.errors, error.sentence)


def _job(runner: RunnerEnvironment, settings: Settings) -> tuple[Job, Sequence[str]]:
    """What the event asks for, and the reasons why it is refused."""
    event = events.Event(runner.event_name, {}, runner.sha, runner.ref, runner.actor)
    try:
        event = replace(event, payload=runner.payload())
        return events.job_for(event, settings), ()
    except InvalidInput as error:
        return events.refused_job(event), (*error.errors, error.sentence)


def _conflicts(
    job: Job, settings: Settings, obstacle: str, missing: Sequence[str]
) -> Iterator[str]:
    """The errors of inputs that are not possible here, or not for this event."""
    if settings.isolation == "user" and obstacle:
        yield f"input `isolation`: `user` is not possible, because {obstacle}; leave it out"
    if missing:
        yield (
            f"the container does not have {joined(missing)}, so programs cannot run as users of "
            "their own; start it without `--cap-drop`, or set the input `isolation` to `none`"
        )
    if job.merge_sha and (settings.mode != "auto" or settings.shard):
        yield (
            "inputs `mode` and `shard`: a run that a maintainer requests has one job; leave them "
            "out for this event"
        )


def _artifacts(settings: Settings, runner: RunnerEnvironment) -> ArtifactService | None:
    """The service that takes the report page, None if it is not uploaded."""
    if not settings.upload_report:
        return None
    service = artifact_service(runner)
    if isinstance(service, ArtifactService):
        return service
    print(f"report: not uploaded, because {service}")
    return None


async def _run_shard(step: JobStep, outputs: CommandFile, summary: CommandFile) -> int:
    """Runs a shard and writes its report folder; it touches neither the check run nor the
    comment."""
    if step.refused:
        job_log.report_errors(step.refused)
        return ExitCode.INVALID
    results = await job_step.run(step)
    job_log.report_errors(shards.errors(results))
    sentence = shards.describe(results)
    print(sentence)
    workflow_commands.append_summary(summary, sentence)
    values = publication.outputs_of_run(results.run, step.workspace.settings.report_dir)
    workflow_commands.write_outputs(outputs, values)
    return shards.exit_code(results)


async def _review(
    step: JobStep, runner: RunnerEnvironment, outputs: CommandFile, summary: CommandFile
) -> int:
    """Reviews and publishes; returns the exit code. The check run is written whatever happens."""
    pull, workspace, host = step.job.pull, step.workspace, step.host
    async with job_step.writing_check(host):
        results = await job_step.obtain_results(step)
        links = Links(
            runner.server_url,
            runner.repository,
            results.run.head_sha,
            results.run.base_sha,
            runner.run_url,
            pull.number if pull else None,
            pull.head_ref if pull else runner.ref.partition("refs/heads/")[2],
            author=pull.author if pull and not pull.is_fork else "",
        )
        view, published = await pipeline.publish(results, workspace, host, links)
    job_log.report_errors(step.refused)
    notices: Sequence[str] = ()
    if not step.phase:  # without a clone nothing is stored
        commits, branch = f"{runner.server_url}/{runner.repository}/commit/", step.data_branch
        notices = await publication.store_results(
            view.review, step.job, workspace, branch, runner.run_id, commits
        )
    job_log.write_review(view, published, (*host.notices, *notices))
    workflow_commands.append_summary(summary, published.summary)
    values = publication.outputs(view, published, workspace.settings.report_dir)
    workflow_commands.write_outputs(outputs, values)
    return view.review.decision.exit_code
