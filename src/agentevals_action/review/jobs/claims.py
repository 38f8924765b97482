"""`mode: publish`: the trusted phase, which reports what the untrusted run of a fork claims. It has
no checkout and starts no program."""

from dataclasses import replace

from agentevals_action.errors import InvalidInput
from agentevals_action.github import events
from agentevals_action.github.api import GitHubApi
from agentevals_action.github.claimed_run import FirstPhase, read_completed
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.job import Job
from agentevals_action.model.run import Level, Policy
from agentevals_action.results.run_folder import RunResults, read_archive
from agentevals_action.settings import Settings

EVENT = "workflow_run"
_BASELINE = BaselineInfo(
    "none", wanted=False, reason="the results of base are claims of the same run"
)


def is_wanted(runner: RunnerEnvironment, settings: Settings) -> bool:
    """Whether the step is a trusted phase."""
    return settings.mode == "publish" or runner.event_name == EVENT


def read(runner: RunnerEnvironment, settings: Settings) -> tuple[Job, FirstPhase]:
    """The first phase that the event is about, and the job that reports it. Raises
    NothingToPublish, InvalidInput, HostError."""
    if runner.event_name != EVENT:
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
    policy = Policy(settings.fail_on or job.fail_on, settings.min_pass_rate)
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
