"""`action`: the gate for the event that the runner's environment describes; the container's entry
point."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import click

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.cli import requested_run, trusted_phase
from agentevals_action.cli.trusted_phase import Claimed
from agentevals_action.errors import (
    AgentEvalsError,
    ExitCode,
    InvalidInput,
    ResourceError,
)
from agentevals_action.github import events, run_requests
from agentevals_action.github.artifacts import ArtifactService, artifact_service
from agentevals_action.github.events import Job
from agentevals_action.github.first_phase import NothingToPublish
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.runner import job_log, workflow_commands
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.model.report import CheckReport, Published
from agentevals_action.model.review import Outcome, Review
from agentevals_action.model.run import Policy
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.models import ReportView
from agentevals_action.results import shards
from agentevals_action.results.run_folder import (
    HEAD_RESULTS,
    RunResults,
    not_completed,
    not_run,
)
from agentevals_action.review import history, pipeline, publish
from agentevals_action.review.request import ReviewRequest, ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import (
    NO_ISOLATION,
    Isolation,
    find_obstacle,
    restrict_children,
)
from agentevals_action.system.protection import protected_checkout, restore_owner
from agentevals_action.system.redaction import redact_record
from agentevals_action.system.resources import exhausted
from agentevals_action.system.signals import in_thread
from agentevals_action.system.stored_credentials import warn_of_credentials

log = logging.getLogger(__name__)

_CANCELLED = CheckReport(
    "cancelled", "The run was cancelled", "The run was cancelled before it had a result."
)
_CRASHED = CheckReport(
    "failure",
    "The action crashed",
    "This is a bug of the action, not of the change: see the job's log.",
)


@click.command("action")
async def command() -> int:
    """Gate the event that the runner's environment describes. This is the container's entry
    point."""
    environ = os.environ
    runner = RunnerEnvironment.from_environ(environ)
    # Before any other program runs: what they contain now is from the runner.
    outputs = CommandFile("GITHUB_OUTPUT", runner.output_path)
    summary = CommandFile("GITHUB_STEP_SUMMARY", runner.summary_path)
    settings, invalid = _settings(environ)
    refused: Sequence[str] = ()
    claimed = None
    try:
        if trusted_phase.is_wanted(runner, settings):
            claimed = await asyncio.to_thread(trusted_phase.read, runner, settings)
            job = claimed.job
        elif runner.event_name == run_requests.EVENT:
            requested = await asyncio.to_thread(requested_run.answer, runner, settings, summary)
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
        workflow_commands.write_outputs(outputs, {"outcome": _outcome_of(error)})
        raise
    obstacle = find_obstacle(environ)
    reasons = (*invalid, *refused, *_conflicts(job, settings, obstacle))
    workspace = ReviewWorkspace(runner.workspace, settings, environ)
    job_log.protect_log(workspace.redactor)
    host = GitHubHost(runner, settings, job, artifacts=_artifacts(settings, runner))
    isolates = not obstacle and settings.isolation != "none"
    if isolates:
        restrict_children()
        print("isolation: programs of the change run as users of their own; `setup` runs as root")
    else:
        reason = obstacle or "the input `isolation` is `none`"
        print(f"isolation: none, programs of the change run as the action's user: {reason}")
    try:
        files = (outputs, summary)
        step = _Step(job, workspace, host, runner, *files, isolates, reasons, claimed)
        exit_code = await (step.run_shard() if settings.shard else step.run())
        # The step reports another run. Its own status is that of the default branch.
        return ExitCode.PASSED if claimed and not reasons else exit_code
    finally:
        await restore_owner(workspace.folder)


def _outcome_of(error: AgentEvalsError) -> Outcome:
    is_inconclusive = error.exit_code is ExitCode.INCONCLUSIVE
    return Outcome.INCONCLUSIVE if is_inconclusive else Outcome.INVALID


def _conflicts(job: Job, settings: Settings, obstacle: str) -> Iterator[str]:
    """Inputs that are not possible here, or not for this event."""
    if settings.isolation == "user" and obstacle:
        yield f"input `isolation`: `user` is not possible, because {obstacle}; leave it out"
    if job.merge_sha and (settings.mode != "auto" or settings.shard):
        yield (
            "inputs `mode` and `shard`: a run that a maintainer requests has one job; leave them "
            "out for this event"
        )


def _settings(environ: Mapping[str, str]) -> tuple[Settings, Sequence[str]]:
    """The inputs, and an error for each that is invalid."""
    try:
        return Settings.from_environ(environ), ()
    except InvalidInput as error:
        return Settings.for_report(environ), _reasons(error)


def _job(runner: RunnerEnvironment, settings: Settings) -> tuple[Job, Sequence[str]]:
    """What the event asks for, and the reasons why it is refused."""
    event = events.Event(runner.event_name, {}, runner.sha, runner.ref, runner.actor)
    try:
        event = replace(event, payload=runner.payload())
        return events.job_for(event, settings), ()
    except InvalidInput as error:
        return events.refused_job(event), _reasons(error)


def _reasons(error: AgentEvalsError) -> Sequence[str]:
    return (*(error.errors if isinstance(error, InvalidInput) else ()), error.sentence)


@dataclass(frozen=True)
class _Step:
    """The step for one event. With `refused`, the reasons why nothing can run, it only reports
    them."""

    job: Job
    workspace: ReviewWorkspace
    host: GitHubHost
    runner: RunnerEnvironment
    outputs: CommandFile
    summary: CommandFile
    isolates: bool
    refused: Sequence[str] = ()
    claimed: Claimed | None = None

    async def run(self) -> int:
        """Reviews and publishes; gives the exit code. The check run is written whatever happens."""
        async with self._writing_check():
            view, published = await self._publish(await self._results())
        job_log.report_refusal(self.refused)
        notices = await self._store(view.review)
        job_log.write_review(view, published, (*self.host.notices, *notices))
        workflow_commands.append_summary(self.summary, published.summary)
        outputs = publish.outputs(view, published, self.workspace.settings.report_dir)
        workflow_commands.write_outputs(self.outputs, outputs)
        return view.review.decision.exit_code

    async def run_shard(self) -> int:
        """Runs a shard and writes its report folder; it touches neither the check run nor the
        comment."""
        if self.refused:
            job_log.report_refusal(self.refused)
            return ExitCode.INVALID
        results = await self._run()
        sentence = shards.describe(results)
        print(sentence)
        workflow_commands.append_summary(self.summary, sentence)
        report_dir = self.workspace.settings.report_dir
        outputs = {
            "report-dir": report_dir,
            "results-path": f"{report_dir}/{HEAD_RESULTS}",
            "base-sha": results.run.base_sha or "",
            "head-sha": results.run.head_sha,
        }
        workflow_commands.write_outputs(self.outputs, outputs)
        return shards.exit_code(results)

    async def _results(self) -> RunResults:
        """The results that are published; a job that could not start or be finished has some,
        too."""
        head_sha, settings = self.job.head_sha, self.workspace.settings
        try:
            if self.refused:
                results = not_run(head_sha, self.refused)
            elif self.claimed:
                results = await asyncio.to_thread(trusted_phase.claims, self.claimed, settings)
            elif settings.mode == "merge":
                results = await asyncio.to_thread(self._merge)
            else:
                return await self._run()
        except Exception as error:
            problem = error if isinstance(error, AgentEvalsError) else exhausted(error)
            if problem is None:
                raise
            results = self._not_completed(problem)
            results = trusted_phase.as_claims(results) if self.claimed else results
        return replace(results, run=redact_record(results.run, self.workspace.redactor))

    async def _run(self) -> RunResults:
        repository, host = await self._repository(), self.host
        if self.job.merge_sha:
            await requested_run.check_out(repository, self.job.merge_sha, self.workspace)
        async with self._isolation(repository) as users:
            request = ReviewRequest(
                self.job, self.workspace, repository, host, self._data_branch, users
            )
            return await pipeline.run(request)

    def _merge(self) -> RunResults:
        results = self.workspace.merge_shards(self.job.head_sha)
        acceptance = self.host.acceptance(self.workspace.settings.accept_label)
        return replace(results, run=results.run.model_copy(update={"acceptance": acceptance}))

    def _not_completed(self, problem: AgentEvalsError) -> RunResults:
        head_sha, reasons = self.job.head_sha, _reasons(problem)
        if _outcome_of(problem) is Outcome.INVALID:
            return not_run(head_sha, reasons)
        on_inconclusive = self.workspace.settings.on_inconclusive
        if isinstance(problem, ResourceError):
            on_inconclusive = "fail"
        policy = Policy(frozenset(), on_inconclusive=on_inconclusive)
        return not_completed(head_sha, reasons, policy)

    @asynccontextmanager
    async def _writing_check(self) -> AsyncIterator[None]:
        """Writes the check run if the block fails."""
        try:
            yield
        except asyncio.CancelledError:
            await asyncio.to_thread(self.host.cancel_check, _CANCELLED)
            raise
        except Exception as error:
            problem = exhausted(error)
            if problem is None:
                await asyncio.to_thread(self.host.write_check, _CRASHED)
                raise
            title = "The machine has too few resources"
            check = CheckReport("failure", title, problem.sentence)
            await asyncio.to_thread(self.host.write_check, check)
            raise problem from error

    async def _publish(self, results: RunResults) -> tuple[ReportView, Published]:
        """Publishes the review of results. If the user's template fails on it, that is the
        outcome."""
        workspace = self.workspace
        try:
            view, page = await asyncio.to_thread(publish.write, results, self._view, workspace)
        except InvalidInput as error:
            reason = workspace.redactor.redact(error.sentence)
            invalid = not_run(self.job.head_sha, [reason])
            view, page = await asyncio.to_thread(publish.write, invalid, self._view, workspace)
        settings = workspace.settings
        return view, await publish.publish(
            view, page, self.host, settings.comment, settings.annotation_limit
        )

    async def _repository(self) -> GitRepository:
        runner, settings = self.runner, self.workspace.settings
        return await GitRepository.open(
            runner.workspace, settings.github_token, runner.server_url, self.workspace.environ
        )

    @asynccontextmanager
    async def _isolation(self, repository: GitRepository) -> AsyncIterator[Isolation]:
        """The users of the programs that run, which exist within the block."""
        workspace, settings = self.workspace, self.workspace.settings
        if not self.isolates:
            await in_thread(warn_of_credentials, repository.root)
            yield NO_ISOLATION
            return
        folders = (workspace.folder / name for name in settings.output_folders)
        root = repository.root
        async with protected_checkout(root, tuple(folders), workspace.environ) as users:
            yield users

    def _view(self, review: Review) -> ReportView:
        runner = self.runner
        links = Links(
            runner.server_url,
            runner.repository,
            review.run.head_sha,
            review.run.base_sha,
            runner.run_url,
        )
        return build_view(review, links)

    async def _store(self, review: Review) -> Sequence[str]:
        """Stores the results of the default branch."""
        if self.claimed:  # there is no clone
            return ()
        runner = self.runner
        commits = f"{runner.server_url}/{runner.repository}/commit/"
        return await history.store(
            review, self.job, self.workspace, self._data_branch, runner.run_id, commits
        )

    @cached_property
    def _data_branch(self) -> DataBranch:
        return DataBranch(self._repository, self.workspace.settings.baseline_branch)


def _artifacts(settings: Settings, runner: RunnerEnvironment) -> ArtifactService | None:
    """The service that takes the report page, None if it is not uploaded."""
    if not settings.upload_report:
        return None
    service = artifact_service(runner)
    if isinstance(service, ArtifactService):
        return service
    print(f"report: not uploaded, because {service}")
    return None
