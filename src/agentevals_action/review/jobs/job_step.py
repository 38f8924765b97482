"""The step of a job: a review or one shard of it in the checkout, the merge of all shards, or the
report of what an untrusted run claims."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.errors import AgentEvalsError, ExitCode, OutputError, ResourceError
from agentevals_action.github.claimed_run import FirstPhase
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.job import Job
from agentevals_action.model.run import Policy
from agentevals_action.reports.publication import CheckReport
from agentevals_action.results.run_folder import RunResults, not_completed, not_run
from agentevals_action.review import pipeline
from agentevals_action.review.inputs.request import ReviewRequest, ReviewWorkspace
from agentevals_action.review.jobs.forks import check_out, read_claims
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import NO_ISOLATION, Isolation
from agentevals_action.system.protection import protected_checkout
from agentevals_action.system.redaction import redact_record
from agentevals_action.system.resources import exhausted
from agentevals_action.system.signals import in_thread
from agentevals_action.system.stored_credentials import warn_of_credentials

_CANCELLED = CheckReport(
    "cancelled", "The run was cancelled", "The run was cancelled before it had a result."
)
_CRASHED = CheckReport(
    "failure",
    "The action crashed",
    "This is a bug of the action, not of the change: see the job's log.",
)


@dataclass(frozen=True)
class JobStep:
    """The work of this process: a review, a shard, a merge or a publication. `refused` are the
    reasons why nothing can run. `phase` is the first phase that a trusted phase (without a clone)
    reports."""

    job: Job
    workspace: ReviewWorkspace
    host: GitHubHost
    open_repository: Callable[[], Awaitable[GitRepository]]
    isolates: bool
    refused: Sequence[str] = ()
    phase: FirstPhase | None = None

    @property
    def data_branch(self) -> DataBranch:
        """The results of the default branch."""
        return DataBranch(self.open_repository, self.workspace.settings.baseline_branch)


@asynccontextmanager
async def writing_check(host: GitHubHost) -> AsyncIterator[None]:
    """Writes the check run if the block fails."""
    try:
        yield
    except asyncio.CancelledError:
        await asyncio.to_thread(host.cancel_check, _CANCELLED)
        raise
    except Exception as error:
        problem = exhausted(error)
        if problem is None:
            await asyncio.to_thread(host.write_check, _CRASHED)
            raise
        check = CheckReport("failure", "The machine has too few resources", problem.sentence)
        await asyncio.to_thread(host.write_check, check)
        raise problem from error


async def obtain_results(step: JobStep) -> RunResults:
    """The results that are published, also of a job that could not start or complete."""
    workspace, phase = step.workspace, step.phase
    try:
        if step.refused:
            results = not_run(step.job.head_sha, step.refused)
        elif phase:
            settings = workspace.settings
            results = await asyncio.to_thread(read_claims, step.job, phase, settings)
        elif workspace.settings.mode == "merge":
            results = await asyncio.to_thread(_merge, step)
        else:
            return await run(step)
    except Exception as error:
        problem = error if isinstance(error, AgentEvalsError) else exhausted(error)
        if problem is None:
            raise
        results = _not_completed(step, problem)
        results = results.as_claims() if phase else results
    return replace(results, run=redact_record(results.run, workspace.redactor))


async def run(step: JobStep) -> RunResults:
    """Runs the review of the checkout, or its shard."""
    job, workspace, repository = step.job, step.workspace, await step.open_repository()
    if job.merge_sha:
        await check_out(repository, job.merge_sha, workspace)
    async with _isolation(step, repository) as users:
        with suppress(OutputError):  # reported when the results are written
            # Removes the files of an earlier step: the inputs of this step may be invalid.
            await asyncio.to_thread(workspace.make_report_folder)
        return await pipeline.run(
            ReviewRequest(job, workspace, repository, step.host, step.data_branch, users)
        )


@asynccontextmanager
async def _isolation(step: JobStep, repository: GitRepository) -> AsyncIterator[Isolation]:
    """The users of the programs that run, which exist within the block."""
    root, workspace = repository.root, step.workspace
    if not step.isolates:
        await in_thread(warn_of_credentials, root)
        yield NO_ISOLATION
        return
    folders = tuple(workspace.folder / name for name in workspace.settings.output_folders)
    async with protected_checkout(root, folders, workspace.environ) as users:
        yield users


def _merge(step: JobStep) -> RunResults:
    request = ReviewRequest(step.job, step.workspace, None, step.host)
    results = step.workspace.merge_shards(step.job.head_sha, request.policy)
    acceptance = step.host.acceptance(step.workspace.settings.accept_label)
    return replace(results, run=results.run.model_copy(update={"acceptance": acceptance}))


def _not_completed(step: JobStep, problem: AgentEvalsError) -> RunResults:
    head_sha, reasons = step.job.head_sha, (*problem.errors, problem.sentence)
    if problem.exit_code is not ExitCode.INCONCLUSIVE:
        return not_run(head_sha, reasons)
    on_inconclusive = step.workspace.settings.on_inconclusive
    if isinstance(problem, ResourceError):
        on_inconclusive = "fail"
    return not_completed(head_sha, reasons, Policy(frozenset(), on_inconclusive=on_inconclusive))
