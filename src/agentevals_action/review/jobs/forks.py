"""How the pull request of a fork, whose own run has no keys, gets a check. `mode: publish` is the
trusted phase: it reports what the untrusted run claims, has no checkout and starts no program. And
a maintainer requests a run by a comment with the command `/agentevals run SHA`."""

from collections.abc import Iterable
from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import prose
from agentevals_action.github import events
from agentevals_action.github.api import GitHubApi
from agentevals_action.github.claimed_run import FirstPhase, read_completed
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.run_requests import Refused, RunRequests, read_request
from agentevals_action.github.runner import workflow_commands
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.job import Job, PullRequest
from agentevals_action.model.run import Level, Policy
from agentevals_action.reports.publication import CommentReport
from agentevals_action.results.run_folder import RunResults, read_archive
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.protection import restore_owner

CLAIMS_EVENT = "workflow_run"
_BASELINE = BaselineInfo(
    "none", wanted=False, reason="the results of base are claims of the same run"
)


def publishes_claims(runner: RunnerEnvironment, settings: Settings) -> bool:
    """Whether the step is a trusted phase."""
    return settings.mode == "publish" or runner.event_name == CLAIMS_EVENT


def find_claims(runner: RunnerEnvironment, settings: Settings) -> tuple[Job, FirstPhase]:
    """The first phase that the event is about, and the job that reports it. Raises
    NothingToPublish, InvalidInput, HostError."""
    if runner.event_name != CLAIMS_EVENT:
        raise InvalidInput(
            f"`mode: publish` reports a completed run, and the event is `{runner.event_name}`",
            "use it in a workflow with `on: workflow_run`",
        )
    api = GitHubApi(runner, settings.github_token)
    phase = FirstPhase(api, settings.comment_id, read_completed(runner.payload()))
    pulls = phase.pulls()
    phase.require_undecided(pulls)
    return events.published_job(runner.event_name, pulls[-1], settings), phase


def read_claims(job: Job, phase: FirstPhase, settings: Settings) -> RunResults:
    """The results of the first phase. AgentEvalsError when they cannot be used."""
    results = read_archive(phase.results())
    policy = Policy(
        settings.fail_on or job.fail_on,
        settings.min_pass_rate,
        min_pass_all=settings.min_pass_all,
        max_cost_increase=settings.max_cost_increase,
        max_latency_increase=settings.max_latency_increase,
    )
    run = results.run.model_copy(
        update={
            "head_sha": job.head_sha,
            "base_sha": job.base.revision,
            "policy": policy,
            "suites": tuple(
                replace(suite, base=replace(suite.base, origin=None))
                for suite in results.run.suites
            ),
            "baseline": _BASELINE,
            "acceptance": None,
            "notes": tuple(note for note in results.run.notes if note.level is not Level.NOTICE),
            "template": None,
        }
    )
    return replace(results, run=run).as_claims()


def answer_request(
    runner: RunnerEnvironment, settings: Settings, summary: CommandFile
) -> Job | None:
    """The job that a command asks for. None if there is no command. InvalidInput for a request that
    is refused, after its author has been answered; HostError without an answer of GitHub."""
    request = read_request(runner.payload())
    if request is None:
        print("the text does not begin with `/agentevals`: there is nothing to do")
        return None
    api = GitHubApi(runner, settings.github_token)
    requests = RunRequests(api, request)
    pull = requests.pull()
    try:
        requests.require_valid(pull)
        requests.react("EYES")
        merge, tip = requests.merge_commit(pull)
    except Refused as refused:
        requests.react("CONFUSED")
        notices = _report(refused, pull, runner, settings, summary)
        _print((*api.notices, *notices))
        raise InvalidInput(refused.reason, refused.advice) from refused
    _print(api.notices)
    pull = pull.model_copy(update={"base_sha": tip})
    return events.requested_job(runner.event_name, pull, merge, settings)


def _report(
    refused: Refused,
    pull: PullRequest,
    runner: RunnerEnvironment,
    settings: Settings,
    summary: CommandFile,
) -> Iterable[str]:
    """Writes the refusal, and returns the notices about what could not be written."""
    sentence = f"The run was refused: {prose(str(refused), 500)}."
    workflow_commands.append_summary(summary, f"{sentence}\n")
    if not refused.is_answered or settings.comment == "off":
        return ()
    job = events.requested_job(runner.event_name, pull, pull.head_sha, settings)
    command_settings = settings.model_copy(update={"comment_id": f"{settings.comment_id}.command"})
    host = GitHubHost(runner, command_settings, job)
    host.publish_comment(CommentReport(sentence, Outcome.INVALID, wanted=True))
    return host.notices


def _print(notices: Iterable[str]) -> None:
    for notice in notices:
        print(workflow_commands.command("warning", notice))


async def check_out(repository: GitRepository, merge: str, workspace: ReviewWorkspace) -> None:
    """Puts the workspace on GitHub's merge commit of the requested head, as `on: pull_request` has
    it. The owner of the workspace gets the files that root wrote, as from `actions/checkout`.
    GitError.

    Attack: a workflow that checks out the branch of a pull request gets what was pushed after the
    consent. Or a head leaves the base branch at an old commit, whose tests and judges are weak."""
    if not await repository.has(merge):
        await repository.fetch(merge)  # it brings its parents
    await repository.check_out(merge)
    await restore_owner(workspace.folder)
