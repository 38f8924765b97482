"""`mode: publish`: the trusted phase, which reports what the untrusted run of a fork claims. It has
no checkout and starts no program."""

from dataclasses import dataclass, replace

from agentevals_action.errors import InvalidInput
from agentevals_action.github import events
from agentevals_action.github.api import GitHubApi
from agentevals_action.github.events import Job
from agentevals_action.github.first_phase import FirstPhase, read_completed
from agentevals_action.github.run_requests import run_command
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.review import Outcome, Review
from agentevals_action.review import gate
from agentevals_action.review.claims import CLAIMED, read_claims, review_claims
from agentevals_action.settings import Settings

EVENT = "workflow_run"


@dataclass(frozen=True)
class Claimed:
    """A completed first phase, and the job that reports it."""

    job: Job
    phase: FirstPhase


def is_wanted(runner: RunnerEnvironment, settings: Settings) -> bool:
    """Whether the step is a trusted phase."""
    return settings.mode == "publish" or runner.event_name == EVENT


def read(runner: RunnerEnvironment, settings: Settings) -> Claimed:
    """The first phase that the event is about. Raises NothingToPublish, InvalidInput, HostError."""
    if runner.event_name != EVENT:
        raise InvalidInput(
            f"`mode: publish` reports a completed run, and the event is `{runner.event_name}`",
            "use it in a workflow with `on: workflow_run`",
        )
    api = GitHubApi(runner, settings.github_token)
    phase = FirstPhase(api, settings.comment_id, read_completed(runner.payload()))
    pull = phase.pull()
    phase.require_undecided(pull)
    return Claimed(events.published_job(runner.event_name, pull, settings), phase)


def review(claimed: Claimed, settings: Settings) -> Review:
    """The review of the first phase. AgentEvalsError when its results cannot be used."""
    claims = read_claims(claimed.phase.results())
    return as_claims(review_claims(claimed.job, claims, settings))


def as_claims(reviewed: Review) -> Review:
    """A review of the first phase, also one whose results cannot be used: never green.

    Attack: without an artifact, `on-inconclusive: pass` makes the check run green."""
    decision = reviewed.decision
    if decision.outcome is Outcome.INCONCLUSIVE:
        decision = gate.with_action(gate.inconclusive_decision(decision.reasons, "fail"))
    asked = (
        "the results are claims of a run that the pull request controls: a person with write "
        "access who has read the change can comment "
        f"`{run_command(reviewed.head_sha)}` for a run with keys"
    )
    return replace(reviewed, decision=decision, claims=CLAIMED, notices=(*reviewed.notices, asked))
